import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { brokenLink, canonicalText, CHAIN_START, chainHash, type ChainedRow } from './hash-chain.js';
import { sumDeltas, totalDeltas } from './totals.js';

const row = (seq: bigint, amount: bigint): ChainedRow => ({
  accountId: 'acct_1', seq, kind: 'charge', requestId: `r${seq}`, attempt: 0, amountNanoUsd: amount, tokens: 3n, byokTokens: 0n, source: 'provider',
  flags: ['a'], provider: 'sim', period: '2026-11', atMs: 1n, appliesTo: '', cardId: 'card',
});

function chain(rows: readonly ChainedRow[]) {
  let prevHash = CHAIN_START;
  return rows.map((each) => {
    const linked = { ...each, prevHash, hash: chainHash(prevHash, each) };
    prevHash = linked.hash;
    return linked;
  });
}

describe('the hash chain', () => {
  test('never changes its hash of a row', () => {
    expect(chainHash(CHAIN_START, row(1n, 5n))).toBe('985b5641c6e07620a6b6ef9a885b8d5c65297849346ee8bc165a2fa141509dfb');
  });

  test('hashes the canonical text of any row, of plain, foreign and long texts alike', () => {
    const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 6 }), fc.constantFrom('', '"', '\\', '\n', '\u007f', '\ud800', 'ü', 'x'.repeat(400)));
    const edges = fc.constantFrom(0n, 9n, 10n, 9_999_999n, 10_000_000n, 10_000_001n, 99_999_999_999_999n, 100_000_000_000_000n, (1n << 53n) - 1n, 1n << 53n, (1n << 53n) + 1n);
    const whole = (min: bigint, max: bigint): fc.Arbitrary<bigint> => fc.oneof(fc.bigInt({ min, max }), edges, fc.nat({ max: 53 }).map((bits) => 1n << BigInt(bits)));
    const anyRow = fc.record<ChainedRow>({
      accountId: text, seq: whole(1n, 1n << 62n), kind: text, requestId: text, attempt: fc.nat(), amountNanoUsd: whole(-(1n << 62n), 1n << 62n), tokens: whole(0n, 1n << 40n),
      byokTokens: fc.bigInt({ min: 0n, max: 9n }), source: text, flags: fc.array(text, { maxLength: 3 }), provider: text, period: text, atMs: whole(0n, 1n << 50n), appliesTo: text, cardId: text,
    });
    fc.assert(fc.property(fc.constantFrom(CHAIN_START, 'f'.repeat(64)), anyRow, (previous, each) => {
      expect(chainHash(previous, each)).toBe(createHash('sha256').update(`${previous}\n${canonicalText(each)}`).digest('hex'));
    }), { numRuns: 2_000 });
  });

  test('verifies as written and shows a changed amount, a missing row and a swapped row', () => {
    const rows = chain([row(1n, 5n), row(2n, 6n), row(3n, 7n)]);
    expect(brokenLink(rows)).toBeUndefined();
    expect(brokenLink(rows.map((each, i) => (i === 1 ? { ...each, amountNanoUsd: 5n } : each)))).toBe(1);
    expect(brokenLink(rows.filter((_, i) => i !== 1))).toBe(1);
    expect(brokenLink(rows.toReversed())).toBe(0);
  });
});

describe('totals', () => {
  test('move for the account and for the key, in each period and for all time', () => {
    const deltas = totalDeltas({ keyId: 'key_1', periods: { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11' }, chargeNanoUsd: 5n, tokens: 2n, byokTokens: 0n });
    expect(deltas.map((delta) => `${delta.scope} ${delta.periodId}`)).toEqual([
      'account day:2026-11-21', 'account week:2026-W47', 'account month:2026-11', 'account plan:2026-11', 'account total',
      'key_1 day:2026-11-21', 'key_1 week:2026-W47', 'key_1 month:2026-11', 'key_1 plan:2026-11', 'key_1 total',
    ]);
    expect(sumDeltas([...deltas, ...deltas])[0]).toMatchObject({ chargeNanoUsd: 10n, tokens: 4n });
  });
});
