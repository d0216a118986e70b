import { expect, test } from '@jest/globals';
import { ATTEMPT_COST_NANO_USD_MAX } from '@signalbox/kernel/tokens';
import { checkAttempt } from './check.js';
import type { AttemptMessage } from './messages.js';

/** 1 nano-dollar per input token, 2 per output token, 7 per request. */
const CARD = {
  id: 'card',
  inputUncached: '1000000',
  cacheRead: '0',
  cacheWrite: '0',
  outputText: '2000000',
  outputReasoning: '0',
  audio: '0',
  image: '0',
  requestNanoUsd: '7',
};
const tokensOf = (inputUncached: number, outputText: number) => ({
  inputUncached,
  cacheRead: 0,
  cacheWrite: 0,
  outputText,
  outputReasoning: 0,
  audio: 0,
  image: 0,
});
const ended = (over: Partial<AttemptMessage>): AttemptMessage => ({
  requestId: 'r',
  attempt: 1,
  retryOf: [],
  accountId: 'a',
  keyId: 'k',
  model: 'm',
  provider: 'p',
  endpointId: 'e',
  card: CARD,
  costNanoUsd: '27',
  savingsNanoUsd: '0',
  source: 'PROVIDER',
  flags: [],
  byok: false,
  tokens: tokensOf(10, 5),
  periods: { day: 'd', week: 'w', month: '2026-11', plan: '2026-11' },
  status: 200,
  failure: 'FAILURE_CLASS_UNSPECIFIED',
  ttftMs: 1,
  totalMs: 2,
  finishReason: '',
  routedFrom: '',
  decisionId: '',
  startedAtMs: '1',
  endedAtMs: '2',
  deliveredUnknown: false,
  ...over,
});

test.each<[string, Partial<AttemptMessage>, string]>([
  ['tokens at the card, with its fee', {}, 'booked'],
  ['one nano-dollar more', { costNanoUsd: '28' }, 'cost_mismatch'],
  ['one nano-dollar less', { costNanoUsd: '26' }, 'cost_mismatch'],
  ['tokens without their cost', { costNanoUsd: '0' }, 'cost_mismatch'],
  ['no tokens and no cost: it failed before any work', { tokens: tokensOf(0, 0), costNanoUsd: '0' }, 'booked'],
  ['no tokens and the fee', { tokens: tokensOf(0, 0), costNanoUsd: '7' }, 'booked'],
  ['no tokens and a cost beside the fee', { tokens: tokensOf(0, 0), costNanoUsd: '8' }, 'cost_mismatch'],
  ['a cost below zero', { costNanoUsd: '-1' }, 'absurd_cost'],
  ['a cost above the maximum', { costNanoUsd: String(ATTEMPT_COST_NANO_USD_MAX + 1n) }, 'absurd_cost'],
  ['a negative cost reported by the provider', { toldNanoUsd: '-1' }, 'absurd_cost'],
  ['a cost reported by the provider above the maximum', { toldNanoUsd: String(ATTEMPT_COST_NANO_USD_MAX + 1n) }, 'absurd_cost'],
  ['a price below zero', { card: { ...CARD, outputText: '-1' } }, 'absurd_cost'],
  ['tokens below zero', { tokens: tokensOf(-1, 5) }, 'absurd_tokens'],
  ['tokens without a card', { card: null }, 'no_card'],
  ['a cost without a card', { card: { ...CARD, id: '' }, tokens: tokensOf(0, 0) }, 'no_card'],
  ['neither tokens, cost nor card', { card: null, tokens: tokensOf(0, 0), costNanoUsd: '0' }, 'booked'],
  ['an unknown source', { source: 'SOURCE_UNSPECIFIED' }, 'unknown_source'],
  ['attempt 0', { attempt: 0 }, 'no_identity'],
  ['no request', { requestId: '' }, 'no_identity'],
])('an attempt with %s is checked against its own card', (_what, over, expected) => {
  const checked = checkAttempt(ended(over));
  expect(typeof checked === 'string' ? checked : 'booked').toBe(expected);
});
