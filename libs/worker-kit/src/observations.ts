/** Tells routing and the other replicas of this worker how attempts went: batched, at most once, never awaited. Failures and ends of probes are sent at once. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { AttemptObserved, AttemptsObserved, AttemptsObserved__Output, CredentialObserved } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Log } from '@signalbox/runtime/log';
import type { ProbeStep } from './endpoint-breakers.js';

/** A second's delay does not matter to statistics over minutes. */
const BATCH_MS = 1_000;
/** Least time between batches that contain a failure. Short, so that breakers elsewhere count it before the next call, but many failures do not cause as many messages. */
const FAILURES_MS = 20;
const BATCH_MAX = 1_024;
/** How often a replica announces itself, even if it has nothing else to tell. */
export const HELLO_MS = 60_000;

const PROBE_FIELDS = { sent: 'probedEndpointIds', begun: 'begunEndpointIds', void: 'voidEndpointIds' } as const satisfies Record<ProbeStep, keyof AttemptsObserved>;

const codecOf = () => messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
const subjectOf = (provider: string): string => `attempts.v1.${provider}`;

export interface Observations {
  observe(attempt: AttemptObserved): void;
  /** A probe was sent to an endpoint whose breaker was open, or the next one may follow. Announced at once. */
  observeProbe(endpointId: string, step: ProbeStep): void;
  /** What was learnt about a credential, for the other replicas; the latest for each model counts. Sent as soon as failures are. */
  observeCredential(credential: CredentialObserved): void;
  /** Announces this replica to the others, now and every minute. */
  start(): void;
  /** Sends what is waiting and stops the regular announcements. */
  stop(): void;
}

export interface ObservationsOptions {
  readonly bus: Bus;
  readonly provider: string;
  /** Id of this replica. */
  readonly origin: string;
  readonly clock: Clock;
  /** Mark of its set of credentials; 0 or absent = none. */
  readonly pool?: number;
  /** Whether any of the operator's credentials is usable. Routing leaves the provider out while all are benched; this tells it when one works again, or when another replica has one. */
  readonly hasCredential?: () => boolean;
}

export function createObservations({ bus, provider, origin, clock, pool = 0, hasCredential }: ObservationsOptions): Observations {
  const codec = codecOf();
  let attempts: AttemptObserved[] = [];
  const credentials = new Map<string, CredentialObserved>(); // kept: of limits and refusals that were met, not of attempts.
  /** Endpoints being probed. Other calls wait for these, so their end is announced at once. */
  const probing = new Set<string>(); // kept: by endpoint that is tried again.
  let timer: Timer | undefined;
  let dueAtMs = Infinity;
  let flushedAtMs = -Infinity;
  let greeting: Timer | undefined;
  const greet = (): void => {
    greeting = clock.setTimer(HELLO_MS, greet, { unref: true });
    bus.announce(subjectOf(provider), codec.encode(hasCredential?.() === true ? { origin, pool, freeProvider: provider } : { origin, pool }));
  };
  const flush = (probes: Omit<AttemptsObserved, 'attempts' | 'origin' | 'pool'> = {}): void => {
    timer?.cancel();
    timer = undefined;
    dueAtMs = Infinity;
    const message: AttemptsObserved = { attempts, origin, pool, ...probes };
    if (credentials.size > 0) message.credentials = [...credentials.values()];
    attempts = [];
    credentials.clear();
    flushedAtMs = clock.monotonicMs();
    bus.announce(subjectOf(provider), codec.encode(message));
  };
  const flushAt = (atMs: number): void => {
    if (atMs >= dueAtMs) return;
    timer?.cancel();
    dueAtMs = atMs;
    timer = clock.setTimer(atMs - clock.monotonicMs(), () => flush(), { unref: true });
  };
  const flushSoon = (nowMs: number): void => {
    if (nowMs - flushedAtMs >= FAILURES_MS) flush();
    else flushAt(flushedAtMs + FAILURES_MS);
  };
  return {
    observe: (attempt) => {
      attempts.push(attempt);
      const nowMs = clock.monotonicMs();
      const endsProbe = attempt.endpointId !== undefined && probing.delete(attempt.endpointId);
      const isUrgent = (endsProbe || attempt.ok === false) && attempt.forBreakers === true;
      if (attempts.length >= BATCH_MAX) flush();
      else if (isUrgent) flushSoon(nowMs);
      else flushAt(nowMs + BATCH_MS);
    },
    observeProbe: (endpointId, step) => {
      if (step === 'sent') probing.add(endpointId);
      else if (step === 'void') probing.delete(endpointId);
      flush({ [PROBE_FIELDS[step]]: [endpointId] });
    },
    observeCredential: (credential) => {
      credentials.set(`${String(credential.mark)} ${credential.model ?? ''}`, credential);
      // The attempt that caused it is observed in the same turn, and its flush includes this.
      flushAt(Math.max(clock.monotonicMs(), flushedAtMs + FAILURES_MS));
    },
    start: greet,
    stop: () => {
      greeting?.cancel();
      if (attempts.length > 0 || credentials.size > 0) flush();
    },
  };
}

/** Passes on what other replicas of this provider's worker announce, until stopped. Messages that cannot be decoded are skipped and logged. */
export function listenToObservations(bus: Bus, provider: string, origin: string, log: Log, hear: (news: AttemptsObserved__Output) => void): Promise<Subscription> {
  const codec = codecOf();
  const own = Buffer.from(origin);
  return bus.listen(subjectOf(provider), ({ payload }) => {
    // A replica receives its own messages too, mostly nothing else if it is alone. They are recognised undecoded by the id, which no other's contain.
    if (Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).includes(own)) return;
    let news: AttemptsObserved__Output;
    try {
      news = codec.decode(payload);
    } catch (error) {
      log.warn('A message about attempts could not be read.', { provider, error: error instanceof Error ? error.name : 'unknown' });
      return;
    }
    hear(news);
  });
}
