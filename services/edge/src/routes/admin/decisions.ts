/** Admin routes for routing decisions: one with its replay, many under another policy, and the artefacts that judge prompts. */
import type { DecisionsRequest, DecisionsResponse__Output, GetDecisionResponse__Output } from '@signalbox/contracts/billing';
import type { QualityState__Output, ReplayResponse__Output, WhatIfRequest, WhatIfResponse__Output, WhatIfSide__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Request, type Response } from 'express';
import { z } from 'zod';
import { decisionBody } from '../decisions/body.js';
import type { NamedFields } from '../known-names.js';
import { ANSWER_OPTIONS, bodyOf, id, refuse, send } from './answers.js';
import type { AdminChecks } from './checks.js';
import { strictFields } from '../strict-fields.js';

export interface AdminDecisionsDeps {
  readonly billing: RpcClient;
  readonly routing: RpcClient;
}

const LONG_DEADLINE_MS = 60_000;
/** Records asked for and compared at a time. */
const PAGE = 200;
const COMPARED_DEFAULT = 5_000;
const COMPARED_MAX = 50_000;

const names = z.array(z.string().min(1).max(200)).max(200).optional();
const whatIfSchema = strictFields({
  account: z.string().max(64).optional(),
  limit: z.number().int().min(1).max(COMPARED_MAX).default(COMPARED_DEFAULT),
  mode: z.enum(['quality', 'balanced', 'economy']).optional(),
  lambda: z.union([z.number(), z.string().regex(/^\d{1,7}(\.\d{1,9})?$/).transform(Number)], 'must be a number from 0 to 1000000').pipe(z.number().min(0).max(1_000_000)).optional(),
  baseline_model: z.string().max(200).optional(),
  allow_models: names,
  deny_models: names,
  allow_providers: names,
  deny_providers: names,
  catalog: z.enum(['current', 'file']).default('current'),
});

function namesOf(given: z.infer<typeof whatIfSchema>): NamedFields {
  return {
    allowModels: { field: 'allow_models', names: given.allow_models },
    denyModels: { field: 'deny_models', names: given.deny_models },
    allowProviders: { field: 'allow_providers', names: given.allow_providers },
    denyProviders: { field: 'deny_providers', names: given.deny_providers },
    models: { field: 'baseline_model', names: given.baseline_model === undefined ? [] : [given.baseline_model] },
  };
}

interface Sum {
  cost: number;
  quality: number;
  savings: number;
  readonly models: Map<string, number>;
}

function add(sum: Sum, side: WhatIfSide__Output | null): void {
  if (side === null) return;
  sum.cost += side.costNanoUsd;
  sum.quality += side.qualitySum;
  sum.savings += side.savingsNanoUsd;
  for (const { model, requests } of side.models) sum.models.set(model, (sum.models.get(model) ?? 0) + requests);
}

function sumBody({ cost, quality, savings, models }: Sum, compared: number): object {
  return {
    expected_cost_usd: cost / 1e9,
    predicted_quality: compared === 0 ? null : quality / compared,
    expected_savings_usd: savings / 1e9,
    models: [...models].sort((left, right) => right[1] - left[1]).map(([model, requests]) => ({ model, requests })),
  };
}

const qualityBody = ({ artefactId, canaryId, canaryShare, previousId }: QualityState__Output): object => ({
  artefact_id: artefactId === '' ? null : artefactId, canary_id: canaryId === '' ? null : canaryId, canary_share: canaryShare, previous_id: previousId === '' ? null : previousId,
});

export function createAdminDecisionsRouter({ billing, routing }: AdminDecisionsDeps, { unknownName, isAccount }: AdminChecks): Router {
  const router = Router();

  router.get('/decisions/:id', async (request: Request, response: Response) => {
    const { decision } = await billing.unary<object, GetDecisionResponse__Output>('GetDecision', { accountId: '', id: id(request) }, ANSWER_OPTIONS);
    if (decision === null) {
      refuse(response, 404, 'No such decision, or it is no longer kept.');
      return;
    }
    const replayed = await routing.unary<object, ReplayResponse__Output>('Replay', { recordJson: decision.recordJson }, ANSWER_OPTIONS);
    send(response, {
      ...decisionBody(decision),
      account_id: decision.accountId,
      replay: replayed.problem === '' ? { same_snapshot: replayed.sameSnapshot, same_plan: replayed.samePlan, attempts: replayed.attempts } : { problem: replayed.problem },
    });
  });

  router.post('/what-if', async (request: Request, response: Response) => {
    const given = bodyOf(request, whatIfSchema);
    if (given.account !== undefined && !(await isAccount(given.account, response))) return;
    // The names of a catalog that is not in force yet are not known.
    const unknown = given.catalog === 'file' ? undefined : await unknownName(namesOf(given));
    if (unknown !== undefined) {
      refuse(response, 400, unknown.message);
      return;
    }
    const question: WhatIfRequest = {
      ...(given.mode === undefined ? {} : { mode: given.mode }), ...(given.lambda === undefined ? {} : { costWeight: given.lambda }), ...(given.baseline_model === undefined ? {} : { baselineModel: given.baseline_model }),
      allowModels: given.allow_models ?? [], denyModels: given.deny_models ?? [], allowProviders: given.allow_providers ?? [], denyProviders: given.deny_providers ?? [], catalog: given.catalog === 'file' ? 'file' : '',
    };
    const recorded: Sum = { cost: 0, quality: 0, savings: 0, models: new Map() };
    const changed: Sum = { cost: 0, quality: 0, savings: 0, models: new Map() };
    let [read, compared, moved, refused, skipped] = [0, 0, 0, 0, 0];
    let [from, to] = [0, 0];
    for (let after = ''; read < given.limit; ) {
      const page = await billing.unary<DecisionsRequest, DecisionsResponse__Output>('Decisions', { accountId: given.account ?? '', after, limit: Math.min(PAGE, given.limit - read) }, { deadlineMs: LONG_DEADLINE_MS });
      if (page.decisions.length === 0) break;
      const found = await routing.unary<WhatIfRequest, WhatIfResponse__Output>('WhatIf', { ...question, recordsJson: page.decisions.map(({ recordJson }) => recordJson) }, { deadlineMs: LONG_DEADLINE_MS });
      if (found.problems.length > 0) {
        refuse(response, 400, found.problems.join(' '));
        return;
      }
      read += page.decisions.length;
      compared += found.compared;
      moved += found.moved;
      refused += found.refused;
      skipped += found.skipped;
      add(recorded, found.recorded);
      add(changed, found.changed);
      from = Number(page.decisions.at(-1)?.atMs ?? 0);
      if (to === 0) to = Number(page.decisions[0]?.atMs ?? 0);
      after = page.decisions.at(-1)?.id ?? '';
      if (!page.hasMore) break;
    }
    send(response, {
      decisions: read, compared, moved, refused, skipped, from: Math.floor(from / 1_000), to: Math.floor(to / 1_000), recorded: sumBody(recorded, compared), changed: sumBody(changed, compared),
    });
  });

  router.get('/quality', async (_request: Request, response: Response) => send(response, qualityBody(await routing.unary<object, QualityState__Output>('QualityShow', {}, ANSWER_OPTIONS))));
  router.post('/quality/rollback', async (_request: Request, response: Response) => {
    const state = await routing.unary<object, QualityState__Output>('QualityRollback', {}, ANSWER_OPTIONS);
    if (state.problems.length > 0) refuse(response, 409, state.problems.join(' '));
    else send(response, qualityBody(state));
  });
  return router;
}
