/**
 * Bodies are stored outside V8's heap and freed when V8 collects the small objects that refer to them. It does so when the
 * young generation is full, or when 32 MB of external memory hang on it. A process with large prompts creates few objects,
 * so it held that much memory of dead bodies. Code that reads or writes a body reports it here, to trigger an earlier collection.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Smaller bodies take no more memory than the objects of their request. */
const BODY_BYTES_MIN = 16 * 1024;
/** 2 MiB reported, which are about 5 MiB in memory: each body is read in pieces, joined, and written. */
const DEAD_BYTES_MAX = 2 * 1024 * 1024;
/** A collection takes a millisecond or two, so at this interval at most a fiftieth of the time. */
const INTERVAL_MS_MIN = 100;

export interface BodyWatch {
  /** `bytes` of a body were read or written. */
  note(bytes: number): void;
}

/** Calls `collect` through `later` once enough bytes were noted since the last time. */
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

/** Reports that a body, or a part of one, was read or written. Without `collectAfterBodies` it has no effect. */
export function noteBody(bytes: number): void {
  if (bytes >= BODY_BYTES_MIN) watch?.note(bytes);
}

/** For `main` modules only, through `tuneProcess`. */
export function collectAfterBodies(clock: Pick<Clock, 'monotonicMs'>): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  watch = createBodyWatch({ clock, collect: () => gc({ type: 'minor' }), later: setImmediate });
}
