/** Dispatches attempts to the provider. Each is journaled before it starts and before its last event is sent. */
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { LiveMap } from '@signalbox/kernel/live-map';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import { completionTokens, promptTokens } from '@signalbox/kernel/tokens';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import { failure, type Failure } from '@signalbox/wires/canonical';
import type { Ending } from './attempt.js';
import { bodiesBytesMax, createBodiesInWork, type BodiesInWork, type Room } from './bodies-in-work.js';
import { BYTES_PER_TOKEN, cardsAt, chargeOf, isDear, type Charge, type Seen } from './charge.js';
import { Conversation, type Drains } from './conversation.js';
import type { CredentialPool } from './credentials.js';
import { endRecord, failedMessage, failureOf, lastEvents, startRecord, type Asking } from './dispatch-records.js';
import { readTerms } from './dispatch-terms.js';
import { isOwed, seenOf, unwritten } from './endings.js';
import { countedAs, saysNothing, type EndpointBreakers } from './endpoint-breakers.js';
import { HoldGrowth, type ExtendHold } from './hold-growth.js';
import type { AttemptEnd, Journal } from './journal.js';
import { fieldBytes, isLarge, othersTurn } from './large-request.js';
import type { WorkerMetrics } from './metrics.js';
import type { Observations } from './observations.js';
import type { OwnCredential, OwnCredentials } from './own-credentials.js';
import { poolAfterLimit, poolAfterRefusal, poolAfterTooLarge, type PoolState } from './pool-state.js';
import { Probe } from './probe.js';
import type { Composed, Caller, ProviderAdapter, UpstreamRequest } from './provider.js';
import { endedAttributes, nameSpan } from './span.js';
import type { Place, Upstream } from './upstream.js';

/** Most attempts that go on without their caller. */
const DRAINS_MAX = 64;
/** Longest wait for a connection to the provider. Nothing is journaled yet, so the hold lives only as long as edge keeps it, and within that time other replicas must still be able to try. */
const PLACE_MS = 5_000;
/** How long an answer waits for its end record while the disk refuses writes. */
const END_WRITE_MS = 5_000;

export interface DispatchOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly credentials: CredentialPool;
  readonly journal: Journal;
  readonly observations: Observations;
  /** Absent: every planned attempt is sent to the provider. */
  readonly breakers?: EndpointBreakers;
  readonly metrics: WorkerMetrics;
  readonly clock: Clock;
  readonly log: Log;
  /** Accounts' own credentials. Without it, BYOK attempts fail with NO_CREDENTIAL; the operator's key is never used instead. */
  readonly ownCredentials?: Pick<OwnCredentials, 'resolve'>;
  /** Extends holds; without it none grows. */
  readonly extendHold?: ExtendHold;
  /** Room for large bodies; absent: as much as the memory of this process allows. */
  readonly bodies?: BodiesInWork;
}

/** Stands for the request of an attempt whose caller left before it could be sent. The attempt is journaled like any abandoned one, so that its hold ends. */
const UNSENT: UpstreamRequest = { path: '/', headers: [], body: Buffer.alloc(0) };
const NEVER_EXTENDS: ExtendHold = () => Promise.resolve(false);

export interface Dispatcher {
  /** Makes the attempt and emits its events. Settles once the attempt is journaled, which may be after the caller left. Rejects with `bad_message` or `overloaded` before anything was done, or with a Fault of the journal. */
  dispatch(request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>): Promise<void>;
  /** Ends a running stream whose client was cut off; the caller still gets the end event. */
  stop(requestId: string, attempt: number): void;
  inFlight(): number;
  /** Resolves once no attempt is under way. */
  idle(): Promise<void>;
}

/** A request to an account's own address goes through the guarded dialer. */
function guarded(composed: Composed, { own, adapter }: Asking): Composed {
  return own?.isAtOwnAddress === true && !('class' in composed) ? { ...composed, origin: composed.origin ?? adapter.origin, isGuarded: true } : composed;
}

/** Whether the end of an attempt tells anything about the endpoint. A failure of ours, or of an account's own credential or address, does not. */
function tellsOfEndpoint({ request, own }: Asking, ending: Ending, reason: Failure | undefined): boolean {
  if (ending.kind === 'abandoned' || isOurs(ending)) return false;
  return own === undefined ? !saysNothing(reason?.class, request.byok) : reason === undefined && !own.isAtOwnAddress;
}

const isOurs = (ending: Ending): boolean => ending.kind === 'failed' && ending.isOurs === true;

/** True once the end is written. False if the disk has not taken it within 5 s although somebody waits for it; it is then written later. Rejects if the write fails before that. */
function inTime(writing: Promise<void>, clock: Clock, isAlone: () => boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(END_WRITE_MS, () => {
      if (!isAlone()) resolve(false);
    });
    void writing.then(() => resolve(true), reject).finally(() => timer.cancel());
  });
}

export function createDispatcher(options: DispatchOptions): Dispatcher {
  const { upstream, journal, observations, metrics, clock, bodies = createBodiesInWork(bodiesBytesMax()) } = options;
  const warnSuspect = rareWarning(options.log, clock, 'Usage figures are hard to believe.');
  const warnDear = rareWarning(options.log, clock, 'The provider charged more than three times what its price card says.');
  const warnUnable = rareWarning(options.log, clock, 'This process has no file descriptor left to connect to its provider: raise the limit of open files (ulimit -n).');
  const warnUnasked = rareWarning(options.log, clock, "An account's own credential could not be fetched.");
  /** Running streams by request and attempt, so that they can be stopped. */
  const streams = new LiveMap<string, Conversation>();
  const nameOf = ({ requestId, attempt }: { readonly requestId: string; readonly attempt: number }): string => `${requestId}/${String(attempt)}`;
  const holdStream = async (name: string, conversation: Conversation): Promise<Ending> => {
    streams.set(name, conversation);
    try {
      return await conversation.hold();
    } finally {
      streams.delete(name);
    }
  };
  let inFlight = 0;
  let draining = 0;
  const idleWaiters = new Set<() => void>(); // kept: of a process that stops.
  const drains: Drains = {
    take: () => {
      if (draining >= DRAINS_MAX) return false;
      draining += 1;
      metrics.draining(draining);
      return true;
    },
    give: () => {
      draining -= 1;
      metrics.draining(draining);
    },
  };

  /** Ends an attempt that is not sent. It is not journaled and costs nothing. */
  const refuse = (emit: Emitter<DispatchEvent>, reason: Failure): void => {
    metrics.attempt(reason.class, 0, 0);
    emit.write({ failed: failedMessage(reason) });
  };

  const noCredential = (request: DispatchRequest__Output, emit: Emitter<DispatchEvent>, failureClass: 'RATE_LIMITED' | 'NO_CREDENTIAL' | 'ACCOUNTS_AWAY', retryAfterMs: number): void => {
    const reason = { ...failure(failureClass), retryAfterMs };
    // A failure of an account's own credential tells nothing about the endpoint.
    if (!request.byok) observations.observe({ endpointId: request.endpointId, ok: false, failure: reason.class, stream: request.stream, retryAfterMs, benchedMs: options.credentials.benchedMs(), atMs: clock.nowMs() });
    refuse(emit, reason);
  };

  /** The account's own credential; undefined if it has none, `away` if accounts cannot be asked now, which is not a refusal. */
  const ownOf = async ({ accountId, byokHandle, requestId }: DispatchRequest__Output): Promise<OwnCredential | 'away' | undefined> => {
    try {
      return byokHandle === '' ? undefined : await options.ownCredentials?.resolve(accountId, byokHandle, requestId);
    } catch (error) {
      warnUnasked({ provider: options.adapter.provider, request_id: requestId, error: error instanceof Error ? error.name : 'unknown' });
      return 'away';
    }
  };

  /** Tells the pool what the ending shows about the credential; undefined if another credential would not help. */
  const learn = ({ request, own, credentials, adapter, credential }: Asking, ending: Ending): PoolState | undefined => {
    if (ending.kind === 'answer' || ending.kind === 'stream') credentials.succeeded(credential);
    if (ending.kind !== 'failed') return undefined;
    const { class: failureClass, status, retryAfterMs } = ending.failure;
    if (failureClass === 'RATE_LIMITED') return poolAfterLimit(credentials, credential, request.providerModelId, retryAfterMs);
    // Once, since no credential rests for it.
    if (failureClass === 'CONTEXT_LENGTH' && status === 429 && request.retryOf.length === 0) return poolAfterTooLarge(credentials, credential, request.providerModelId);
    if (failureClass !== 'CREDENTIAL') return undefined;
    // Not for an account's own credential: only the account can fix it, and it could fill the log.
    if (own === undefined) options.log.warn('The provider refused a credential; it is benched.', { provider: options.adapter.provider, status });
    const pool = poolAfterRefusal(credentials, credential, request.providerModelId);
    if (status === 401 && credential.secret !== undefined) adapter.onCredentialRefused?.(credential.secret);
    return pool;
  };

  /** If the caller cancelled, it will tell no outcome, so it is written here. */
  const writeOutcome = (request: DispatchRequest__Output, conversation: Conversation, ended: AttemptEnd): void => {
    // If the link broke, edge may still be alive: the journal waits for its outcome and concludes one later. The same for a
    // round whose client edge cut off: only edge knows whether the client has seen anything of the earlier rounds.
    if (!conversation.isCancelled || (!conversation.isClientGone && request.rounds)) return;
    void journal.outcome(request.requestId, request.attempt, isOwed(conversation, ended, request) ? 'DELIVERED' : 'DISCARDED', false);
  };

  const count = (request: DispatchRequest__Output, ending: Ending, charge: Charge, firstByteMs: number, totalMs: number): void => {
    metrics.attempt(ending.kind === 'abandoned' ? 'abandoned' : isOurs(ending) ? 'unable' : (failureOf(ending)?.class ?? 'ok'), firstByteMs, totalMs);
    metrics.tokens(charge.tokens, charge.source);
    metrics.charged(request.byok ? 'byok' : 'gateway', charge.costNanoUsd, charge.savingsNanoUsd);
  };

  /** Warns of usage that is hard to believe, and of a provider that charges more than its price card says. */
  const warn = ({ request, own, adapter }: Asking, charge: Charge, seen: Seen): void => {
    // Usage reported by an account's own server is only flagged in the ledger; it must not alert the operator.
    if (charge.flags.includes('suspect') && own?.isAtOwnAddress !== true) {
      metrics.suspect();
      warnSuspect({
        provider: adapter.provider, model: request.providerModelId, request_id: request.requestId, source: charge.source, booked_prompt: promptTokens(charge.tokens), own_prompt: seen.promptTokens,
        booked_output: completionTokens(charge.tokens), own_output: Math.ceil(seen.outputBytes / BYTES_PER_TOKEN),
      });
    }
    if (own === undefined && isDear(charge)) warnDear({ provider: adapter.provider, model: request.providerModelId, request_id: request.requestId, told_nano_usd: String(charge.toldNanoUsd), card_nano_usd: charge.costNanoUsd.toString() });
  };

  /** Tells the breakers, routing and other replicas how the endpoint did. */
  const report = ({ request, own, credentials }: Asking, ending: Ending, ended: AttemptEnd, pool: PoolState | undefined, breakers: EndpointBreakers | undefined, probe: Probe | undefined): void => {
    const reason = failureOf(ending);
    // One event closes many connections, as it breaks off many answers.
    const isCut = reason !== undefined && (ending.kind === 'stream' || (ending.kind === 'failed' && ending.isStale === true));
    if (reason?.refusesStreams === true) breakers?.refusesStreams(request.endpointId);
    breakers?.record(request.endpointId, reason === undefined ? undefined : countedAs(reason), (pool?.retryAfterMs ?? 0) > 0, isCut ? ended.totalMs : undefined);
    probe?.judged();
    observations.observe({
      endpointId: request.endpointId,
      ok: reason === undefined,
      failure: reason === undefined ? ended.failure : countedAs(reason),
      stream: request.stream,
      ttftMs: ended.ttftMs,
      totalMs: ended.totalMs,
      outputTokens: completionTokens(ended.tokens),
      // A wait hint concerns one credential. The endpoint has to wait only if no other one is free.
      retryAfterMs: pool?.retryAfterMs ?? 0,
      benchedMs: pool === undefined || own !== undefined ? 0 : credentials.benchedMs(),
      atMs: clock.nowMs(),
      forBreakers: breakers !== undefined,
      cut: isCut,
      // Routing counts as spent only what was served (docs/auto.md, exploration).
      ...(reason === undefined && isAutoModelId(request.routedFrom) ? { autoDecisionId: request.decisionId } : {}),
    });
  };

  const run = async (request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>, room: Room): Promise<void> => {
    const terms = readTerms(request);
    const { span } = call;
    if (span !== undefined) nameSpan(span, request);
    const own = request.byok ? await ownOf(request) : undefined;
    if (own === 'away' || (request.byok && own === undefined)) {
      noCredential(request, emit, own === 'away' ? 'ACCOUNTS_AWAY' : 'NO_CREDENTIAL', 0);
      return;
    }
    const credentials = own?.pool ?? options.credentials;
    const adapter = own?.adapter ?? options.adapter;
    const taken = credentials.take(request.providerModelId);
    if (!taken.ok) {
      noCredential(request, emit, taken.isResting ? 'RATE_LIMITED' : 'NO_CREDENTIAL', taken.retryAfterMs);
      return;
    }
    try {
      await ask({ request, call, emit, terms, own, credentials, adapter, credential: taken.credential }, room);
    } finally {
      credentials.release(taken.credential);
    }
  };

  /** Composes the request, and sends it unless the breaker is open. */
  const ask = async (asking: Asking, room: Room): Promise<void> => {
    const { request, call, emit, own, adapter, credential } = asking;
    let hasLeft = false;
    const caller: Caller = {
      onLeave: (listener) =>
        call.onAbort(() => {
          hasLeft = true;
          listener();
        }),
      grow: (bytes) => room.grow(bytes),
    };
    const composing = isLarge(request) ? othersTurn().then(() => adapter.compose(request, credential.secret, caller)) : adapter.compose(request, credential.secret, caller);
    const composed = composing instanceof Promise ? await composing : composing;
    const upstreamRequest = hasLeft ? UNSENT : guarded(composed, asking);
    if ('class' in upstreamRequest) {
      // Not observed: it tells nothing about the endpoint.
      refuse(emit, upstreamRequest);
      return;
    }
    // Breakers are not for accounts' own credentials: these neither wait because of others' failures nor count towards them.
    const breakers = own === undefined ? options.breakers : undefined;
    const admission = breakers?.admit(request.endpointId, request.stream);
    if (admission !== undefined && admission.waitMs > 0) {
      // Not observed: the failures that opened the breaker have been, and this refusal is not one of them.
      refuse(emit, { ...failure('RATE_LIMITED'), retryAfterMs: admission.waitMs });
      return;
    }
    const probe = breakers !== undefined && admission?.isProbe === true ? new Probe(breakers, request.endpointId) : undefined;
    const place = hasLeft ? undefined : upstream.enter?.(upstreamRequest, request.accountId);
    try {
      const hasCaller = place?.turn === undefined || (await hasWaited(place, place.turn, call));
      await send(asking, hasCaller ? upstreamRequest : UNSENT, place, breakers, probe, room);
    } finally {
      place?.leave();
      probe?.end();
    }
  };

  /** Waits for a connection. False if the caller left first. Rejects with a Fault `overloaded` if none is free in time, since that is not the endpoint's failure. */
  const hasWaited = (place: Place, turn: Promise<void>, call: CallInfo): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const timer = clock.setTimer(PLACE_MS, () => reject(new Fault('overloaded', 'no connection to the provider is free')), { unref: true });
      const end = (hasCaller: boolean): void => {
        timer.cancel();
        resolve(hasCaller);
      };
      void turn.then(() => end(true));
      // Gives the place to the next in line at once.
      call.onAbort(() => {
        place.leave();
        end(false);
      });
    });

  /** Sends the request and follows the attempt to its end. */
  const send = async (asking: Asking, upstreamRequest: UpstreamRequest, place: Place | undefined, breakers: EndpointBreakers | undefined, probe: Probe | undefined, room: Room): Promise<void> => {
    const { request, call, emit, terms, own, adapter } = asking;
    const startedAt = clock.monotonicMs();
    const quoted = cardsAt(terms.steps, request.promptTokens);
    await journal.start(startRecord(asking, quoted, clock.nowMs()));
    if (request.tended) journal.tend(request.requestId, request.attempt);
    const conversation = new Conversation({ adapter, upstream, journal, clock, drains, request, upstreamRequest, place, call, emit, growth: HoldGrowth.of(request, options.extendHold ?? NEVER_EXTENDS, clock), grow: (bytes) => room.grow(bytes), onBegun: probe?.begun });
    const ending = await (request.clientStream ? holdStream(nameOf(request), conversation) : conversation.hold());
    const pool = learn(asking, ending);
    const seen = seenOf(ending, conversation, request, own?.isAtOwnAddress === true);
    const charge = chargeOf(seen, terms.steps, conversation.outputTokensMax);
    const ended = endRecord(asking, conversation, ending, charge, quoted, Math.round(clock.monotonicMs() - startedAt), clock.nowMs());
    const isWritten = await inTime(journal.end(request.requestId, request.attempt, ended), clock, () => conversation.isGone);
    call.span?.set(endedAttributes(ended));
    writeOutcome(request, conversation, ended);
    count(request, ending, charge, conversation.attempt.firstByteMs, ended.totalMs);
    warn(asking, charge, seen);
    const reason = failureOf(ending);
    if (isOurs(ending)) warnUnable({ provider: adapter.provider });
    if (tellsOfEndpoint(asking, ending, reason)) report(asking, ending, ended, pool, breakers, probe);
    if (conversation.isGone || (ending.kind === 'abandoned' && !conversation.isStopped)) return;
    const told = isWritten ? ending : unwritten(ending, conversation.attempt.status);
    for (const event of lastEvents(asking, conversation, told, charge, seen.usage ?? seen.promptUsage, pool)) emit.write(event);
  };

  return {
    dispatch: async (request, call, emit) => {
      const room = bodies.enter(fieldBytes(request), request.accountId);
      inFlight += 1;
      metrics.inFlight(inFlight);
      try {
        await run(request, call, emit, room);
      } finally {
        room.leave();
        inFlight -= 1;
        metrics.inFlight(inFlight);
        if (inFlight === 0) {
          for (const wake of idleWaiters) wake();
          idleWaiters.clear();
        }
      }
    },
    stop: (requestId, attempt) => streams.get(nameOf({ requestId, attempt }))?.stop(),
    inFlight: () => inFlight,
    idle: () =>
      inFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idleWaiters.add(resolve);
          }),
  };
}
