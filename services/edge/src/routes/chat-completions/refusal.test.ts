import { describe, expect, test } from '@jest/globals';
import type { Limits } from '@signalbox/contracts/quota';
import { accountWith, callerWith, keyWith, planWith, requestWith } from '../../testing/callers.js';
import { admissionOf } from '../../testing/neighbours.js';
import type { ChatRequest } from '../../domain/chat-request.js';
import { admissionToApiError } from '../../wire/refusals.js';
import { errorOfRefusal, isUncounted, type Refused } from './refusal.js';

const by = (request: Partial<ChatRequest> = {}, variant: 'A' | 'B' = 'A'): Refused => ({ nowMs: 0, caller: callerWith({ variant }), request: requestWith(request) });

test('a failed plugin that is needed is a fault of ours: 503 with Retry-After, and not counted as a bad request', () => {
  const refusal = { kind: 'plugin-failed', plugin: 'pdf-reader' } as const;
  expect(errorOfRefusal(refusal, by())).toMatchObject({ status: 503, code: 'overloaded', metadata: { plugin: 'pdf-reader', retryable: true }, headers: { 'Retry-After': '1', 'x-should-retry': 'true' } });
  expect(isUncounted(refusal)).toBe(false);
});

test.each(['max_tokens', 'max_completion_tokens'])('a token limit that is too high is reported under the name %s, as it was sent', (maxTokensParam) => {
  const decision = planWith([], { refusal: 'CONTEXT_LENGTH_EXCEEDED', answerLimit: 100 });
  expect(errorOfRefusal({ kind: 'routing', decision, model: 'm' }, by({ maxTokens: 500, maxTokensParam })).param).toBe(maxTokensParam);
  for (const publicParam of ['max_tokens', 'max_completion_tokens']) {
    const failed = { class: 'BAD_REQUEST', status: 400, retryAfterMs: 0, publicMessage: 'Too many.', publicParam, retryable: false } as const;
    const attempts = [{ provider: 'a', failed, byok: false }] as unknown as Extract<Parameters<typeof errorOfRefusal>[0], { kind: 'attempts' }>['attempts'];
    expect(errorOfRefusal({ kind: 'attempts', attempts }, by({ maxTokens: 500, maxTokensParam })).param).toBe(maxTokensParam);
    expect(errorOfRefusal({ kind: 'attempts', attempts }, by()).param).toBe(publicParam);
  }
});

describe('if files are the reason', () => {
  const refusals = [{ kind: 'unbounded-parts' }, { kind: 'routing', decision: planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['file_input'] }), model: 'm' }] as const;
  const hint = /A PDF can be sent with `plugins: \["pdf-reader"\]`, on paid accounts: its text takes its place\.$/;
  test.each(refusals)('$kind: the plugin that reads PDFs is recommended', (refusal) => {
    expect(errorOfRefusal(refusal, by({ hasUnboundedParts: true })).message).toMatch(hint);
  });
  test.each(refusals)('$kind: it is not recommended to who already used it, nor in variant B, which has no plugins', (refusal) => {
    expect(errorOfRefusal(refusal, by({ hasUnboundedParts: true, pluginIds: ['pdf-reader'] })).message).not.toMatch(hint);
    expect(errorOfRefusal(refusal, by({ hasUnboundedParts: true }, 'B')).message).not.toMatch(/plugin|pdf/i);
  });
});

test.each([['pdf-reader', { plugin: 'pdf-reader' }], ['', undefined]])('a problem of %j names the plugin if there is one', (plugin, metadata) => {
  const problem = { kind: 'value', plugin, param: 'n', message: 'No.' } as const;
  expect(errorOfRefusal({ kind: 'plugin-problem', problem }, by())).toMatchObject({ status: 400, param: 'n' });
  expect(errorOfRefusal({ kind: 'plugin-problem', problem }, by()).metadata).toEqual(metadata);
});

describe('a reached rate is reported with its owner', () => {
  const at = (limitRequests: number, limits: Limits, kind: 'chat' | 'control' = 'chat'): string => admissionToApiError(admissionOf('RATE_LIMITED', { limitRequests }), 0, { limits, kind }).message;
  test.each<[number, Limits, string]>([
    [60, { requestsPerMinute: 60 }, 'this account may make 60 requests a minute.'],
    [6, { requestsPerMinute: 60, keyRequestsPerMinute: 6 }, 'this key may make 6 requests a minute.'],
    [60, { requestsPerMinute: 60, keyRequestsPerMinute: 6 }, 'this account may make 60 requests a minute.'],
    [60, { requestsPerMinute: 60, keyRequestsPerMinute: 60 }, 'this account may make 60 requests a minute.'],
    [1, { keyRequestsPerMinute: 1 }, 'this key may make 1 request a minute.'],
  ])('%d of %j', (limitRequests, limits, message) => expect(at(limitRequests, limits)).toBe(`Rate limit reached: ${message}`));
  test('and for other calls, which are counted separately, the message says so', () => {
    expect(at(60, { requestsPerMinute: 60 }, 'control')).toBe('Rate limit reached: this account may make 60 requests a minute, completions not counted.');
  });
  test('a burst is reported as the account’s, for any key', () => {
    const caller = { key: keyWith(), account: accountWith({ burstPerSecond: 7 }), variant: 'A' } as const;
    expect(errorOfRefusal({ kind: 'admission', admission: admissionOf('BURST_LIMITED', {}) }, { ...by(), caller })).toMatchObject({ status: 429, code: 'rate_limit_exceeded', message: 'Rate limit reached: this account may make 7 requests a second.' });
  });
});
