import { describe, expect, test } from '@jest/globals';
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

describe('the text', () => {
  const said = (content: readonly object[]): string => simulate({ messages: [{ role: 'user', content }] }).choices[0]?.content ?? '';

  test.each([
    [[image('data:,')], '1 image'],
    [[{ type: 'file', file: { file_data: 'data:,' } }], '1 file'],
    [[image('data:,'), image('data:,'), { type: 'file', file: { file_data: 'data:,' } }, { type: 'input_audio', input_audio: { data: '', format: 'wav' } }], '2 images and 1 file and 1 recording'],
  ])('owns to have seen nothing of %j', (parts, words) => {
    expect(said([text, ...parts])).toContain(`I was given ${words}, which a simulator does not look at. You said: What is it?`);
  });
});

describe('after a result', () => {
  const tools = ['look', 'tell'].map((name) => ({ type: 'function', function: { name } }));
  const call = (name: string): object => ({ role: 'assistant', content: null, tool_calls: [{ id: name, type: 'function', function: { name, arguments: '{}' } }] });
  const result = (name: string): object => ({ role: 'tool', tool_call_id: name, content: '4' });
  const next = (choice: unknown, ...called: readonly string[]): readonly string[] =>
    simulate({ messages: [call('tell'), result('tell'), { role: 'user', content: 'Go on' }, ...called.flatMap((name) => [call(name), result(name)])], tools, tool_choice: choice }).choices[0]?.toolCalls.map(({ name }) => name) ?? [];
  const named = (name: string): object => ({ type: 'function', function: { name } });

  test('a call that is required goes to a function that was not called yet', () => {
    expect([next('required', 'look'), next(named('tell'), 'look')]).toEqual([['tell'], ['tell']]);
  });

  test('there is an answer when nothing is required, or all was called', () => {
    expect([next('auto', 'look'), next(undefined, 'look'), next('required', 'look', 'tell'), next(named('look'), 'look')]).toEqual([[], [], [], []]);
  });
});
