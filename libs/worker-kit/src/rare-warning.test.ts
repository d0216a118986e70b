import { expect, test } from '@jest/globals';
import type { LogFields } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { rareWarning, WARNING_INTERVAL_MS } from './rare-warning.js';

test('is logged at once, then once a minute with the number of suppressed ones', () => {
  const clock = createFakeClock();
  const lines: object[] = [];
  const log = { warn: (text: string, fields: LogFields = {}) => void lines.push({ text, ...fields }) };
  const [first, second] = [rareWarning(log, clock, 'first'), rareWarning(log, clock, 'second')];
  for (let request = 1; request <= 1_000; request += 1) first({ request });
  second({ request: 1 });
  clock.advance(WARNING_INTERVAL_MS - 1);
  first({ request: 1_001 });
  clock.advance(1);
  first({ request: 1_002 });
  clock.advance(WARNING_INTERVAL_MS);
  first({ request: 1_003 });
  expect(lines).toEqual([{ text: 'first', request: 1 }, { text: 'second', request: 1 }, { text: 'first', request: 1_002, untold: 1_000 }, { text: 'first', request: 1_003 }]);
});
