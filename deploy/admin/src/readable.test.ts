import { expect, test } from '@jest/globals';
import { harmless, harmlessLines, readable } from './readable.js';

const NAME = 'a\u001b[2J\u009b31m\nstatus: active\u202e\u2028\u007fz é😀';

test('nothing in a name steers the terminal or forges a line', () => {
  const text = readable({ keys: [{ name: NAME, status: 'revoked' }], tags: [NAME], none: null });
  expect(text.trimStart()).toBe(
    ['keys:', '  -', '    name: a\\u001b[2J\\u009b31m\\u000astatus: active\\u202e\\u2028\\u007fz é😀', '    status: revoked', 'tags:', '  - a\\u001b[2J\\u009b31m\\u000astatus: active\\u202e\\u2028\\u007fz é😀', 'none: -'].join('\n'),
  );
});

test('what a server says steers nothing, and keeps its lines', () => {
  expect(harmlessLines('models.json: bad\nproviders.json: \u001b[2Jworse\u202e')).toBe('models.json: bad\nproviders.json: \\u001b[2Jworse\\u202e');
});

test('JSON means the same and steers nothing', () => {
  const text = harmless(JSON.stringify({ name: NAME }));
  expect(JSON.parse(text)).toEqual({ name: NAME });
  expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Bidi_Control}]/u);
});

test('a person reads times as times, and no fractions of a millisecond', () => {
  expect(readable({ created_at: 1_795_462_533, revoked_at: null, latency_ms_p75: 32.42149286353205, cost_usd: 0.0000123, charge_usd: 1.01e-7, amount_usd: -3e-9, cap_usd: 9_000_000, seq: 1_795_462_533 })).toBe('\ncreated_at: 2026-11-23T19:35:33Z\nrevoked_at: -\nlatency_ms_p75: 32\ncost_usd: 0.000012300\ncharge_usd: 0.000000101\namount_usd: -0.000000003\ncap_usd: 9000000.000000000\nseq: 1795462533');
});

test('a person reads what is told in milliseconds likewise, and no number that only looks so', () => {
  expect(readable({ at: 1_795_462_533_000, seq: 1_795_462_533_000, rows: [{ at: 1_795_462_533 }], starts_at: 0 })).toBe('\nat: 2026-11-23T19:35:33Z\nseq: 1795462533000\nrows:\n  -\n    at: 2026-11-23T19:35:33Z\nstarts_at: 0');
});

test('a person reads dollars, to the nano', () => {
  expect(readable({ spent_usd: 4_439_530.102979697, savings_usd: -8_388_607.999999999 })).toBe('\nspent_usd: 4439530.102979697\nsavings_usd: -8388607.999999999');
  expect(readable({ settled_nano_usd: '36900', remaining_nano_usd: null, buckets: [{ amount_nano_usd: '-9007199254740993' }], note_nano_usd: 'x' })).toBe('\nsettled_usd: 0.000036900\nremaining_usd: -\nbuckets:\n  -\n    amount_usd: -9007199.254740993\nnote_usd: x');
});
