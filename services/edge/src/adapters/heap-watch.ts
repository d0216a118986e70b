/** Sheds load before the heap is full: a request refused early costs nothing, while running out of memory cuts every stream. */
import type { Clock } from '@signalbox/kernel/clock';
import { getHeapStatistics } from 'node:v8';

const CHECK_MS = 1_000;
/** Requests are refused above 95 % of the heap's limit, and accepted again below 92 %. */
const CLOSE_ABOVE = 0.95;
const OPEN_BELOW = 0.92;

export interface HeapWatch {
  /** Judged by the heap's size of at most a second ago, which is read only when this is called. */
  isHealthy(): boolean;
}

/** `usedShare` of the heap's limit, as a fraction. */
export function createHeapWatch(clock: Clock, usedShare = heapShare): HeapWatch {
  let lookedMs = -Infinity;
  let isHealthy = true;
  return {
    isHealthy: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs - lookedMs < CHECK_MS) return isHealthy;
      lookedMs = nowMs;
      const share = usedShare();
      isHealthy = isHealthy ? share < CLOSE_ABOVE : share < OPEN_BELOW;
      return isHealthy;
    },
  };
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
