import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Clock } from '@signalbox/kernel/clock';
import { onStopSignals } from './stop-signals.js';

/** Moves by hand. */
function clockByHand(): Pick<Clock, 'monotonicMs' | 'setTimer'> & { advance(ms: number): void } {
  let nowMs = 0;
  const timers: { readonly atMs: number; readonly fire: () => void }[] = [];
  return {
    monotonicMs: () => nowMs,
    setTimer: (delayMs, fire) => {
      timers.push({ atMs: nowMs + delayMs, fire });
      return { cancel: () => undefined };
    },
    advance: (ms) => {
      nowMs += ms;
      for (const { fire } of timers.splice(0, timers.findLastIndex(({ atMs }) => atMs <= nowMs) + 1)) fire();
    },
  };
}

test.each<[string, string[], string[]]>([
  ['SIGTERM begins the end', ['SIGTERM'], ['begin']],
  ['Ctrl-C does, and who waits is told after a second', ['SIGINT', '+1000'], ['begin', 'wait']],
  ['one Ctrl-C that npm hands on is one', ['SIGINT', 'SIGINT', '+999', 'SIGINT'], ['begin']],
  ['the second ends it at once, and there is no third', ['SIGINT', '+1000', 'SIGINT', 'SIGINT'], ['begin', 'wait', 'end']],
  ['Ctrl-C cuts a SIGTERM short', ['SIGTERM', '+1000', 'SIGINT'], ['begin', 'end']],
  ['a SIGTERM that is repeated never cuts streams', ['SIGTERM', '+60000', 'SIGTERM', 'SIGTERM'], ['begin']],
])('%s', (_what, given, expected) => {
  const source = new EventEmitter();
  const clock = clockByHand();
  const done: string[] = [];
  onStopSignals({ source, clock, begin: () => done.push('begin'), onWait: () => done.push('wait'), end: () => done.push('end') });
  for (const step of given) {
    if (step.startsWith('+')) clock.advance(Number(step));
    else source.emit(step);
  }
  expect(done).toEqual(expected);
});
