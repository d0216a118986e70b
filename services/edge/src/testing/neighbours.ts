/** The other services in memory: a plan, an admission, workers that play a script. */
import type { AdmitRequest, Decision } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { DispatchEvent__Output, DispatchRequest, End__Output, Failed__Output, Head__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import type { Neighbours } from '../domain/conduct.js';
import { failureOf } from '../domain/attempt-failures.js';
import type { Admission, AttemptListener, Caller } from '../domain/ports.js';
import { createWaitingRoom } from '../domain/waiting-room.js';
import { createRetryBudget, type RetryBudget } from '../domain/retry-budget.js';
import type { SchemaCheck } from '../domain/healing.js';

export function admissionOf(decision: Decision & string, over: Partial<Admission> = {}): Admission {
  return { decision, retryAfterMs: 0, limitSource: '', limitNanoUsd: '0', spendNanoUsd: '0', reservedNanoUsd: '0', periods: null, heldNanoUsd: '0', heldTokens: '0', epoch: '', draws: false, ofOwnCredentials: false, ...over };
}

export function endWith(over: Partial<End__Output> = {}): End__Output {
  const tokens = { inputUncached: 10, cacheRead: 0, cacheWrite: 0, outputText: 5, outputReasoning: 0, audio: 0, image: 0 };
  return { tokens, costNanoUsd: '20000', savingsNanoUsd: '100', source: 'PROVIDER', flags: [], finishReason: 'stop', cut: null, cachedKnown: false, reasoningKnown: false, stoppedBy: '', cardId: '', ...over };
}

export const deltaOf = (text: string, index = 0): string => `[{"index":${index},"delta":{"content":${JSON.stringify(text)}},"logprobs":null,"finish_reason":null}]`;
export const finishOf = (index = 0): string => `[{"index":${index},"delta":{},"logprobs":null,"finish_reason":"stop"}]`;

export const events = {
  started: (): DispatchEvent__Output => ({ event: 'started', started: {} }),
  head: (over: Partial<Head__Output> = {}): DispatchEvent__Output => ({ event: 'head', head: { systemFingerprint: '', serviceTier: '', ...over } }),
  role: (): DispatchEvent__Output => ({ event: 'chunk', chunk: { choices: Buffer.from('[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'), content: false, finish: false } }),
  /** `ended`: index of a choice that has ended while this one goes on. */
  text: (text: string, index = 0, ended?: number): DispatchEvent__Output => ({ event: 'chunk', chunk: { choices: Buffer.from(deltaOf(text, index)), content: true, finish: false, ...(ended === undefined ? {} : { ended: Buffer.from(finishOf(ended)) }) } }),
  finish: (index = 0): DispatchEvent__Output => ({ event: 'chunk', chunk: { choices: Buffer.from(finishOf(index)), content: false, finish: true } }),
  body: (text: string): DispatchEvent__Output => ({ event: 'body', body: { choices: Buffer.from(`[{"index":0,"message":{"role":"assistant","content":${JSON.stringify(text)},"refusal":null},"logprobs":null,"finish_reason":"stop"}]`), systemFingerprint: '', serviceTier: '' } }),
  end: (over: Partial<End__Output> = {}): DispatchEvent__Output => ({ event: 'end', end: endWith(over) }),
  failed: (failureClass: Failed__Output['class'], over: Partial<Failed__Output> = {}): DispatchEvent__Output => ({ event: 'failed', failed: { ...failureOf(failureClass, true), status: 500, ...over } }),
};

/** One dispatched attempt, controlled by the test. */
export interface PlayedCall {
  readonly provider: string;
  readonly request: DispatchRequest;
  readonly listener: AttemptListener;
  /** The replica to avoid. */
  readonly besides: object | undefined;
  /** The replica that has it. */
  replica: object | undefined;
  /** Another replica is connected. */
  hasOthers: boolean;
  isPaused: boolean;
  isCancelled: boolean;
  cancelledFor: 'client_left' | undefined;
  /** Delivers events, then ends the call without a fault. */
  play(...played: readonly DispatchEvent__Output[]): void;
}

/** What a worker does with an attempt as soon as it arrives; absent = nothing, so that the test does. */
export type Script = (call: PlayedCall) => void;

export interface FakeNeighbours extends Neighbours {
  readonly clock: FakeClock;
  checkSchema: SchemaCheck;
  retries: RetryBudget;
  plan: DecideResponse__Output | Fault;
  /** The latest record of the caller while the request runs; undefined = unchanged. */
  present: Caller | undefined;
  /** How often it was read. */
  presentAsked: number;
  /** Questions to routing. */
  readonly decided: DecideRequest[];
  /** Endpoints for which `doubt` was called. */
  readonly doubted: string[];
  /** Answers in order; the last one stays. */
  admissions: (Admission | Fault)[];
  readonly asked: AdmitRequest[];
  /** Released holds, each with its draw, if any. */
  readonly released: string[];
  /** Amounts and tokens to which holds were to be extended. */
  readonly extended: (readonly [bigint, bigint])[];
  /** Rounds whose worker was told that edge is alive. */
  readonly tended: string[];
  /** Streams whose worker was asked to end them. */
  readonly stopped: string[];
  /** What the worker does then; undefined = nothing. */
  onStop: (() => void) | undefined;
  grantsExtensions: boolean | Fault;
  readonly calls: PlayedCall[];
  readonly outcomes: string[];
  /** Outcomes told to workers resolve when this does. */
  heard: Promise<void>;
  /** False = telling them fails. */
  isHeard: boolean;
  /** Scripts by provider; any other provider has no worker. */
  readonly scripts: Map<string, Script>;
}

export function createFakeNeighbours(plan: DecideResponse__Output, clock: FakeClock = createFakeClock()): FakeNeighbours {
  const neighbours: FakeNeighbours = {
    clock,
    waitingRoom: createWaitingRoom(clock),
    heartbeatMs: 10_000,
    checkSchema: () => Promise.resolve(undefined),
    retries: createRetryBudget(clock),
    plan,
    present: undefined,
    presentAsked: 0,
    presentCaller: (caller) => {
      neighbours.presentAsked += 1;
      return neighbours.present ?? caller;
    },
    decided: [],
    doubted: [],
    admissions: [admissionOf('ADMITTED', { heldNanoUsd: '1000000000' })],
    asked: [],
    released: [],
    extended: [],
    tended: [],
    stopped: [],
    onStop: undefined,
    grantsExtensions: true,
    calls: [],
    outcomes: [],
    heard: Promise.resolve(),
    isHeard: true,
    scripts: new Map(),
    routing: {
      decide: async (request) => {
        neighbours.decided.push(request);
        await Promise.resolve();
        if (neighbours.plan instanceof Fault) throw neighbours.plan;
        return neighbours.plan;
      },
      doubt: (endpointId) => void neighbours.doubted.push(endpointId),
    },
    quota: {
      admit: async (request) => {
        neighbours.asked.push(request);
        await Promise.resolve();
        const next = neighbours.admissions.length > 1 ? neighbours.admissions.shift() : neighbours.admissions[0];
        if (next === undefined || next instanceof Fault) throw next ?? new Fault('quota_unavailable', 'no answer');
        return next;
      },
      release: (_accountId, requestId, draw) => void neighbours.released.push(draw === undefined ? requestId : `${requestId} ${draw.advanceId ?? ''}`),
      extend: (_accountId, _requestId, toNanoUsd, toTokens) => {
        neighbours.extended.push([toNanoUsd, toTokens]);
        return neighbours.grantsExtensions instanceof Fault ? Promise.reject(neighbours.grantsExtensions) : Promise.resolve(neighbours.grantsExtensions);
      },
    },
    workers: {
      dispatch: (provider, request, listener, besides) => {
        const script = neighbours.scripts.get(provider);
        if (script === undefined) return undefined;
        let isOver = false;
        const end = (fault: Fault | undefined): void => {
          if (isOver) return;
          isOver = true;
          listener.onEnd(fault);
        };
        const call: PlayedCall = {
          provider,
          request,
          listener,
          besides,
          replica: undefined,
          hasOthers: false,
          isPaused: false,
          isCancelled: false,
          cancelledFor: undefined,
          play: (...played) => {
            for (const event of played) if (!isOver) listener.onEvent(event);
            end(undefined);
          },
        };
        neighbours.calls.push(call);
        queueMicrotask(() => script(call));
        return {
          cancel: (why) => {
            call.isCancelled = true;
            call.cancelledFor = why;
            end(new Fault('cancelled', 'the caller cancelled'));
          },
          pause: () => {
            call.isPaused = true;
          },
          resume: () => {
            call.isPaused = false;
          },
          peer: () => call.replica,
          hasOthers: () => call.hasOthers,
        };
      },
      tend: (provider, _requestId, attempt) => void neighbours.tended.push(`${provider}#${attempt}`),
      stop: (provider, _requestId, attempt) => {
        neighbours.stopped.push(`${provider}#${attempt}`);
        neighbours.onStop?.();
      },
      tellOutcome: (provider, _requestId, attempt, outcome, { isFollowed = false, goesOn = false } = {}) => {
        neighbours.outcomes.push(`${provider}#${attempt} ${outcome}${isFollowed ? ' followed' : ''}${goesOn ? ' once ended' : ''}`);
        return neighbours.heard.then(() => neighbours.isHeard);
      },
    },
  };
  return neighbours;
}
