/** Sheds before the heap is full: a request refused early costs nothing, an out-of-memory kill cuts every stream. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { getHeapStatistics } from 'node:v8';

const CHECK_MS = 1_000;
/** FAILURES: refuse above 95 % of the heap's limit, take again below 92 %. */
const CLOSE_ABOVE = 0.95;
const OPEN_BELOW = 0.92;

export interface HeapWatch {
  start(): void;
  stop(): void;
  isHealthy(): boolean;
}

export function createHeapWatch(clock: Clock): HeapWatch {
  let timer: Timer | undefined;
  let isHealthy = true;
  const check = (): void => {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    const share = used / limit;
    isHealthy = isHealthy ? share < CLOSE_ABOVE : share < OPEN_BELOW;
    timer = clock.setTimer(CHECK_MS, check, { unref: true });
  };
  return { start: check, stop: () => timer?.cancel(), isHealthy: () => isHealthy };
}
