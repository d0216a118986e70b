import { describe, expect, test } from '@jest/globals';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { readAuthorization } from './authorization.js';
import { renderCompletion } from './chat.js';
import { CHUNKED, UNFRAMED } from './framing.js';
import { addRouterHeaders, formatIgnoredParams, formatReset, type HeaderList } from './headers.js';
import { renderModelList } from './models.js';
import { cutToApiError } from './refusals.js';
import { createStreamWire } from './stream.js';

const usage = { tokens: { ...NO_TOKENS, inputUncached: 61, outputText: 9 }, cachedKnown: false, reasoningKnown: false };
const end = { usage, provider: 'openai', costNanoUsd: 14_550n, savingsNanoUsd: 227_950n };
const X_ROUTER = '"x_router":{"provider":"openai","cost_usd":0.00001455,"savings_usd":0.00022795,"routed_from":"auto"}';
const FINISH = Buffer.from('[{"index":0,"delta":{},"finish_reason":"stop"}]');
const wire = (includeUsage: boolean, variant: 'A' | 'B' = 'A') => createStreamWire({ id: 'chatcmpl-1', created: 5, model: 'm', routedFrom: 'auto', includeUsage, choices: 1, variant, framing: UNFRAMED });
const HEAD = 'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m"';
const DONE = 'data: [DONE]\n\n';
const USAGE = '"usage":{"prompt_tokens":61,"completion_tokens":9,"total_tokens":70}';

describe('streamed answers', () => {
  test('without include_usage the finish chunk carries usage and x_router', () => {
    expect(wire(false).chunks([FINISH]).toString()).toBe(`${HEAD},"choices":${FINISH.toString()}}\n\n`);
    expect(wire(false).finish([], FINISH, end).toString()).toBe(`${HEAD},"choices":${FINISH.toString()},${USAGE},${X_ROUTER}}\n\n${DONE}`);
  });

  test('chunks of one turn are separate events, in order', () => {
    const [a, b] = [Buffer.from('[{"index":0}]'), Buffer.from('[{"index":1}]')];
    expect(wire(false).chunks([a, b]).toString()).toBe(`${HEAD},"choices":[{"index":0}]}\n\n${HEAD},"choices":[{"index":1}]}\n\n`);
  });

  test('waiting chunks are sent before the end', () => {
    expect(wire(false).finish([FINISH], FINISH, end).toString().startsWith(`${HEAD},"choices":${FINISH.toString()}}\n\n${HEAD}`)).toBe(true);
  });

  test.each([[1, '1'], [15, 'f'], [16, '10'], [255, 'ff'], [256, '100'], [70_000, '11170']])('a payload of %d bytes is framed as chunk %s', (length, size) => {
    const bytes = CHUNKED.allocate(length);
    bytes.fill('x', bytes.length - CHUNKED.tail - length, bytes.length - CHUNKED.tail);
    expect(bytes.toString()).toBe(`${size}\r\n${'x'.repeat(length)}\r\n`);
  });

  test('with include_usage every chunk has usage null and one more without choices ends it', () => {
    expect(wire(true).finish([], FINISH, end).toString()).toBe(`${HEAD},"choices":${FINISH.toString()},"usage":null}\n\n${HEAD},"choices":[],${USAGE},${X_ROUTER}}\n\n${DONE}`);
  });

  test('variant B has no x_router', () => expect(wire(false, 'B').finish([], FINISH, end).toString()).not.toContain('x_router'));

  test('a stream that breaks ends with an error chunk that parses', () => {
    const text = wire(false).error([], cutToApiError({ class: 'DISCONNECTED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: false }), end).toString();
    expect(text.endsWith(`}\n\n${DONE}`)).toBe(true);
    expect(JSON.parse(text.slice(6, -DONE.length))).toMatchObject({ error: { type: 'server_error', param: null, code: 'provider_disconnected', metadata: { retryable: true } }, choices: [{ index: 0, delta: {}, finish_reason: 'error' }], usage: { total_tokens: 70 } });
  });
});

describe('whole answers, headers, lists', () => {
  test('a completion contains its choices unchanged and exact money', () => {
    const text = renderCompletion({ id: 'x', created: 1, model: 'm', choices: Buffer.from('[]'), usage: { ...usage, cachedKnown: true, reasoningKnown: true }, xRouter: { provider: 'openai', costNanoUsd: 14_550n, savingsNanoUsd: -5n, routedFrom: 'auto' } }).toString();
    expect(text).toBe('{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":61,"completion_tokens":9,"total_tokens":70,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"x_router":{"provider":"openai","cost_usd":0.00001455,"savings_usd":0,"routed_from":"auto"}}');
  });

  test('headers show money without an exponent', () => {
    const headers: HeaderList = [];
    addRouterHeaders(headers, { ...end, model: 'm', basis: 'final' });
    expect(headers).toEqual(['X-Router-Provider', 'openai', 'X-Router-Cost', '0.000014550', 'X-Router-Savings', '0.000227950', 'X-Router-Cost-Basis', 'final']);
  });
  test('a model with a known end is announced, thirty days before', () => {
    const headers: HeaderList = [];
    addRouterHeaders(headers, { ...end, model: 'anthropic/claude-sonnet-4', basis: 'final', sunsetDate: '2026-05-14' });
    expect(headers.slice(8)).toEqual(['Deprecation', '@1776124800', 'Sunset', 'Thu, 14 May 2026 00:00:00 GMT', 'Link', '</v1/models/anthropic/claude-sonnet-4?detail=full>; rel="deprecation"']);
    expect(new Date(1_776_124_800_000).toISOString()).toBe('2026-04-14T00:00:00.000Z');
  });
  test.each([[0, '0s'], [1, '1s'], [1_000, '1s'], [360_000, '6m0s'], [3_605_000, '1h0m5s']])('%d ms is written as %s', (ms, text) => expect(formatReset(ms)).toBe(text));
  test('names that could break a header are left out', () => expect(formatIgnoredParams(['foo', 'a\r\nb', 'é', 'bar'])).toBe('foo,bar'));

  test('the automatic model comes first, in both variants', () => {
    const models = [{ id: 'o/m', ownedBy: 'o', detailJson: Buffer.from('{"context":8}') }];
    expect(renderModelList(models, 'A', false).toString()).toBe('{"object":"list","data":[{"id":"auto","object":"model","owned_by":"signalbox"},{"id":"o/m","object":"model","owned_by":"o"}]}');
    expect(JSON.parse(renderModelList(models, 'B', true).toString())).toMatchObject({ data: [{ id: 'router-auto', permission: [], root: 'router-auto', parent: null }, { id: 'o/m', context: 8 }] });
  });

  test.each([
    [[], 'missing'], [['Authorization', 'Bearer abc'], 'ok'], [['authorization', 'bearer  abc '], 'ok'], [['Authorization', 'Basic abc'], 'malformed'], [['Authorization', 'Bearer a b'], 'malformed'], [['Authorization', ''], 'empty'], [['Authorization', 'Bearer '], 'empty'], [['Authorization', 'bearer'], 'empty'], [['Authorization', 'Bearerabc'], 'malformed'],
    [['Authorization', 'Bearer a', 'AUTHORIZATION', 'Bearer a'], 'duplicate'],
  ])('raw headers %j are %s', (raw, kind) => expect(readAuthorization(raw).kind).toBe(kind));
});
