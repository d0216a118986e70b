/** Reuses a routing plan for further requests with the same question, for as long as routing allows (ADR 53). */
import { messageCodec } from '@signalbox/contracts/load';
import type { DecideRequest, DecideRequest__Output, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import type { RoutingPort } from '../domain/ports.js';

/** Most plans kept. When one more comes, all are dropped. */
const PLANS_MAX = 200;

/** Background questions under way for one plan. Requests beyond it are not recorded by routing, as those above its rate of records. */
const BESIDE_MAX = 4;
/** Delay of a background question, so that the request itself is served first. */
const BESIDE_AFTER_MS = 10;
/** Background questions are gathered for up to 100 ms: each wakes the routing process, which is expensive at modest rates. */
const BESIDE_GATHER_MS = 100;
/** A background question leaves at least 50 ms before its plan ends, so that the renewed plan is there in time. */
const BESIDE_AHEAD_MS = 50;

/** A plan is reused only for a question that came at least this often within the present and the previous span. Rarer requests are each decided by routing. */
const ASKED_MIN = 8;
const SPAN_MS = 500;

/** The fields of a question on which a plan with `reuse` does not depend. */
const OPEN = { requestId: '', accountId: '', seed: 0, session: '', promptText: '', promptTokens: 0, promptTokensMin: 0 };

/** How often a question came, in the present span and in the one before. */
interface Pace {
  spanEndMs: number;
  now: number;
  before: number;
}

interface KeptPlan {
  readonly pace: Pace;
  readonly plan: DecideResponse__Output;
  readonly endMs: number;
  /** From then on the next request that uses the plan also asks routing in the background, so that it is renewed before it ends. */
  readonly renewMs: number;
  readonly fromPromptTokens: number;
  readonly toPromptTokens: number;
  /** Routing wants to record each request that uses the plan. */
  readonly askBeside: boolean;
  /** Background questions under way, and those that wait to be sent. */
  asking: number;
  gathered: (() => void)[];
  /** When the waiting ones are sent; Infinity while there are none. */
  leaveMs: number;
  leave: Timer | undefined;
}

export interface KeptPlansOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  readonly makeId: IdSource;
  /** Called for each request that reused a plan. */
  readonly onReused?: () => void;
}

/**
 * Answers with a plan that was made for another request, where routing said that it would decide the same again; asks
 * `routing` otherwise, and where the question is rare. All fields of a question except `OPEN` are compared byte by byte,
 * including fields that are added to the message later. For requests that reuse a plan, routing is asked in the background,
 * for several at a time, where it wants to record each, and to renew the plan before it ends.
 */
export function createKeptPlans(routing: RoutingPort, { clock, makeId, onReused = () => undefined }: KeptPlansOptions): RoutingPort {
  const codec = messageCodec<DecideRequest, DecideRequest__Output>('signalbox.routing.v1.DecideRequest');
  const plans = new Map<string, KeptPlan>(); // kept: by question, for seconds; a plan serves many requests.
  /** Models that a kept plan is about: for others the key need not be computed. */
  const models = new Set<string>(); // kept: names of models.
  let doubts = 0;

  const keyOf = (request: DecideRequest): string => codec.encode({ ...request, ...OPEN }).toString('latin1');
  const count = (pace: Pace, nowMs: number): void => {
    if (nowMs >= pace.spanEndMs) {
      pace.before = nowMs < pace.spanEndMs + SPAN_MS ? pace.now : 0;
      pace.now = 0;
      pace.spanEndMs = nowMs + SPAN_MS;
    }
    pace.now += 1;
  };
  const find = (key: string, { promptTokens = 0 }: DecideRequest): KeptPlan | undefined => {
    const kept = plans.get(key);
    if (kept === undefined) return undefined;
    const nowMs = clock.monotonicMs();
    count(kept.pace, nowMs);
    if (nowMs >= kept.endMs || kept.pace.now + kept.pace.before < ASKED_MIN) return undefined;
    return promptTokens >= kept.fromPromptTokens && promptTokens <= kept.toPromptTokens ? kept : undefined;
  };
  const keep = (key: string, { model = '' }: DecideRequest, plan: DecideResponse__Output, askedMs: number): void => {
    if (plan.reuse === null) return;
    const { forMs, fromPromptTokens, toPromptTokens = Infinity, askBeside } = plan.reuse;
    if (plans.size >= PLANS_MAX && !plans.has(key)) {
      plans.clear();
      models.clear();
    }
    plans.set(key, { pace: plans.get(key)?.pace ?? { spanEndMs: askedMs + SPAN_MS, now: 1, before: 0 }, plan, endMs: askedMs + forMs, renewMs: askedMs + forMs / 2, fromPromptTokens, toPromptTokens, askBeside, asking: 0, gathered: [], leaveMs: Infinity, leave: undefined });
    models.add(model);
  };
  /** Asks, and keeps the answer unless an endpoint failed meanwhile: routing may have decided before it knew of the failure. */
  const ask = async (request: DecideRequest, keyed: string | undefined, question = request, doubtsBefore = doubts): Promise<DecideResponse__Output> => {
    const askedMs = clock.monotonicMs();
    let plan: DecideResponse__Output;
    try {
      plan = await routing.decide(question);
    } catch (error) {
      // While routing fails, no request may be served by an old plan.
      plans.clear();
      throw error;
    }
    if (doubts === doubtsBefore && plan.reuse !== null) keep(keyed ?? keyOf(request), request, plan, askedMs);
    return plan;
  };
  const askBeside = (request: DecideRequest, key: string, kept: KeptPlan, decisionId: string): void => {
    kept.asking += 1;
    const doubtsBefore = doubts;
    const tell = async (): Promise<void> => {
      try {
        const { reuse } = await ask(request, key, { ...request, decisionId, endpointId: kept.plan.attempts[0]?.endpointId ?? '' }, doubtsBefore);
        // Routing no longer allows such plans to be reused.
        if (reuse === null && plans.get(key) === kept) plans.delete(key);
      } catch {
        // `ask` has dropped all plans.
      } finally {
        kept.asking -= 1;
      }
    };
    kept.gathered.push(() => void tell());
    const nowMs = clock.monotonicMs();
    const isFull = kept.gathered.length === BESIDE_MAX;
    const leaveMs = isFull ? nowMs + BESIDE_AFTER_MS : Math.max(nowMs + BESIDE_AFTER_MS, Math.min(nowMs + BESIDE_GATHER_MS, kept.endMs - BESIDE_AHEAD_MS));
    if (leaveMs >= kept.leaveMs) return;
    kept.leave?.cancel();
    kept.leaveMs = leaveMs;
    kept.leave = clock.setTimer(leaveMs - nowMs, () => {
      kept.leaveMs = Infinity;
      for (const leave of kept.gathered.splice(0)) leave();
    }, { unref: true });
  };

  return {
    decide: (request) => {
      const key = request.explain !== true && models.has(request.model ?? '') ? keyOf(request) : undefined;
      const kept = key === undefined ? undefined : find(key, request);
      if (key === undefined || kept === undefined) return ask(request, key);
      onReused();
      const decisionId = makeId('decision');
      if (kept.asking < (kept.askBeside ? BESIDE_MAX : clock.monotonicMs() >= kept.renewMs ? 1 : 0)) askBeside(request, key, kept, decisionId);
      return Promise.resolve({ ...kept.plan, decisionId });
    },
    doubt: (endpointId) => {
      doubts += 1;
      for (const [key, { plan }] of plans) if (plan.attempts.some((attempt) => attempt.endpointId === endpointId)) plans.delete(key);
    },
  };
}
