import { expect, test } from '@jest/globals';
import { composeImagesBody } from './request.js';
import { readImagesAnswer } from './response.js';

const ask = { providerModelId: 'gpt-image-1', prompt: 'A red fox', count: 2, size: '1024x1536' };
const answer = (value: unknown) => readImagesAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const PICTURE = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1');

test("the operator's parameters stand beside what was asked for, and never in its place", () => {
  const parameters = Buffer.from('{"quality":"medium","model":"dearer","n":9}');
  expect(JSON.parse(composeImagesBody({ ...ask, parameters }).toString())).toEqual({ quality: 'medium', model: 'gpt-image-1', prompt: 'A red fox', n: 2, size: '1024x1536' });
  expect(() => composeImagesBody({ ...ask, parameters: Buffer.from('[1]') })).toThrow(TypeError);
});

test('reads every file, and the tokens of the prompt where they are told', () => {
  const data = [{ b64_json: PICTURE.toString('base64') }, { b64_json: PICTURE.toString('base64'), revised_prompt: 'x' }];
  expect(answer({ created: 1, data, usage: { input_tokens: 12, output_tokens: 1_056 } })).toEqual({ ok: true, images: [PICTURE, PICTURE], promptTokens: 12 });
  expect(answer({ created: 1, data: data.slice(1) })).toEqual({ ok: true, images: [PICTURE], promptTokens: undefined });
});

test.each([
  ['no JSON', '<html>', 'GARBAGE'],
  ['no list', { data: 'x' }, 'GARBAGE'],
  ['an empty list', { data: [] }, 'EMPTY'],
  ['an address in the place of a file', { data: [{ url: 'http://169.254.169.254/picture.png' }] }, 'EMPTY'],
  ['what is no base64', { data: [{ b64_json: '<svg/>' }] }, 'GARBAGE'],
])('%s is no picture', (_what, body, failureClass) => {
  expect(answer(body)).toMatchObject({ ok: false, failure: { class: failureClass } });
});
