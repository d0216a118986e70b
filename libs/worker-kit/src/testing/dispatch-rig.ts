/** Test helper: a dispatcher that is called directly, with a fake provider and with a journal and a quota that record their calls. */
import type { AttemptObserved } from '@signalbox/contracts/events';
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { failure, type Failure } from '@signalbox/wires/canonical';
import { createCredentialPool } from '../credentials.js';
import { createDispatcher, type Dispatcher, type DispatchOptions } from '../dispatch.js';
import { createEndpointBreakers } from '../endpoint-breakers.js';
import type { AttemptEnd, AttemptStart, Journal } from '../journal.js';
import { createWorkerMetrics } from '../metrics.js';
import { createOpenAiChatAdapter } from '../openai-chat-adapter.js';
import type { ProviderAdapter } from '../provider.js';
import { createUpstream, type Upstream } from '../upstream.js';

export const CARD = {
  id: 'card-1',
  inputUncached: '1000000000',
  cacheRead: '500000000',
  cacheWrite: '0',
  outputText: '2000000000',
  outputReasoning: '2000000000',
  audio: '0',
  image: '0',
  requestNanoUsd: '0',
};
/** 20,000 nano-dollars at `CARD`. */
export const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** What the wire answers for `providerModelId: 'unsendable'`. */
export const UNSENDABLE: Failure = { ...failure('BAD_REQUEST'), publicMessage: 'This provider takes no sound.', publicParam: 'messages.[0]' };

export function requestOf(over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output {
  return {
    requestId: 'chatcmpl-01JD8Z6T9M3W5R7V2K4X6B8N0Q',
    attempt: 1,
    retryOf: [],
    accountId: 'acct_1',
    keyId: 'key_1',
    endpointId: 'e1',
    model: 'm',
    provider: 'fake',
    providerModelId: 'fake-1',
    wireProtocol: 'openai-chat',
    card: CARD,
    referenceCard: null,
    periods: { day: '', week: '', month: '', plan: '', reservedAtMs: '0' },
    heldNanoUsd: '0',
    byok: false,
    byokHandle: '',
    stream: true,
    maxTokensParam: '',
    temperatureMax: 2,
    fields: [{ name: 'messages', value: Buffer.from('[{"role":"user","content":"hi"}]') }],
    promptTokens: 10,
    mediaTokens: 0,
    firstByteTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    wholeTimeoutMs: 0,
    responseFormat: '',
    routedFrom: '',
    decisionId: '',
    clientStream: true,
    maxOutputTokens: 0,
    contextWindow: 0,
    gather: false,
    heldOutputTokens: 0,
    heldTokens: '0',
    unwatchedTokens: '0',
    outputPriceMax: '0',
    wholeNanoUsd: '0',
    shortened: false,
    holdEpoch: '',
    draw: null,
    rounds: false, tended: false,
    earlierNanoUsd: '0',
    earlierTokens: '0',
    toolNames: [],
    steps: [],
    referenceSteps: [],
    ...over,
  };
}

/** One event of a provider's stream. */
export const chunk = (choices: readonly object[], more: object = {}): string =>
  sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
export const text = (content: string): string => chunk([{ index: 0, delta: { content }, finish_reason: null }]);

/** The choices of all chunks, as the client gets them. */
export function choicesOf(
  events: readonly DispatchEvent[],
): { readonly index: number; readonly delta: { readonly content?: string }; readonly finish_reason: string | null }[] {
  return events.flatMap((event) => (event.chunk === undefined ? [] : (JSON.parse(String(event.chunk?.choices)) as ReturnType<typeof choicesOf>)));
}

export interface DispatchRig {
  readonly provider: FakeProvider;
  /** Clock of the breakers; of the whole dispatcher once passed to `use`. */
  readonly clock: FakeClock;
  /** Journal calls and the writing of the last event, in order. */
  readonly log: string[];
  readonly starts: AttemptStart[];
  readonly ends: AttemptEnd[];
  readonly checkpoints: TokenCounts[];
  /** What quota was asked to hold: nano-dollars and tokens. */
  readonly extended: string[];
  readonly observed: AttemptObserved[];
  /** Bytes of all answers that the dispatcher has processed. */
  readBytes(): number;
  /** Quota's answers in order; the last one is repeated. */
  grants: (boolean | Fault | Promise<boolean>)[];
  /** Replaces the dispatcher. The first one has the system's clock and one credential, `sk-secret-one`. */
  use(clock: Clock, over?: Partial<DispatchOptions> & { readonly secrets?: readonly string[] }): void;
  dispatch: Dispatcher['dispatch'];
  stopAttempt: Dispatcher['stop'];
  /** Runs one attempt and resolves with all its events. `leave` aborts the call, by default as a cancellation. */
  run(request: DispatchRequest__Output, onEvent?: (event: DispatchEvent, leave: (code?: FaultCode) => void) => void): Promise<DispatchEvent[]>;
  stop(): Promise<void>;
}

export async function startDispatchRig(): Promise<DispatchRig> {
  const provider = await startFakeProvider();
  const clock = createFakeClock();
  const log: string[] = [];
  const starts: AttemptStart[] = [];
  const ends: AttemptEnd[] = [];
  const checkpoints: TokenCounts[] = [];
  const extended: string[] = [];
  const observed: AttemptObserved[] = [];
  const journal: Journal = {
    start: (record) =>
      Promise.resolve(void (log.push(`start ${String(record.attempt)} after ${String(provider.requests.length)} requests`), starts.push(record))),
    checkpoint: (_requestId, _attempt, tokens) => void checkpoints.push(tokens),
    end: (_id, _attempt, end) => Promise.resolve(void (log.push('end'), ends.push(end))),
    outcome: (_id, _attempt, outcome, told) => void log.push(`${outcome} ${String(told)}`),
    tend: (_id, attempt) => void log.push(`tend ${String(attempt)}`),
    state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
  };
  const ordinary = createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl });
  const adapter: ProviderAdapter = {
    ...ordinary,
    compose: (request, secret, caller) =>
      request.providerModelId === 'unsendable'
        ? UNSENDABLE
        : request.providerModelId === 'waiting'
          ? new Promise((resolve) => caller?.onLeave(() => resolve(UNSENDABLE)))
          : ordinary.compose(request, secret),
  };
  const real = createUpstream(adapter.origin);
  let readBytes = 0;
  const upstream: Upstream = {
    enter: (request, accountId) => real.enter(request, accountId),
    post: (request, id, to, place) =>
      real.post(request, id, {
        onSent: () => to.onSent?.(),
        onHead: (status, headers) => to.onHead(status, headers),
        onData: (bytes) => {
          to.onData(bytes);
          readBytes += bytes.length;
        },
        onEnd: () => to.onEnd(),
        onError: (kind) => to.onError(kind),
      }, place),
    close: () => real.close(),
  };
  const createOn: (...of: Parameters<DispatchRig['use']>) => Dispatcher = (time, { secrets = ['sk-secret-one'], ...over } = {}) =>
    createDispatcher({
      adapter,
      upstream,
      journal,
      clock: time,
      log: silentLog,
      credentials: createCredentialPool(
        secrets.map((secret) => new Secret(secret)),
        time,
      ),
      breakers: createEndpointBreakers({ clock, origin: 'call_1', onProbe: () => undefined }),
      extendHold: async (_account, _request, toNanoUsd, toTokens) => {
        extended.push(`${String(toNanoUsd)} ${String(toTokens)}`);
        const granted = (await (rig.grants.length > 1 ? rig.grants.shift() : rig.grants[0])) ?? false;
        if (granted instanceof Fault) throw granted;
        return granted;
      },
      observations: { observe: (attempt) => void observed.push(attempt), observeProbe: () => undefined, observeCredential: () => undefined, start: () => undefined, stop: () => undefined },
      metrics: createWorkerMetrics(createMetrics({ service: 'worker-fake', withProcessMetrics: false })),
      ...over,
    });
  let dispatcher = createOn(systemClock);
  const rig: DispatchRig = {
    provider,
    clock,
    log,
    starts,
    ends,
    checkpoints,
    extended,
    observed,
    readBytes: () => readBytes,
    grants: [true],
    use: (...of) => void (dispatcher = createOn(...of)),
    dispatch: (...of) => dispatcher.dispatch(...of),
    stopAttempt: (...of) => dispatcher.stop(...of),
    run: async (request, onEvent = () => undefined) => {
      const events: DispatchEvent[] = [];
      let tell: (reason: Fault) => void = () => undefined;
      const { signal } = new AbortController();
      await dispatcher.dispatch(
        request,
        { requestId: request.requestId, traceparent: '', signal, onAbort: (listener) => void (tell = listener), remainingMs: () => Infinity },
        {
          write: (event) => {
            if (event.end !== undefined || event.failed !== undefined) log.push('last event');
            events.push(event);
            onEvent(event, (code = 'cancelled') => tell(new Fault(code, 'left')));
            return true;
          },
          drained: () => Promise.resolve(),
        },
      );
      return events;
    },
    stop: async () => {
      await upstream.close();
      await provider.stop();
    },
  };
  return rig;
}
