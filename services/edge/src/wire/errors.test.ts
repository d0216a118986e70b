import { describe, expect, test } from '@jest/globals';
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { Failed__Output } from '@signalbox/contracts/worker';
import { Fault, FAULTS, type FaultCode } from '@signalbox/kernel/fault';
import { planWith } from '../testing/callers.js';
import { API_ERRORS, apiError, faultToApiError, forVariant, renderErrorBody, type ApiErrorName } from './errors.js';
import { admissionToApiError, allAttemptsFailed, cutToApiError, refusalToApiError } from './refusals.js';

const names = Object.keys(API_ERRORS) as ApiErrorName[];
const admission = (over: Partial<AdmitResponse__Output>): AdmitResponse__Output => ({ decision: 'COST_CAPPED', retryAfterMs: 0, limitSource: 'key', limitNanoUsd: '5000000000', spendNanoUsd: '4999999999', reservedNanoUsd: '0', periods: null, heldNanoUsd: '0', heldTokens: '0', epoch: '', draws: false, ofOwnCredentials: false, ...over });
const failed = (over: Partial<Failed__Output>): Failed__Output => ({ class: 'PROVIDER_ERROR', status: 500, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true, ...over });

test.each([
  ['spent to its end', { limitSource: 'account', spendNanoUsd: '5000000000' }, 'The cost cap of this account is $5.00; $5.00 is spent.'],
  ['that a request could exceed', {}, 'The cost cap of this key is $5.00; $4.999999999 is spent, and what is left is less than this request may cost. A shorter prompt or a smaller max_tokens may fit.'],
  ['smaller than one request', { limitNanoUsd: '100000', spendNanoUsd: '0' }, 'The cost cap of this key is $0.0001; $0.00 is spent, and what is left is less than this request may cost. A shorter prompt or a smaller max_tokens may fit.'],
])('a cap %s gives its figures in dollars', (_what, over, message) => {
  expect(admissionToApiError(admission(over), 0).message).toBe(message);
});

test.each([
  ['of a key', 'key', '5000000000', ' a week'],
  ['of the account', 'account', '5000000000', ' a day'],
  ['without a reset', 'account', '9000000000', ' in all'],
  ['of an amount that two periods have', 'key', '7000000000', ''],
  ['that was changed meanwhile', 'key', '6000000000', ''],
])('a cap %s says of what period it is', (_what, limitSource, limitNanoUsd, span) => {
  const caps = [
    { scope: 'account', period: 'DAY', capNanoUsd: '5000000000' }, { scope: 'account', period: 'TOTAL', capNanoUsd: '9000000000' },
    { scope: 'key_1', period: 'WEEK', capNanoUsd: '5000000000' }, { scope: 'key_1', period: 'DAY', capNanoUsd: '7000000000' }, { scope: 'key_1', period: 'MONTH', capNanoUsd: '7000000000' },
  ] as const;
  const { message } = admissionToApiError(admission({ limitSource, limitNanoUsd, spendNanoUsd: limitNanoUsd }), 0, { limits: { caps: [...caps] } });
  const usd = limitNanoUsd.replace('000000000', '.00');
  expect(message).toBe(`The cost cap of this ${limitSource} is $${usd}${span}; $${usd} is spent.`);
});

const SHORTER = 'A shorter prompt or a smaller max_tokens may fit.';
test.each([
  ['COST_CAPPED', { nanoUsd: 1_000n, tokens: 9_000n }, true],
  ['COST_CAPPED', { nanoUsd: 1_001n, tokens: 0n }, false],
  ['TRIAL_EXHAUSTED', { nanoUsd: 1_000n, tokens: 9_000n }, true],
  ['TRIAL_EXHAUSTED', { nanoUsd: 1_001n, tokens: 0n }, false],
  ['ALLOTMENT_EXHAUSTED', { nanoUsd: 9_000n, tokens: 1_000n }, true],
  ['ALLOTMENT_EXHAUSTED', { nanoUsd: 0n, tokens: 1_001n }, false],
] as const)('%s with 1,000 left, of which the shortest request needs %j, recommends a shorter one: %s', (decision, least, isAdvised) => {
  const { message } = admissionToApiError(admission({ decision, limitNanoUsd: '5000', spendNanoUsd: '3000', reservedNanoUsd: '1000' }), 0, { least });
  expect(message).toMatch(isAdvised ? `. ${SHORTER}` : /what is left is less than this request may (?:cost|use)\.$/);
});

describe('errors', () => {
  test.each(names)('%s renders as an OpenAI error with the headers of its status', (name) => {
    const error = apiError(name);
    const body = JSON.parse(renderErrorBody(error).toString()) as { error: Record<string, unknown> };
    expect(Object.keys(body.error)).toEqual(['message', 'type', 'param', 'code']);
    const { status } = error;
    expect(error.headers?.['Retry-After'] !== undefined).toBe(status === 429 || status === 503);
    expect(error.headers?.['WWW-Authenticate']).toBe(status === 401 ? 'Bearer' : undefined);
  });

  test.each(names)('%s is never 402 or 403 in variant B', (name) => expect([402, 403]).not.toContain(forVariant(apiError(name), 'B').status));

  test('variant B changes status, type and code of a 403, and keeps its message and metadata', () => {
    const refused = apiError('PLUGIN_REQUIRES_PAID', { param: 'plugins', message: 'The plugin memory needs a paid account.', metadata: { plugin: 'memory' } });
    expect(forVariant(refused, 'B')).toEqual({ ...refused, status: 401, type: 'invalid_request_error', code: 'invalid_api_key', headers: { 'WWW-Authenticate': 'Bearer' } });
    expect(forVariant(apiError('insufficient_scope', { message: 'The API key lacks the scope keys.' }), 'B')).toMatchObject({ status: 401, code: 'invalid_api_key', param: null, message: 'The API key lacks the scope keys.' });
  });

  test.each(Object.keys(FAULTS) as FaultCode[])('fault %s shows neither its internal message nor a status that blames the caller', (code) => {
    const error = faultToApiError(new Fault(code, 'internal words'));
    expect(renderErrorBody(error).toString()).not.toContain('internal words');
    expect([500, 503]).toContain(error.status);
  });

  test.each([[1, '1', '1'], [999, '1', '999'], [1_001, '2', '1001'], [59_999, '60', '59999'], [60_000, '60', undefined], [0, '1', '1']])('a wait of %d ms becomes Retry-After %s', (ms, seconds, exact) => {
    const { headers } = apiError('requests_rate_limited', { retryAfterMs: ms });
    expect([headers?.['Retry-After'], headers?.['retry-after-ms']]).toEqual([seconds, exact]);
  });

  test('a cost cap gives its exact figures, and must not be retried', () => {
    const error = admissionToApiError(admission({ resetsAtMs: '10000' }), 4_000);
    expect(renderErrorBody(error).toString()).toContain('"metadata":{"limit_source":"key","limit_usd":5,"spend_usd":4.999999999,"reserved_usd":0,"resets_at":10}');
    expect(error.headers).toEqual({ 'x-should-retry': 'false' });
    expect(forVariant(error, 'B')).toMatchObject({ status: 429, code: 'insufficient_quota', headers: { 'Retry-After': '6', 'x-should-retry': 'false' } });
  });

  test.each([9_999, 0, 3_600_000])('the wait until a limit is reset uses the clock that decided, whatever the one here says (%d)', (nowMs) => {
    const decided = { resetsAtMs: '10000', periods: { day: '', week: '', month: '', plan: '', reservedAtMs: '4000' } };
    expect(forVariant(admissionToApiError(admission(decided), nowMs), 'B').headers?.['Retry-After']).toBe('6');
    expect(admissionToApiError(admission({ ...decided, decision: 'ALLOTMENT_EXHAUSTED' }), nowMs).headers?.['Retry-After']).toBe('6');
  });

  test('a cap that is never reset has a wait of one day in variant B', () => {
    expect(forVariant(admissionToApiError(admission({}), 0), 'B').headers?.['Retry-After']).toBe('86400');
  });

  test('a cap blocked only by live requests may be retried within five seconds', () => {
    expect(admissionToApiError(admission({ decision: 'BLOCKED_BY_LIVE', retryAfterMs: 60_000 }), 0)).toMatchObject({ status: 402, headers: { 'Retry-After': '5' }, metadata: { limit_source: 'in_flight' } });
  });

  test.each([
    ['COST_CAPPED', 402, 'cost_cap_exceeded', { limit_usd: 5_000_000_000n }],
    ['TRIAL_EXHAUSTED', 402, 'trial_credit_exhausted', { limit_usd: 5_000_000_000n }],
    ['ALLOTMENT_EXHAUSTED', 429, 'insufficient_quota', {}],
  ] as const)('live requests that block %s give %i %s, with a short wait after which clients repeat it', (blockedAs, status, code, figures) => {
    const error = admissionToApiError(admission({ decision: 'BLOCKED_BY_LIVE', blockedAs, retryAfterMs: 1_000, resetsAtMs: '100000' }), 0);
    expect(error).toMatchObject({ status, code, metadata: { limit_source: 'in_flight', resets_at: 100 } });
    expect(error.metadata).toEqual({ limit_source: 'in_flight', resets_at: 100, ...(status === 402 ? { spend_usd: 4_999_999_999n, reserved_usd: 0n } : {}), ...figures });
    // Clients repeat a 429 by themselves, a 402 only if they are told to.
    const headers = { 'Retry-After': '1', 'retry-after-ms': '1000', ...(status === 402 ? { 'x-should-retry': 'true' } : {}) };
    expect(error.headers).toEqual(headers);
    expect(forVariant(error, 'B')).toMatchObject({ status: 429, code: 'insufficient_quota', headers });
  });

  test.each([
    ['TRIAL_EXHAUSTED', '5000000000', 'The trial credit is used up.'],
    ['TRIAL_EXHAUSTED', '1000000000', 'Of the trial credit of $5.00, $1.00 is spent, and what is left is less than this request may cost.'],
    ['ALLOTMENT_EXHAUSTED', '5000000000', 'The token allotment of this period is used up.'],
    ['ALLOTMENT_EXHAUSTED', '1000000000', 'The token allotment of this period is 5000000000; 1000000000 are used, and what is left is less than this request may use.'],
  ] as const)('%s with %s of 5000000000 spent gives what is left', (decision, spendNanoUsd, message) => {
    expect(admissionToApiError(admission({ decision, spendNanoUsd }), 0).message.startsWith(message)).toBe(true);
  });

  test.each([
    ['COST_CAPPED', 'The cost cap of this key is $5.00; $1.00 is spent, $4.00 is held for running requests, and what is left is less than this request may cost.'],
    ['TRIAL_EXHAUSTED', 'Of the trial credit of $5.00, $1.00 is spent, $4.00 is held for running requests, and what is left is less than this request may cost.'],
    ['ALLOTMENT_EXHAUSTED', 'The token allotment of this period is 5000000000; 1000000000 are used, 4000000000 are held for running requests, and what is left is less than this request may use.'],
  ] as const)('%s of which running requests hold the rest is not called used up', (decision, message) => {
    expect(admissionToApiError(admission({ decision, spendNanoUsd: '1000000000', reservedNanoUsd: '4000000000' }), 0, { least: { nanoUsd: 1n, tokens: 1n } }).message).toBe(message);
  });

  test('the allotment over own credentials has messages of its own: when used up, when little is left, and when live requests hold the rest', () => {
    const own = { decision: 'ALLOTMENT_EXHAUSTED', ofOwnCredentials: true } as const;
    expect(admissionToApiError(admission({ ...own, spendNanoUsd: '5000000000' }), 0).message).toBe('The allotment of tokens over your own credentials of this period is used up.');
    expect(admissionToApiError(admission({ ...own, limitNanoUsd: '100', spendNanoUsd: '90' }), 0).message).toMatch(/^The allotment of tokens over your own credentials of this period is 100; 90 are used,/);
    expect(admissionToApiError(admission({ ...own, decision: 'BLOCKED_BY_LIVE', blockedAs: 'ALLOTMENT_EXHAUSTED' }), 0).message).toContain('the rest of the allotment of tokens over your own credentials.');
  });

  test('an allotment that is used up has the wait until its reset', () => {
    expect(admissionToApiError(admission({ decision: 'ALLOTMENT_EXHAUSTED', resetsAtMs: '100000' }), 0)).toMatchObject({ status: 429, type: 'insufficient_quota', headers: { 'Retry-After': '100', 'x-should-retry': 'false' } });
  });

  test('a loss of quota while an answer ran is our fault: 503 quota_unavailable, in both variants', () => {
    const away = allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ class: 'QUOTA_AWAY', status: 200, retryAfterMs: 2_500 }) }]);
    for (const variant of ['A', 'B'] as const) expect(forVariant(away, variant)).toMatchObject({ status: 503, code: 'quota_unavailable', headers: { 'Retry-After': '3', 'x-should-retry': 'true' } });
    expect(cutToApiError(failed({ class: 'QUOTA_AWAY' }))).toMatchObject({ type: 'server_error', code: 'quota_unavailable', metadata: { retryable: true } });
  });

  test('a failure of all attempts gives the shortest wait and every provider', () => {
    const error = allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ retryAfterMs: 9_000, class: 'RATE_LIMITED', status: 429 }) }, { byok: false, provider: 'b', failed: failed({ retryAfterMs: 3_000 }) }]);
    expect(error).toMatchObject({ status: 503, code: 'all_models_unavailable', headers: { 'Retry-After': '3' }, metadata: { previous_errors: [{ provider: 'a', status: 429, code: 'rate_limited' }, { provider: 'b', status: 500, code: 'provider_error' }] } });
    expect(allAttemptsFailed([]).headers?.['Retry-After']).toBe('5');
    expect(allAttemptsFailed([], 61_000).headers?.['Retry-After']).toBe('61');
  });

  test.each([
    ['both credentials limited, the first one free again', [{ retryAfterMs: 0, hintMs: 2_000 }, { retryAfterMs: 0, hintMs: 3_000 }], '2'],
    ['the pool’s own wait', [{ retryAfterMs: 0, hintMs: 600_000 }, { retryAfterMs: 7_000 }], '7'],
    ['a long wait of one, while the other failed without any', [{ retryAfterMs: 0, hintMs: 600_000 }, { retryAfterMs: 0 }], '5'],
    ['a short wait of one, while the other failed without any', [{ retryAfterMs: 0, hintMs: 1_500 }, { retryAfterMs: 0 }], '2'],
  ] as const)('the wait of one credential while another is free can only shorten the wait: %s', (_name, failures, expected) => {
    expect(allAttemptsFailed(failures.map((told) => ({ byok: false, provider: 'a', failed: failed({ class: 'RATE_LIMITED', status: 429, ...told }) }))).headers?.['Retry-After']).toBe(expected);
  });

  test('a refused own credential is a 503 that names its owner; beside other failures it is not blamed for them', () => {
    const refused = { byok: true, provider: 'a', failed: failed({ class: 'CREDENTIAL', status: 401 }) } as const;
    expect(allAttemptsFailed([refused])).toMatchObject({ status: 503, code: 'all_models_unavailable', message: expect.stringContaining('/api/providers/a') as unknown, metadata: { previous_errors: [{ provider: 'a', status: 401, code: 'credential' }] } });
    expect(allAttemptsFailed([refused, { byok: true, provider: 'b', failed: failed({}) }]).message).not.toContain('credential');
    expect(allAttemptsFailed([{ ...refused, byok: false }]).message).not.toContain('credential');
  });

  test.each([
    ['was limited', [failed({ class: 'RATE_LIMITED', status: 429 })], /own credential, is rate-limited at a right now.*not asked/],
    ['did not answer', [failed({ class: 'CONNECT', status: 0 })], /own credential, could not be served by a right now.*not asked/],
    ['was limited, and failed', [failed({ class: 'RATE_LIMITED', status: 429 }), failed({})], /could not be served by a, b right now/],
  ])('if an own credential %s, the message says that the request ran only on it', (_what, failures, message) => {
    const tried = (byok: boolean) => failures.map((told, index) => ({ byok, provider: 'ab'[index] ?? '', failed: told }));
    expect(allAttemptsFailed(tried(true))).toMatchObject({ status: 503, code: 'all_models_unavailable', message: expect.stringMatching(message) as unknown });
    expect(allAttemptsFailed(tried(false)).message).not.toContain('credential');
  });

  test('an own credential that accounts cannot deliver is a fault of ours, without advice to set it again; beside other failures it is one of them', () => {
    const away = { byok: true, provider: 'a', failed: failed({ class: 'ACCOUNTS_AWAY', status: 0 }) } as const;
    const error = allAttemptsFailed([away]);
    for (const variant of ['A', 'B'] as const) expect(forVariant(error, variant)).toMatchObject({ status: 503, code: 'accounts_unavailable', headers: { 'Retry-After': '5', 'x-should-retry': 'true' }, metadata: { retryable: true, previous_errors: [{ provider: 'a', status: null, code: 'accounts_away' }] } });
    expect(error.message).not.toMatch(/refused|PUT/);
    expect(allAttemptsFailed([away, { byok: true, provider: 'b', failed: failed({ class: 'CREDENTIAL', status: 401 }) }])).toMatchObject({ code: 'all_models_unavailable', message: expect.not.stringContaining('PUT') as unknown });
  });

  test('an answer longer than any model writes is blamed on max_tokens, and a prompt that no model can read on messages', () => {
    const refused = (over: Parameters<typeof planWith>[1]) => refusalToApiError(planWith([], { refusal: 'CONTEXT_LENGTH_EXCEEDED', contextLimit: 128_000, ...over }), 'm', 'A');
    expect(refused({ answerLimit: 16_384 })).toMatchObject({ status: 400, code: 'invalid_value', param: 'max_tokens', message: expect.stringContaining('at most 16384') as unknown });
    expect(refused({})).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages', message: expect.stringContaining('128000 tokens') as unknown });
    expect(allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ class: 'CONTEXT_LENGTH' }) }])).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
  });

  test.each([['BAD_REQUEST', 'invalid_value'], ['CONTEXT_LENGTH', 'context_length_exceeded'], ['CONTENT_POLICY', 'content_policy_violation']] as const)('%s of the last attempt becomes a 400 with %s', (kind, code) => {
    expect(allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ class: kind, publicMessage: 'Too bad.', publicParam: 'stop' }) }])).toMatchObject({ status: 400, code, message: 'Too bad.', param: 'stop' });
  });

  test('a request is not blamed if planned attempts were not made: it may be retried', () => {
    expect(allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ class: 'CONTEXT_LENGTH' }) }], 0, true)).toMatchObject({ status: 503, code: 'all_models_unavailable', headers: { 'Retry-After': '5', 'x-should-retry': 'true' }, metadata: { retryable: true, previous_errors: [{ code: 'context_length' }] } });
  });

  test.each([
    ['PROVIDER_ERROR', 'b', 503, 'all_models_unavailable'],
    ['RATE_LIMITED', 'b', 503, 'all_models_unavailable'],
    ['NOT_FOUND', 'b', 400, 'context_length_exceeded'],
    ['NO_CREDENTIAL', 'b', 400, 'context_length_exceeded'],
    ['DISCONNECTED', 'a', 400, 'context_length_exceeded'],
  ] as const)('a prompt that is too long for the last provider, after %s at %s, is a %d', (kind, provider, status, code) => {
    const tooLong = { byok: false, provider: 'a', failed: failed({ class: 'CONTEXT_LENGTH', status: 400 }) };
    expect(allAttemptsFailed([{ byok: false, provider, failed: failed({ class: kind }) }, tooLong])).toMatchObject({ status, code });
  });

  test('nor is a prompt blamed for its length while an endpoint with more room is down: it may be sent again once that is back', () => {
    const of = (kind: 'CONTEXT_LENGTH' | 'BAD_REQUEST') => allAttemptsFailed([{ byok: false, provider: 'a', failed: failed({ class: kind, status: 400 }) }], 6_500);
    expect(of('CONTEXT_LENGTH')).toMatchObject({ status: 503, code: 'all_models_unavailable', headers: { 'Retry-After': '7' }, metadata: { retryable: true } });
    expect(of('BAD_REQUEST')).toMatchObject({ status: 400, code: 'invalid_value' });
  });

  test.each([['BAD_REQUEST', 'invalid_value'], ['CONTEXT_LENGTH', 'context_length_exceeded'], ['CONTENT_POLICY', 'content_policy_violation']] as const)('a stream that %s broke off is reported with that reason, and must not be retried', (kind, code) => {
    expect(cutToApiError(failed({ class: kind, publicMessage: 'Too bad.', publicParam: 'stop' }))).toMatchObject({ type: 'invalid_request_error', code, message: 'Too bad.', param: 'stop', metadata: { retryable: false } });
    expect(cutToApiError(failed({ class: kind }))).toMatchObject({ code, message: expect.stringMatching(/./) as unknown });
  });

  test('the end of a stream that this service stopped is reported as ours, and as charged', () => {
    expect(cutToApiError(failed({ class: 'STOPPED' }))).toMatchObject({ type: 'server_error', code: 'overloaded', message: expect.stringContaining('is charged') as unknown, metadata: { retryable: true, charged: true } });
  });

  test('any other end of a stream is reported as the provider’s, and may be retried', () => {
    for (const [kind, code] of [['PROVIDER_ERROR', 'provider_error'], ['RATE_LIMITED', 'provider_error'], ['DISCONNECTED', 'provider_disconnected'], ['TIMEOUT_IDLE', 'provider_timeout']] as const) {
      expect(cutToApiError(failed({ class: kind, publicMessage: 'words of the provider' }))).toMatchObject({ type: 'server_error', code, message: expect.not.stringContaining('words of') as unknown, metadata: { retryable: true } });
    }
  });
});
