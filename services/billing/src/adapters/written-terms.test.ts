import { expect, test } from '@jest/globals';
import { tierTerms } from '@signalbox/kernel/tiers';
import type { BillingTerms } from '@signalbox/ledger-core/statement';
import { areAsWritten, termsDigest, termsOf, termsText, type TermsJson } from './written-terms.js';

const { subscriptionNanoUsd, includedTokens, overageNanoUsdPerMillion, trialCreditNanoUsd } = tierTerms('A', 'team');
const OLD: BillingTerms = { tier: 'team', variant: 'A', subscriptionNanoUsd, includedTokens, overageNanoUsdPerMillion, hardCap: true, trialCreditNanoUsd };
const BOUND: BillingTerms = { ...OLD, overshootTokens: 65_536n };
const read = (terms: BillingTerms): TermsJson => JSON.parse(termsText(terms)) as TermsJson;

test.each([OLD, BOUND, { ...BOUND, overshootTokens: 0n }, { ...OLD, hardCap: false, includedTokens: null }])('terms are read as they were written: %#', (terms) => {
  expect(termsOf(read(terms))).toStrictEqual(terms);
  const row = { account_id: 'acct_1', period: '2026-11', terms: read(terms) };
  expect(areAsWritten({ ...row, digest: termsDigest('acct_1', '2026-11', terms) })).toBe(true);
});

test('the digest covers the bound of a hard cap, and older terms without it keep their digest', () => {
  expect(termsDigest('acct_1', '2026-11', OLD)).toBe('b1a4ceed4f458551710b21694ec00b71ab6a6b1166b01cc22f46ac148fe1b887');
  const digests = [OLD, BOUND, { ...BOUND, overshootTokens: 1n }].map((terms) => termsDigest('acct_1', '2026-11', terms));
  expect(new Set(digests).size).toBe(3);
});
