/** The operator's credentials at one provider: used round robin, benched after a refusal, rested for one model after a 429. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';
import { RETRY_AFTER_MS_MAX } from '@signalbox/wires/canonical';
import { createHash, scryptSync } from 'node:crypto';

const BENCH_MS_MIN = 30_000;
const BENCH_MS_MAX = 600_000;
/** When a bench is over, one call tries the credential. Providers refuse at once, so others follow if it was not refused within this time. */
const TRY_MS = 3_000;
/** Larger than the rounding error of a sum of fractions of a millisecond. */
const INEXACT_MS = 0.001;
/** Most models at rest per credential; beyond that the oldest is forgotten. */
const RESTING_MODELS_MAX = 1_000;

export interface Credential {
  /** undefined for providers that need none. */
  readonly secret: Secret | undefined;
  readonly position: number;
}

const MARK_BYTES = 4;
/** scrypt cost: about ten milliseconds per credential, once. Whoever reads a mark and guesses at a made-up credential pays as much for each guess. */
const MARK_COST = 4_096;

/** A mark by which replicas recognise a credential that they have too, without revealing it to others; 0 = no credential. */
export function markOf(provider: string, secret: Secret | undefined): number {
  return secret === undefined ? 0 : scryptSync(secret.unwrap(), `credential of ${provider}`, MARK_BYTES, { N: MARK_COST }).readUInt32BE();
}

/** A mark for a replica's whole set of credentials, in any order; 0 = none. It is made from the credentials' marks and reveals no more than they do. */
export function poolMarkOf(marks: readonly number[]): number {
  if (marks.length === 0) return 0;
  const text = [...new Set(marks)].sort((a, b) => a - b).join();
  return createHash('sha256').update(text).digest().readUInt32BE() || 1;
}

/** A credential as taken for one call. */
export interface TakenCredential extends Credential {
  /** Monotonic milliseconds. */
  readonly takenAtMs: number;
}

/** A shorter secret may occur in a text by chance. */
const SECRET_CHARS_MIN = 6;

/** Removes the credential of the call from a provider's message to clients. An operator may have made it up, so no pattern would find it. */
export function withoutSecret(text: string, { secret }: Credential): string {
  const hidden = secret?.unwrap() ?? '';
  return hidden.length < SECRET_CHARS_MIN || text === '' ? text : text.replaceAll(hidden, '[redacted]');
}

export type Taken =
  | { readonly ok: true; readonly credential: TakenCredential }
  /** `isResting`: at least one credential is not benched, and waits out a 429. */
  | { readonly ok: false; readonly isResting: boolean; readonly retryAfterMs: number };

/** What one call showed about a credential, for replicas that have it too. */
export interface Learnt {
  readonly position: number;
  /** Empty = for all models. */
  readonly model: string;
  /** How long it is benched or, for one model, at rest; 0 = the provider accepted it, so its bench is over. */
  readonly forMs: number;
}

export interface CredentialPool {
  take(model: string): Taken;
  /** The provider refused it (401, 402, 403): benched for 30 s, doubling to 10 min. */
  refused(credential: Credential): void;
  /** The provider accepted it, which ends its bench, unless the call was already under way when the bench began. */
  succeeded(credential: TakenCredential): void;
  /** The call is over, or was not made. If it was the one to try a credential after its bench and showed nothing about it, the next call tries. */
  release(credential: TakenCredential): void;
  /** After a 429 with a hint: not to be used for that model for `forMs`. A later hint never shortens an earlier one. Returns `waitMs(model)` as of the same moment, so that a hint is passed on unshortened. */
  rest(credential: Credential, model: string, forMs: number): number;
  /** Milliseconds until any credential may be used for that model; 0 = now, or never. */
  waitMs(model: string): number;
  /** Whether another credential may be used for that model now. */
  hasOther(credential: Credential, model: string): boolean;
  /** If all are benched, or being tried after their bench: milliseconds until any may be used. 0 = now, or never. */
  benchedMs(): number;
  /** Applies what another replica learnt. A credential that was benched there is tried there first; it is used here three seconds later, unless refused again. */
  hear(learnt: Learnt): void;
  /** How many are benched, how many have come off the bench but were not accepted since, and how many are neither. */
  counts(): { readonly benched: number; readonly doubtful: number; readonly usable: number };
}

interface Entry extends Credential {
  benchMs: number;
  benchedAt: number;
  benchedUntil: number;
  readonly resting: Map<string, number>;
  /** The call that tries it after its bench. */
  trying: TakenCredential | undefined;
}

/** `secrets` holds one undefined for a provider without credentials; if empty, every `take` fails. `tell` receives what this pool's own calls learn. */
export function createCredentialPool(secrets: readonly (Secret | undefined)[], clock: Clock, tell: (learnt: Learnt) => void = () => undefined): CredentialPool {
  const entries: Entry[] = secrets.map((secret, position) => ({ secret, position, benchMs: 0, benchedAt: 0, benchedUntil: 0, resting: new Map(), trying: undefined }));
  let next = 0;
  const offBenchAt = ({ benchedUntil, trying }: Entry): number => Math.max(benchedUntil, trying === undefined ? 0 : trying.takenAtMs + TRY_MS);
  const freeAt = (entry: Entry, model: string): number => Math.max(offBenchAt(entry), entry.resting.get(model) ?? 0);
  const waitUntil = (atMs: number, nowMs = clock.monotonicMs()): number => (Number.isFinite(atMs) ? Math.ceil(Math.max(0, atMs - nowMs - INEXACT_MS)) : 0);
  const firstFreeAt = (model: string): number => Math.min(...entries.map((entry) => freeAt(entry, model)));
  const restUntil = ({ resting }: Entry, model: string, atMs: number): void => {
    const until = Math.max(resting.get(model) ?? 0, atMs);
    resting.delete(model);
    resting.set(model, until);
    const oldest = resting.size > RESTING_MODELS_MAX ? resting.keys().next().value : undefined;
    if (oldest !== undefined) resting.delete(oldest);
  };
  const endBench = (entry: Entry): void => {
    entry.benchMs = 0;
    entry.benchedUntil = 0;
    entry.trying = undefined;
  };
  return {
    take: (model) => {
      const now = clock.monotonicMs();
      let soonest = Infinity;
      let isResting = false;
      for (let step = 0; step < entries.length; step += 1) {
        const entry = entries[(next + step) % entries.length];
        if (entry === undefined) continue;
        if (freeAt(entry, model) <= now) {
          next = (entry.position + 1) % entries.length;
          const credential = { secret: entry.secret, position: entry.position, takenAtMs: now };
          if (entry.benchMs > 0) entry.trying ??= credential;
          return { ok: true, credential };
        }
        if (entry.benchedUntil <= now) isResting = true;
        soonest = Math.min(soonest, freeAt(entry, model));
      }
      return { ok: false, isResting, retryAfterMs: Number.isFinite(soonest) ? Math.ceil(soonest - now) : 0 };
    },
    refused: ({ position }) => {
      const entry = entries[position];
      if (entry === undefined) return;
      const now = clock.monotonicMs();
      // Requests that were under way when the bench began tell nothing new.
      if (entry.benchedUntil > now) return;
      entry.benchMs = entry.benchMs === 0 ? BENCH_MS_MIN : Math.min(BENCH_MS_MAX, entry.benchMs * 2);
      entry.benchedAt = now;
      entry.benchedUntil = now + entry.benchMs;
      entry.trying = undefined;
      tell({ position, model: '', forMs: entry.benchMs });
    },
    succeeded: ({ position, takenAtMs }) => {
      const entry = entries[position];
      if (entry === undefined || entry.benchMs === 0 || takenAtMs <= entry.benchedAt) return;
      endBench(entry);
      tell({ position, model: '', forMs: 0 });
    },
    release: (credential) => {
      const entry = entries[credential.position];
      if (entry !== undefined && entry.trying === credential) entry.trying = undefined;
    },
    rest: ({ position }, model, forMs) => {
      const entry = entries[position];
      const now = clock.monotonicMs();
      if (entry !== undefined && forMs > 0) {
        restUntil(entry, model, now + forMs);
        tell({ position, model, forMs });
      }
      return waitUntil(firstFreeAt(model), now);
    },
    waitMs: (model) => waitUntil(firstFreeAt(model)),
    benchedMs: () => waitUntil(Math.min(...entries.map(offBenchAt))),
    hear: ({ position, model, forMs }) => {
      const entry = entries[position];
      if (entry === undefined) return;
      const now = clock.monotonicMs();
      if (model !== '') restUntil(entry, model, now + Math.min(forMs, RETRY_AFTER_MS_MAX));
      else if (forMs === 0) endBench(entry);
      else {
        entry.benchMs = Math.min(BENCH_MS_MAX, Math.max(entry.benchMs, forMs));
        entry.benchedAt = now;
        entry.benchedUntil = Math.max(entry.benchedUntil, now + Math.min(forMs, BENCH_MS_MAX) + TRY_MS);
        entry.trying = undefined;
      }
    },
    hasOther: ({ position }, model) => {
      const now = clock.monotonicMs();
      return entries.some((entry) => entry.position !== position && freeAt(entry, model) <= now);
    },
    counts: () => {
      const now = clock.monotonicMs();
      const benched = entries.filter(({ benchedUntil }) => benchedUntil > now).length;
      const doubtful = entries.filter(({ benchMs, benchedUntil }) => benchMs > 0 && benchedUntil <= now).length;
      return { benched, doubtful, usable: entries.length - benched - doubtful };
    },
  };
}
