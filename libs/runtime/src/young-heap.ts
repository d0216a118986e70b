/**
 * Bodies lie outside V8's heap, and are freed when it collects the small objects that stand for them. It does so when the
 * space for new objects is full, or when 32 MB of bodies hang on it: a process that makes few objects for large prompts
 * held that much of dead ones. Whoever reads or writes a body says so here, and the collection comes sooner.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Smaller ones weigh no more than the objects of their request. */
const BODY_BYTES_MIN = 16 * 1024;
/** 2 MiB said, which are some 5 MiB: each body is read in pieces, put together, and written. */
const DEAD_BYTES_MAX = 2 * 1024 * 1024;
/** A collection takes a millisecond or two: never more than a fiftieth of the time. */
const INTERVAL_MS_MIN = 100;

export interface BodyWatch {
  /** `bytes` of a body were read or written. */
  note(bytes: number): void;
}

/** Calls `collect` by way of `later`, when enough was noted since it did so last. */
export function createBodyWatch({ clock, collect, later }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly collect: () => void; readonly later: (callback: () => void) => void }): BodyWatch {
  let bytesNoted = 0;
  let isDue = false;
  let collectedMs = -Infinity;
  const run = (): void => {
    isDue = false;
    bytesNoted = 0;
    collect();
    collectedMs = clock.monotonicMs();
  };
  return {
    note: (bytes) => {
      bytesNoted += bytes;
      if (isDue || bytesNoted < DEAD_BYTES_MAX || clock.monotonicMs() - collectedMs < INTERVAL_MS_MIN) return;
      isDue = true;
      later(run);
    },
  };
}

let watch: BodyWatch | undefined;

/** A body, or a part of one, was read or written. Without `collectAfterBodies` nothing comes of it. */
export function noteBody(bytes: number): void {
  if (bytes >= BODY_BYTES_MIN) watch?.note(bytes);
}

/** For `main` modules only, by `tuneProcess`. */
export function collectAfterBodies(clock: Pick<Clock, 'monotonicMs'>): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  watch = createBodyWatch({ clock, collect: () => gc({ type: 'minor' }), later: setImmediate });
}
