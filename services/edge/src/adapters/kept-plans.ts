/** Reuses a routing plan for further requests alike, for as long as routing allows (ADR 53). */
import { messageCodec } from '@signalbox/contracts/load';
import type { DecideRequest, DecideRequest__Output, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import type { RoutingPort } from '../domain/ports.js';

/** More are not kept at a time: all are forgotten then, and asked for anew. */
const PLANS_MAX = 200;

/** Asked beside at a time for one plan: what a burst has beyond it goes unrecorded, as beyond the rate of records. */
const BESIDE_MAX = 4;
/** Nobody waits for it: the request goes first, and mostly has its answer by then. */
const BESIDE_AFTER_MS = 10;
/** 100 ms: gathers what is asked beside, since each question wakes routing, which finds little of it in the caches at modest rates. */
const BESIDE_GATHER_MS = 100;
/** 50 ms: for the answer, before the plan that it renews ends. */
const BESIDE_AHEAD_MS = 50;

/** A question that came less often within two spans is decided anew each time: of few requests each is routed by what routing says of it. */
const ASKED_MIN = 8;
const SPAN_MS = 500;

/** Of a question, what a plan with `reuse` does not rest on. */
const OPEN = { requestId: '', accountId: '', seed: 0, session: '', promptText: '', promptTokens: 0 };

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
  /** From then on the next request that goes by it asks beside, so that it is renewed before it ends. */
  readonly renewMs: number;
  readonly fromPromptTokens: number;
  readonly toPromptTokens: number;
  /** Routing has room to record each request. */
  readonly askBeside: boolean;
  /** Questions beside it under way, and those that gather. */
  asking: number;
  gathered: (() => void)[];
  /** When those leave; Infinity while there are none. */
  leaveMs: number;
  leave: Timer | undefined;
}

export interface KeptPlansOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  readonly makeId: IdSource;
  /** Told of each request that waited for nobody. */
  readonly onReused?: () => void;
}

/**
 * Answers from a plan that was made for another request where routing said that it would make the same again; asks `routing`
 * otherwise, and where few ask the same. Whatever a question says beside `OPEN` is compared byte by byte, fields that do not exist yet among it.
 * Routing is asked beside such requests, for several at a time, and nobody waits, where it wants to record each, and to renew the plan before it ends.
 */
export function createKeptPlans(routing: RoutingPort, { clock, makeId, onReused = () => undefined }: KeptPlansOptions): RoutingPort {
  const codec = messageCodec<DecideRequest, DecideRequest__Output>('signalbox.routing.v1.DecideRequest');
  const plans = new Map<string, KeptPlan>(); // kept: by question, for seconds; a plan serves many requests.
  /** Asked for in one of them: of others no question is rendered. */
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
  /** Asks, and keeps the answer unless an endpoint failed meanwhile: routing may have decided before it heard of that. */
  const ask = async (request: DecideRequest, keyed: string | undefined, question = request, doubtsBefore = doubts): Promise<DecideResponse__Output> => {
    const askedMs = clock.monotonicMs();
    let plan: DecideResponse__Output;
    try {
      plan = await routing.decide(question);
    } catch (error) {
      // Nothing is routed past it.
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
        // It is asked within the reach of this plan: no such plan is made any more.
        if (reuse === null && plans.get(key) === kept) plans.delete(key);
      } catch {
        // Nothing is kept any more.
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
