/** GET /api/plugins, GET and DELETE /api/memory (docs/plugins.md). */
import type { DeletedResponse__Output, MemoryRequest, MemoryResponse__Output } from '@signalbox/contracts/plugins';
import { createModelNames, modelsLeft } from '@signalbox/kernel/model-lists';
import { asNanoUsd } from '@signalbox/kernel/money';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import type { AskedModel } from '@signalbox/plugin-kit/manifest';
import type { RpcClient } from '@signalbox/rpc/call';
import { allowedModelsOf } from '../../domain/limits.js';
import type { Caller } from '../../domain/ports.js';
import { apiError } from '../../wire/errors.js';
import { renderJson, type JsonValue } from '../../wire/json-text.js';
import { ApiErrorException } from '../api-error-exception.js';
import { readManifests } from './manifests.js';

const DEADLINE_MS = 5_000;
const USER_CHARS_MAX = 512;
const NAMESPACE_CHARS_MAX = 64;
const FACTS_MAX = 1_000;
const FACTS_DEFAULT = 100;
const ID_CHARS_MAX = 64;

type Query = Readonly<Record<string, unknown>>;

/** Ids of a plugin's models that the lists of the account and the key allow. */
function modelsFor(caller: Caller, models: readonly AskedModel[]): readonly string[] {
  const { denyModels, allowProviders, denyProviders } = caller.account;
  const isLeft = modelsLeft(createModelNames(models), { allowModels: allowedModelsOf(caller, 'viaAuto'), denyModels }, true);
  const [allowed, denied] = [providersNamed(allowProviders), providersForbidden(denyProviders)];
  return models.filter((model) => isLeft(model) && (allowed.length === 0 || allowed.includes(model.provider)) && !denied.includes(model.provider)).map(({ id }) => id);
}

/** The fields that delimit a page. */
const endsOf = (data: readonly { readonly id: string }[], hasMore: boolean) => ({ has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null });

/** The installed plugins, with the models that they may use for the caller; empty if the plugins service is not set up. */
export async function answerPlugins(plugins: RpcClient | undefined, caller: Caller): Promise<string> {
  if (plugins === undefined) return renderJson({ object: 'list', data: [], ...endsOf([], false) });
  const records = await readManifests(plugins);
  const data = records.map(({ id, name, description, paid, kind, fee_nano_usd: fee, zdr, data_collection_deny: deny, options, models }): JsonValue => ({
    id, object: 'plugin', name, description, paid, kind, fee_usd: asNanoUsd(fee), policies: { zdr, data_collection_deny: deny }, ...(models === undefined ? {} : { models: modelsFor(caller, models) }),
    options: Object.fromEntries(Object.entries(options).map(([option, spec]): [string, JsonValue] => [option, { ...spec }])),
  }));
  return renderJson({ object: 'list', data, ...endsOf(records, false) });
}

/** A parameter's value; '' when absent. */
function textOf(query: Query, name: string, charsMax: number): string {
  const value = query[name];
  if (value === undefined) return '';
  if (typeof value !== 'string' || value.length > charsMax) throw new ApiErrorException(apiError('invalid_value', { param: name, message: `Invalid value for '${name}': expected one text of at most ${charsMax} characters.` }));
  return value;
}

/** As `textOf`, but an empty value is refused: a script whose variable is not set would otherwise ask for more than it means. */
function nameOf(query: Query, name: string, charsMax: number, without: string): string {
  const value = textOf(query, name, charsMax);
  if (value === '' && query[name] !== undefined) throw new ApiErrorException(apiError('invalid_value', { param: name, message: `Invalid value for '${name}': expected 1 to ${charsMax} characters. Without it, it is ${without}.` }));
  return value;
}

function installed(plugins: RpcClient | undefined): RpcClient {
  if (plugins === undefined) throw new ApiErrorException(apiError('plugin_unavailable', { message: "The plugin 'memory' is not installed here." }));
  return plugins;
}

const ownerOf = (accountId: string, query: Query) => ({ accountId, user: nameOf(query, 'user', USER_CHARS_MAX, 'the account itself'), namespace: nameOf(query, 'namespace', NAMESPACE_CHARS_MAX, 'every one') });

/** Facts of `?user=` (absent: of the account itself), newest first, in pages of `?limit=` that begin behind `?after=`; `?namespace=` narrows them. */
export async function answerMemory(plugins: RpcClient | undefined, accountId: string, query: Query): Promise<string> {
  const limit = textOf(query, 'limit', 8);
  if (limit !== '' && !(/^\d+$/.test(limit) && Number(limit) >= 1 && Number(limit) <= FACTS_MAX)) throw new ApiErrorException(apiError('invalid_value', { param: 'limit', message: `Invalid value for 'limit': expected an integer from 1 to ${FACTS_MAX}.` }));
  const asked = { ...ownerOf(accountId, query), limit: limit === '' ? FACTS_DEFAULT : Number(limit), after: textOf(query, 'after', ID_CHARS_MAX) };
  const { facts, hasMore, afterUnknown } = await installed(plugins).unary<MemoryRequest, MemoryResponse__Output>('ListMemory', asked, { deadlineMs: DEADLINE_MS });
  // The fact may have been deleted since the previous page. What follows it is not known, and an empty page would look like the end of the list.
  if (afterUnknown) throw new ApiErrorException(apiError('invalid_value', { param: 'after', message: "Invalid value for 'after': expected the id of a fact of this user that is still kept. Begin anew without it." }));
  const seconds = (ms: string): number => Math.floor(Number(ms) / 1_000);
  return renderJson({ object: 'list', data: facts.map(({ id, text, namespace, createdAtMs, updatedAtMs }) => ({ id, object: 'memory.fact', text, namespace, created_at: seconds(createdAtMs), updated_at: seconds(updatedAtMs) })), ...endsOf(facts, hasMore) });
}

/** Deletes the facts of `?user=` (absent: of the account itself), of one `?namespace=` or of all. Safe to repeat. */
export async function forgetMemory(plugins: RpcClient | undefined, accountId: string, query: Query): Promise<string> {
  const owner = ownerOf(accountId, query);
  const { deleted } = await installed(plugins).unary<MemoryRequest, DeletedResponse__Output>('DeleteMemory', owner, { deadlineMs: DEADLINE_MS });
  return renderJson({ object: 'memory', user: owner.user, deleted: true, count: deleted });
}
