/** Who pays in which case: the facts that workers and edge report, and what is then charged and booked. */
import { expect, test } from '@jest/globals';
import type { AttemptMessage, OutcomeMessage } from './messages.js';
import { book } from './booking.js';
import { checkAttempt, checkOutcome } from './check.js';

interface Told {
  readonly attempt?: number;
  readonly retryOf?: readonly number[];
  readonly input?: number;
  readonly output?: number;
  readonly source?: 'PROVIDER' | 'ESTIMATED' | 'ORPHAN';
  readonly flags?: readonly string[];
  readonly failure?: string;
  readonly byok?: boolean;
}

/** 1 nano-dollar per input token, 2 per output token. */
const price = { id: 'card', inputUncached: '1000000', cacheRead: '0', cacheWrite: '0', outputText: '2000000', outputReasoning: '0', audio: '0', image: '0', requestNanoUsd: '0' };
const ended = ({ attempt = 1, retryOf = [], input = 10, output = 5, source = 'PROVIDER', flags = [], failure = 'FAILURE_CLASS_UNSPECIFIED', byok = false }: Told): AttemptMessage => ({
  requestId: 'r', attempt, retryOf, accountId: 'a', keyId: 'k', model: 'm', provider: `p${attempt}`, endpointId: 'e', card: price, costNanoUsd: String(input + 2 * output), savingsNanoUsd: '0', source, flags, byok,
  tokens: { inputUncached: input, cacheRead: 0, cacheWrite: 0, outputText: output, outputReasoning: 0, audio: 0, image: 0 }, periods: { day: 'd', week: 'w', month: '2026-11', plan: '2026-11' },
  status: 200, failure, ttftMs: 1, totalMs: 2, finishReason: '', routedFrom: '', decisionId: '', startedAtMs: '1', endedAtMs: '2', deliveredUnknown: source === 'ORPHAN',
});
const told = (outcome: string, attempt = 1, toldByEdge = true): OutcomeMessage => ({ requestId: 'r', attempt, accountId: 'a', outcome, toldByEdge });

function accepted<Fact>(fact: Fact | string): Fact {
  if (typeof fact === 'string') throw new Error(fact);
  return fact;
}

/** Costs of the attempts, and the one charge with the source and flags of its attempt. */
function booked(attempts: readonly AttemptMessage[], outcomes: readonly OutcomeMessage[]) {
  const { rows } = book({ attempts: attempts.map((each) => accepted(checkAttempt(each))), outcomes: outcomes.map((each) => accepted(checkOutcome(each))), requests: new Map(), heads: new Map(), nowMs: 9 });
  const charges = rows.filter(({ kind }) => kind === 'charge');
  expect(rows.filter(({ kind }) => kind === 'adjustment')).toEqual([]);
  expect(charges).toHaveLength(1);
  return { costs: rows.filter(({ kind }) => kind === 'attempt').map(({ amountNanoUsd }) => amountNanoUsd), charge: charges[0]?.amountNanoUsd, tokens: charges[0]?.tokens, source: charges[0]?.source };
}

const estimated: Told = { output: 3, source: 'ESTIMATED', flags: ['estimated'] };

test.each<readonly [string, readonly AttemptMessage[], readonly OutcomeMessage[], ReturnType<typeof booked>]>([
  ['success: provider usage', [ended({})], [told('DELIVERED')], { costs: [20n], charge: 20n, tokens: 15n, source: 'provider' }],
  [
    'a fallback worked: the successful attempt only, both are our cost',
    [ended({ output: 0, source: 'ESTIMATED', failure: 'DISCONNECTED' }), ended({ attempt: 2, retryOf: [1] })], [told('SUPERSEDED'), told('DELIVERED', 2)], { costs: [10n, 20n], charge: 20n, tokens: 15n, source: 'provider' },
  ],
  [
    'all attempts failed: 0, with what they cost us',
    [ended({ output: 0, failure: 'EMPTY' }), ended({ attempt: 2, retryOf: [1], input: 4, output: 0, failure: 'PROVIDER_ERROR' })], [told('SUPERSEDED'), told('DISCARDED', 2)], { costs: [10n, 4n], charge: 0n, tokens: 0n, source: 'provider' },
  ],
  ['the provider cut the stream: what was delivered, estimated', [ended({ ...estimated, failure: 'DISCONNECTED' })], [told('DELIVERED')], { costs: [16n], charge: 16n, tokens: 13n, source: 'estimated' }],
  ['the client hung up and the provider was cancelled: what was generated until then', [ended({ ...estimated, output: 2 })], [told('DELIVERED')], { costs: [14n], charge: 14n, tokens: 12n, source: 'estimated' }],
  ['the client hung up on what cannot be cancelled: the full answer', [ended({})], [told('DELIVERED')], { costs: [20n], charge: 20n, tokens: 15n, source: 'provider' }],
  ['our process died mid-stream: the last checkpoint', [ended({ output: 1, source: 'ORPHAN', flags: ['orphan'] })], [told('DELIVERED', 1, false)], { costs: [12n], charge: 12n, tokens: 11n, source: 'orphan' }],
  ['our process died before anything was delivered: 0, and our cost', [ended({ output: 0, source: 'ORPHAN', flags: ['orphan'] })], [told('DISCARDED', 1, false)], { costs: [10n], charge: 0n, tokens: 0n, source: 'orphan' }],
  ['an empty answer with an error finish: 0', [ended({ output: 0, failure: 'EMPTY' })], [told('DISCARDED')], { costs: [10n], charge: 0n, tokens: 0n, source: 'provider' }],
  ['an explicit zero of the provider is zero', [ended({ input: 0, output: 0 })], [told('DELIVERED')], { costs: [0n], charge: 0n, tokens: 0n, source: 'provider' }],
  ['an own key: 0, and what it cost at the provider', [ended({ byok: true })], [told('DELIVERED')], { costs: [20n], charge: 0n, tokens: 0n, source: 'provider' }],
])('%s', (_case, attempts, outcomes, expected) => {
  expect(booked(attempts, outcomes)).toEqual(expected);
});

test('text that Postgres cannot read as JSON never gets into the books', () => {
  const detail = String(accepted(checkAttempt({ ...ended({}), routedFrom: 'a\0b', finishReason: 'st\0p' })).detail);
  expect(detail).not.toContain('\\u0000');
  expect(JSON.parse(detail)).toMatchObject({ routed_from: 'a\uFFFDb', finish_reason: 'st\uFFFDp' });
});

test.each<readonly [string, Partial<AttemptMessage>, string]>([
  ['2^60 tokens', { tokens: { inputUncached: 2 ** 60, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 } }, 'absurd_tokens'],
  ['tokens below 0', { tokens: { inputUncached: -1, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 } }, 'absurd_tokens'],
  ['a cost of 2^60', { costNanoUsd: String(2n ** 60n) }, 'absurd_cost'],
  ['a cost below 0', { costNanoUsd: '-1' }, 'absurd_cost'],
  ['an unknown source', { source: 'VERSION_9' }, 'unknown_source'],
  ['a price below 0', { card: { ...price, outputText: '-1' } }, 'absurd_cost'],
  ['a cost that does not match the card', { costNanoUsd: '21' }, 'cost_mismatch'],
])('%s is never booked', (_what, over, reason) => {
  expect(checkAttempt({ ...ended({}), ...over })).toBe(reason);
});
