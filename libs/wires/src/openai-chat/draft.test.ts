import { describe, expect, test } from '@jest/globals';
import { Unsendable } from '../unsendable.js';
import { draftChatBody } from './draft.js';
import { NO_QUIRKS } from './quirks.js';

const QUIRKS = { ...NO_QUIRKS, inlinesImages: true };
const draft = (messages: unknown, text = JSON.stringify(messages)) =>
  draftChatBody({ providerModelId: 'm', stream: false, maxTokens: 5, maxTokensParam: '', temperatureMax: 0, fields: [{ name: 'messages', value: Buffer.from(text) }, { name: 'seed', value: Buffer.from('7') }] }, QUIRKS);
const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } });
const user = (...content: readonly object[]) => [{ role: 'user', content }];
const FETCHED = new Map([['https://x.example/a', { mediaType: 'image/png', base64: 'iVBORw0KGgo=' }]]);

describe('images for hosts that get no addresses', () => {
  test('are fetched once each and sent inline, all else as it came', () => {
    const { media, body } = draft([{ role: 'system', content: 'See "https://y.example".' }, ...user({ type: 'text', text: 'these' }, image('https://x.example/a'), image('HTTPS://x.example/a')), ...user(image('https://x.example/a'), image('data:image/png;base64,AAAA'))]);
    expect(media).toEqual([
      { url: 'https://x.example/a', kind: 'image', param: 'messages.[1].content.[1].image_url.url' },
      { url: 'HTTPS://x.example/a', kind: 'image', param: 'messages.[1].content.[2].image_url.url' },
    ]);
    const inline = image('data:image/png;base64,iVBORw0KGgo=');
    expect(JSON.parse(body(new Map([...FETCHED, ['HTTPS://x.example/a', { mediaType: 'image/png', base64: 'iVBORw0KGgo=' }]])).toString())).toEqual({
      model: 'm',
      stream: false,
      max_tokens: 5,
      messages: [{ role: 'system', content: 'See "https://y.example".' }, ...user({ type: 'text', text: 'these' }, inline, inline), ...user(inline, image('data:image/png;base64,AAAA'))],
      seed: 7,
    });
  });

  test.each([
    ['[{"role":"user","content":[{"type":"image_url","image_url":{"url":"\\u0068ttps://10.0.0.1/a"}}]}]', 'https://10.0.0.1/a'],
    ['[{"role":"user","content":[{"type":"\\u0069mage_url","\\u0069mage_url":{"url":"HTTPS://10.0.0.1/a"}}]}]', 'HTTPS://10.0.0.1/a'],
    ['[{"role":"user","content":[{"type":"image_url","image_url":{"url":" https://10.0.0.1/a"}}]}]', ' https://10.0.0.1/a'],
    ['[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]', 'file:///etc/passwd'],
  ])('whatever it is written as: %s', (text, url) => {
    const { media, body } = draft([], text);
    expect(media).toEqual([{ url, kind: 'image', param: 'messages.[0].content.[0].image_url.url' }]);
    expect(() => body(new Map())).toThrow(Unsendable);
  });

  test('none of them leaves without its file', () => {
    expect(() => draft(user(image('https://x.example/b'))).body(FETCHED)).toThrow(Unsendable);
  });

  test('messages without any are the bytes that came', () => {
    const text = '[ {"role":"user","content":"see \\"https://x.example/a\\""} ]';
    const { media, body } = draft([], text);
    expect(media).toEqual([]);
    expect(body(new Map()).toString()).toContain(text);
  });
});
