import { expect, test } from '@jest/globals';
import { simulate } from './answer.js';

const promptOf = (content: unknown, more: object = {}): unknown => simulate({ messages: [{ role: 'user', content }], ...more }).usage['prompt_tokens'];
const text = { type: 'text', text: 'What is it?' };
const image = (url: string): object => ({ type: 'image_url', image_url: { url } });

test('an image counts the same by URL and by bytes, like a small one at real providers', () => {
  const plain = Number(promptOf([text]));
  expect(promptOf([text, image('https://x/a.png')])).toBe(plain + 1_000);
  expect(promptOf([text, image(`data:image/png;base64,${'A'.repeat(40_000)}`), { type: 'file', file: { file_data: 'data:,' } }])).toBe(plain + 2_000);
});

test('the response schema counts as part of the prompt, like a tool', () => {
  const schema = { name: 'person', schema: { type: 'object', properties: { name: { type: 'string', description: 'Given name and surname, as written.' } } } };
  const bytes = JSON.stringify(schema).length;
  expect(promptOf('Who?', { response_format: { type: 'json_schema', json_schema: schema } })).toBe(Number(promptOf('Who?')) + Math.ceil(bytes / 4));
  expect(promptOf('Who?', { response_format: { type: 'json_object' } })).toBe(promptOf('Who?'));
});
