/** Plans that hold for further requests, kept for the moment for which routing says so. */
import { messageCodec } from '@signalbox/contracts/load';
import type { DecideRequest, DecideRequest__Output, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import type { RoutingPort } from '../domain/ports.js';

/** More are not kept at a time: all are forgotten then, and asked for anew. */
const PLANS_MAX = 200;

/** Of a question, what a plan with `reuse` does not rest on. */
const OPEN = { requestId: '', accountId: '', seed: 0, session: '', promptText: '', promptTokens: 0 };

interface KeptPlan {
  readonly plan: DecideResponse__Output;
  readonly endMs: number;
  readonly fromPromptTokens: number;
  readonly toPromptTokens: number;
}

export interface KeptPlansOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly makeId: IdSource;
  /** Told of each request that asked nobody. */
  readonly onReused?: () => void;
}

/**
 * Answers from a plan that was made for another request where routing said that it would make the same again; asks `routing`
 * otherwise. Whatever a question says beside `OPEN` is compared byte by byte, fields that do not exist yet among it.
 */
export function createKeptPlans(routing: RoutingPort, { clock, makeId, onReused = () => undefined }: KeptPlansOptions): RoutingPort {
  const codec = messageCodec<DecideRequest, DecideRequest__Output>('signalbox.routing.v1.DecideRequest');
  const plans = new Map<string, KeptPlan>();
  /** Asked for in one of them: of others no question is rendered. */
  const models = new Set<string>();

  const keyOf = (request: DecideRequest): string => codec.encode({ ...request, ...OPEN }).toString('latin1');
  const find = (request: DecideRequest): DecideResponse__Output | undefined => {
    const { model = '', promptTokens = 0, explain = false } = request;
    if (explain || !models.has(model)) return undefined;
    const kept = plans.get(keyOf(request));
    if (kept === undefined || clock.monotonicMs() >= kept.endMs) return undefined;
    return promptTokens >= kept.fromPromptTokens && promptTokens <= kept.toPromptTokens ? kept.plan : undefined;
  };
  const keep = (request: DecideRequest, plan: DecideResponse__Output, askedMs: number): void => {
    if (plan.reuse === null) return;
    const { forMs, fromPromptTokens, toPromptTokens = Infinity } = plan.reuse;
    if (plans.size >= PLANS_MAX) {
      plans.clear();
      models.clear();
    }
    plans.set(keyOf(request), { plan, endMs: askedMs + forMs, fromPromptTokens, toPromptTokens });
    models.add(request.model ?? '');
  };

  return {
    decide: async (request) => {
      const kept = find(request);
      if (kept !== undefined) {
        onReused();
        return { ...kept, decisionId: makeId('decision') };
      }
      const askedMs = clock.monotonicMs();
      const plan = await routing.decide(request);
      keep(request, plan, askedMs);
      return plan;
    },
    doubt: (endpointId) => {
      for (const [key, { plan }] of plans) if (plan.attempts.some((attempt) => attempt.endpointId === endpointId)) plans.delete(key);
    },
  };
}
