/** Tells routing, and the other replicas of this worker, how attempts went: batched, at most once, never awaited. Failures and the ends of probes go at once. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { AttemptObserved, AttemptsObserved, AttemptsObserved__Output, CredentialObserved } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Log } from '@signalbox/runtime/log';
import type { ProbeStep } from './endpoint-breakers.js';

/** Statistics over minutes are as good a second late. */
const BATCH_MS = 1_000;
/** Between batches that hold a failure: breakers elsewhere count it before the next call, and a storm of failures is no storm of messages. */
const FAILURES_MS = 20;
const BATCH_MAX = 1_024;
/** A replica that has nothing to tell is heard of as often. */
export const HELLO_MS = 60_000;

const PROBE_FIELDS = { sent: 'probedEndpointIds', begun: 'begunEndpointIds', void: 'voidEndpointIds' } as const satisfies Record<ProbeStep, keyof AttemptsObserved>;

const codecOf = () => messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
const subjectOf = (provider: string): string => `attempts.v1.${provider}`;

export interface Observations {
  observe(attempt: AttemptObserved): void;
  /** One call was let through to an endpoint whose breaker was open, or has left its place to the next. Announced at once. */
  observeProbe(endpointId: string, step: ProbeStep): void;
  /** What a credential met, for the other replicas; the last word of each model counts. Announced as failures are. */
  observeCredential(credential: CredentialObserved): void;
  /** Lets the other replicas know of this one, now and every minute. */
  start(): void;
  /** Announces what waits, and nothing of its own accord any more. */
  stop(): void;
}

export interface ObservationsOptions {
  readonly bus: Bus;
  readonly provider: string;
  /** This replica. */
  readonly origin: string;
  readonly clock: Clock;
  /** Of its credentials; 0 or absent = none. */
  readonly pool?: number;
  /** Whether a credential of the operator's may be asked: routing, which leaves the provider out while all are benched, hears of one that was mended, or of another replica's. */
  readonly hasCredential?: () => boolean;
}

export function createObservations({ bus, provider, origin, clock, pool = 0, hasCredential }: ObservationsOptions): Observations {
  const codec = codecOf();
  let attempts: AttemptObserved[] = [];
  const credentials = new Map<string, CredentialObserved>(); // kept: of limits and refusals that were met, not of attempts.
  /** Of calls that others wait for: how they end is told at once. */
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
      // The attempt that met it is observed in the same turn, and takes it along.
      flushAt(Math.max(clock.monotonicMs(), flushedAtMs + FAILURES_MS));
    },
    start: greet,
    stop: () => {
      greeting?.cancel();
      if (attempts.length > 0 || credentials.size > 0) flush();
    },
  };
}

/** Hands on what the other replicas of this provider's worker announce, until stopped. What cannot be read is skipped. */
export function listenToObservations(bus: Bus, provider: string, origin: string, log: Log, hear: (news: AttemptsObserved__Output) => void): Promise<Subscription> {
  const codec = codecOf();
  const own = Buffer.from(origin);
  return bus.listen(subjectOf(provider), ({ payload }) => {
    // Its own come back, by far the most where there is one replica: the id alone tells, and is in no other's.
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
