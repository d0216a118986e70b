/** /api/policy: an account's own settings of routing and spending. */
import type { Account, Account__Output, AccountAnswer__Output, GetAccountRequest, SetAccountRequest } from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import { Router, type NextFunction, type Request, type Response } from 'express';
import { z } from 'zod';
import { capBodies, costCaps } from '../api-auth/schema.js';
import { INVALID, sendJson, type Control } from '../control-route.js';
import type { NameCheck, NamedFields } from '../known-names.js';
import { takesQuery } from '../query-fields.js';
import { strictFields } from '../strict-fields.js';

const NAMES_MAX = 200;
const names = z.array(z.string().min(1).max(200)).max(NAMES_MAX).nullish();

const policySchema = strictFields({
  mode: z.enum(['quality', 'balanced', 'economy']).nullish(),
  lambda: z.number().min(0).max(1_000_000).nullish(),
  baseline_model: z.string().min(1).max(200).nullish(),
  allow_models: names,
  deny_models: names,
  allow_providers: names,
  deny_providers: names,
  cost_caps: costCaps.nullish(),
  hard_cap: z.boolean().nullish(),
  store_answers: z.boolean().nullish(),
  /** Read-only and ignored here, so that a client may change what it read and send it back. */
  effective: z.unknown().optional(),
});

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

const FIELDS = ['routing_mode', 'cost_weight', 'policy_baseline_model', 'allow_models', 'deny_models', 'allow_providers', 'deny_providers', 'policy_cost_caps', 'policy_hard_cap', 'policy_store_answers'];

/** The account's own settings, so that sending them back changes nothing. `effective`: what applies, with the operator's settings. */
function policyBody(account: Account__Output): object {
  return {
    mode: account.routingMode === '' ? null : account.routingMode,
    lambda: account.costWeight ?? null,
    baseline_model: account.policyBaselineModel || null,
    allow_models: account.allowModels,
    deny_models: account.denyModels,
    allow_providers: account.allowProviders,
    deny_providers: account.denyProviders,
    cost_caps: capBodies(account.policyCostCaps),
    hard_cap: account.policyHardCap,
    store_answers: account.policyStoreAnswers ?? null,
    effective: {
      baseline_model: account.policyBaselineModel || account.baselineModel || null,
      hard_cap: account.hardCap || account.policyHardCap,
      store_answers: account.policyStoreAnswers ?? account.storeAnswers,
    },
  };
}

/** Absent settings return to their default. */
function settingsOf(id: string, policy: z.infer<typeof policySchema>): Account {
  return {
    id,
    routingMode: policy.mode ?? '',
    policyBaselineModel: policy.baseline_model ?? '',
    allowModels: policy.allow_models ?? [],
    denyModels: policy.deny_models ?? [],
    allowProviders: policy.allow_providers ?? [],
    denyProviders: policy.deny_providers ?? [],
    policyCostCaps: policy.cost_caps ?? [],
    policyHardCap: policy.hard_cap ?? false,
    ...(policy.store_answers === null || policy.store_answers === undefined ? {} : { policyStoreAnswers: policy.store_answers }),
    ...(policy.lambda === null || policy.lambda === undefined ? {} : { costWeight: policy.lambda }),
  };
}

function namesOf(policy: z.infer<typeof policySchema>, { allowModels, denyModels, allowProviders, denyProviders, policyBaselineModel }: Account__Output): NamedFields {
  return {
    allowModels: { field: 'allow_models', names: policy.allow_models, kept: allowModels },
    denyModels: { field: 'deny_models', names: policy.deny_models, kept: denyModels },
    allowProviders: { field: 'allow_providers', names: policy.allow_providers, kept: allowProviders },
    denyProviders: { field: 'deny_providers', names: policy.deny_providers, kept: denyProviders },
    models: { field: 'baseline_model', names: isAbsent(policy.baseline_model) ? [] : [policy.baseline_model], kept: [policyBaselineModel] },
  };
}

export interface PolicyRouteDeps {
  readonly control: Control;
  readonly unknownName: NameCheck;
  /** Refuses keys that lack it. */
  needsScope(scope: string): (request: Request, response: Response, next: NextFunction) => void;
  /** Refuses changes by keys that have limits of their own. */
  needsNoLimits(request: Request, response: Response, next: NextFunction): void;
}

/** Router to be mounted at /api/policy. */
export function createApiPolicyRouter({ control: { call, parse, refuse, fail, callerOf }, unknownName, needsScope, needsNoLimits }: PolicyRouteDeps): Router {
  const answer = (response: Response, { account, problem }: AccountAnswer__Output): void => {
    if (account !== null) sendJson(response, 200, policyBody(account));
    else if (problem !== '') refuse(response, problem);
    else throw new Fault('internal_error', 'the account of a key does not exist');
  };
  const idOf = (request: Request): string => callerOf(request).caller.account.id;

  const router = Router();
  router.get('/', needsScope('usage:read'), takesQuery(), async (request, response) => answer(response, await call<GetAccountRequest, AccountAnswer__Output>(request, 'GetAccount', { id: idOf(request) })));
  router.put('/', needsScope('keys'), needsNoLimits, takesQuery(), async (request, response) => {
    const policy = await parse(request, response, policySchema);
    if (policy === undefined) return;
    const { caller, requestId } = callerOf(request);
    const unknown = await unknownName(namesOf(policy, caller.account), requestId);
    if (unknown !== undefined) {
      fail(response, { ...INVALID, code: 'invalid_value', param: unknown.field, message: unknown.message });
      return;
    }
    answer(response, await call<SetAccountRequest, AccountAnswer__Output>(request, 'SetAccount', { account: settingsOf(idOf(request), policy), fields: FIELDS }));
  });
  return router;
}
