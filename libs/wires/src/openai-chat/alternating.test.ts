import { expect, test } from '@jest/globals';
import { takeTurns } from './alternating.js';

test('thousands of messages of parts from one speaker are joined in linear time', () => {
  const part = { type: 'text', text: 'a' };
  const joined = (count: number): unknown => takeTurns(Array.from({ length: count }, () => ({ role: 'user', content: [part] })));
  joined(1_000);
  const began = performance.now();
  expect(joined(16_000)).toEqual([{ role: 'user', content: Array.from({ length: 16_000 }, () => part) }]);
  // A tenth of a second; copied with each message, they took seven.
  expect(performance.now() - began).toBeLessThan(2_000);
});

test('what a client sent is not changed', () => {
  const content = [{ type: 'text', text: 'a' }];
  const messages = [{ role: 'user', content }, { role: 'user', content: 'b' }, { role: 'user', content }, { role: 'assistant', content: 'c' }, { role: 'user', content }];
  const before = structuredClone(messages);
  expect(takeTurns(messages)).toEqual([
    { role: 'user', content: [...content, { type: 'text', text: 'b' }, ...content] },
    { role: 'assistant', content: 'c' },
    { role: 'user', content },
  ]);
  expect(messages).toEqual(before);
});
