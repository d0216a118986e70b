import { expect, test } from '@jest/globals';
import type { LogFields } from './log.js';
import { rareWarning, WARNING_INTERVAL_MS } from './rare-warning.js';

test('is logged at once, then once a minute with the number of suppressed ones', () => {
  let nowMs = 0;
  const clock = { monotonicMs: (): number => nowMs };
  const lines: object[] = [];
  const log = { warn: (text: string, fields: LogFields = {}) => void lines.push({ text, ...fields }) };
  const [first, second] = [rareWarning(log, clock, 'first'), rareWarning(log, clock, 'second')];
  for (let request = 1; request <= 1_000; request += 1) first({ request });
  second({ request: 1 });
  nowMs += WARNING_INTERVAL_MS - 1;
  first({ request: 1_001 });
  nowMs += 1;
  first({ request: 1_002 });
  nowMs += WARNING_INTERVAL_MS;
  first({ request: 1_003 });
  expect(lines).toEqual([{ text: 'first', request: 1 }, { text: 'second', request: 1 }, { text: 'first', request: 1_002, untold: 1_000 }, { text: 'first', request: 1_003 }]);
});
