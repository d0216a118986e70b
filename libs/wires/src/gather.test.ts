import { expect, test } from '@jest/globals';
import { Gatherer } from './gather.js';
import { createChatTransducer } from './openai-chat/stream.js';
import { readChatAnswer } from './openai-chat/response.js';

const sse = (choice: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`;

function gathered(...choices: readonly object[]): unknown {
  const transducer = createChatTransducer('s');
  const gatherer = new Gatherer();
  const bytes = Buffer.from(`${choices.map(sse).join('')}${sse({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`);
  for (const event of transducer.push(bytes)) if (event.type === 'chunk') gatherer.add(event.choices);
  return JSON.parse(gatherer.whole().toString('utf8'));
}

function whole(message: object, more: object = {}): unknown {
  const result = readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop', ...more }] })), 's');
  if (!result.ok) throw new Error(result.failure.class);
  return JSON.parse(Buffer.from(result.answer.choices).toString('utf8'));
}

const token = (text: string): object => ({ token: text, logprob: -0.5, bytes: null, top_logprobs: [] });

test.each<[string, readonly object[], unknown]>([
  ['text', [{ delta: { role: 'assistant', content: 'a' } }, { delta: { content: '\ud83d' } }, { delta: { content: '\ude00' } }], whole({ content: 'a😀' })],
  ['thoughts alone', [{ delta: { role: 'assistant', reasoning_content: 'so' } }, { delta: { reasoning_content: ' it' } }], whole({ content: null, reasoning_content: 'so it' })],
  ['a refusal', [{ delta: { role: 'assistant', content: null, refusal: '' } }, { delta: { refusal: 'No' } }, { delta: { refusal: '.' } }], whole({ content: null, refusal: 'No.' })],
  ['an old call', [{ delta: { role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } } }, { delta: { function_call: { arguments: '{}' } } }], whole({ content: null, function_call: { name: 'f', arguments: '{}' } })],
  ['sound', [{ delta: { role: 'assistant', content: null, audio: { id: 'a', data: 'AAAA', transcript: 'h' } } }, { delta: { audio: { data: 'BBBB', transcript: 'i' } } }, { delta: { audio: { expires_at: 5 } } }], whole({ content: null, audio: { id: 'a', data: 'AAAABBBB', transcript: 'hi', expires_at: 5 } })],
  ['logprobs', [{ delta: { role: 'assistant', content: 'a' }, logprobs: { content: [token('a')], refusal: null } }, { delta: { content: 'b' }, logprobs: { content: [token('b')], refusal: null } }], whole({ content: 'ab' }, { logprobs: { content: [token('a'), token('b')], refusal: null } })],
])('a stream of %s is gathered to what its host would have answered whole', (_name, choices, expected) => {
  expect(gathered(...choices)).toEqual(expected);
});
