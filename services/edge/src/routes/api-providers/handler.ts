/** /api/providers: an account's own credentials at providers (docs/byok.md). */
import type { ListProviderKeysRequest, ListProviderKeysResponse__Output, ProviderKey__Output, ProviderKeyAnswer__Output, ProviderKeyRef, SetProviderKeyRequest } from '@signalbox/contracts/accounts';
import { providersForbidden } from '@signalbox/kernel/provider-names';
import { Router, type Request, type Response } from 'express';
import { z } from 'zod';
import { INVALID, sendJson, type Control } from '../control-route.js';
import { takesQuery } from '../query-fields.js';
import { strictFields } from '../strict-fields.js';

/** Characters of a credential at most; the key file of a service account fits. */
const SECRET_LENGTH_MAX = 16_384;
const LISTED_MAX = 100;
/** Runs in the gateway and takes no credential. */
const SIMULATOR = 'simulator';

const setSchema = strictFields({
  secret: z.string().min(1).max(SECRET_LENGTH_MAX),
  zdr: z.boolean().nullish(),
  base_url: z.string().min(1).max(2_048).nullish(),
});

/** A credential's record for `exactJson`, without the credential itself. */
export function providerKeyBody({ provider, last4, zdr, baseUrl, createdAt }: ProviderKey__Output): object {
  return { provider, last4: last4 === '' ? null : last4, zdr, created_at: Number(createdAt), base_url: baseUrl === '' ? undefined : baseUrl };
}

/** Router to be mounted at /api/providers, behind the scope `keys`. `providers`: those whose worker runs, or is started for an own credential. */
export function createApiProvidersRouter({ call, parse, refuse, fail, callerOf }: Control, providers: ReadonlySet<string>): Router {
  const served = new Set([...providers].filter((provider) => provider !== SIMULATOR));
  const isServed = (provider: string): boolean => served.has(provider);
  const choices = [...served].sort();
  const refOf = (request: Request): { readonly accountId: string; readonly provider: string } => ({ accountId: callerOf(request).caller.account.id, provider: String(request.params['provider'] ?? '') });
  const notFound = (response: Response): void => fail(response, { status: 404, type: 'invalid_request_error', code: 'key_not_found', param: 'provider', message: 'The account has no credential of its own at this provider.' });
  const notServed = (response: Response): void => fail(response, { ...INVALID, code: 'invalid_value', param: 'provider', message: `Credentials of an account's own are not taken here for that provider, but for: ${choices.join(', ')}.` });
  const listOf = async (request: Request): Promise<readonly ProviderKey__Output[]> => {
    const message: ListProviderKeysRequest = { accountId: callerOf(request).caller.account.id, limit: LISTED_MAX };
    return (await call<ListProviderKeysRequest, ListProviderKeysResponse__Output>(request, 'ListProviderKeys', message)).providerKeys;
  };

  const router = Router();
  router.param('provider', (_request, response: Response, next: () => void, provider: string) => {
    // Other names of providers are not accepted here, since a credential must not be sent or deleted by a guess: the refusal names the right one.
    const meant = isServed(provider) ? [] : providersForbidden([provider]).filter(isServed);
    if (provider.includes('\0')) notFound(response);
    else if (meant.length > 0) fail(response, { ...INVALID, code: 'invalid_value', param: 'provider', message: `Invalid value for 'provider': what others call so is ${meant.map((id) => `'${id}'`).join(' or ')} here.` });
    else next();
  });
  router.get('/', takesQuery(), async (request, response) => {
    const keys = await listOf(request);
    sendJson(response, 200, { object: 'list', data: keys.map(providerKeyBody), has_more: false, first_id: keys[0]?.provider ?? null, last_id: keys.at(-1)?.provider ?? null, providers: choices });
  });

  router.get('/:provider', takesQuery(), async (request, response) => {
    const { provider } = refOf(request);
    const found = (await listOf(request)).find((key) => key.provider === provider);
    if (found === undefined) notFound(response);
    else sendJson(response, 200, providerKeyBody(found));
  });

  router.put('/:provider', takesQuery(), async (request, response) => {
    const ref = refOf(request);
    if (!isServed(ref.provider)) {
      notServed(response);
      return;
    }
    const body = await parse(request, response, setSchema);
    if (body === undefined) return;
    const { found, providerKey, problem } = await call<SetProviderKeyRequest, ProviderKeyAnswer__Output>(request, 'SetProviderKey', { ...ref, secret: body.secret, zdr: body.zdr ?? false, baseUrl: body.base_url ?? '' });
    if (providerKey !== null) sendJson(response, 200, providerKeyBody(providerKey));
    else if (found) refuse(response, problem);
    else notFound(response);
  });

  router.delete('/:provider', takesQuery(), async (request, response) => {
    const ref = refOf(request);
    // Safe to repeat: an absent credential counts as deleted. One at a provider that is no longer served can be deleted, too.
    const { found } = await call<ProviderKeyRef, ProviderKeyAnswer__Output>(request, 'RemoveProviderKey', ref);
    if (found || isServed(ref.provider)) sendJson(response, 200, { provider: ref.provider, deleted: true });
    else notServed(response);
  });
  return router;
}
