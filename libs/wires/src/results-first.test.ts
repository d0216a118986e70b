/** Wires that have the results of calls before a user's other words. */
import { expect, jest, test } from '@jest/globals';
import { ANTHROPIC, draftMessages } from './anthropic-messages/request.js';
import { draftConverse } from './bedrock-converse/request.js';

const PAIRS = 500;
const fields = Object.entries({
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } } }],
  messages: [
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
    ...Array.from({ length: PAIRS }, (_, at) => [{ role: 'user', content: `word ${String(at)}` }, { role: 'tool', tool_call_id: 'c', content: `result ${String(at)}` }]).flat(),
  ],
}).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
const input = { providerModelId: 'm', stream: false, maxOutputTokens: 100, temperatureMax: 0, fields };

test.each([
  ['anthropic-messages', () => draftMessages(input, ANTHROPIC).body(new Map())],
  ['bedrock-converse', () => draftConverse(input).body(new Map())],
])('%s: results among a user\'s words come first, in order, and none moves what stands behind it', (_wire, write) => {
  const moved = jest.spyOn(Array.prototype, 'splice');
  const text = write().toString();
  expect(moved).not.toHaveBeenCalled();
  moved.mockRestore();
  const places = [...Array.from({ length: PAIRS }, (_, at) => `"result ${String(at)}"`), ...Array.from({ length: PAIRS }, (_, at) => `"word ${String(at)}"`)].map((said) => text.indexOf(said));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBeGreaterThan(0);
});
