import { describe, expect, test } from '@jest/globals';
import type { AdmitRequest__Output, AdmitResponse, Limits__Output } from '@signalbox/contracts/quota';
import { overageOf } from '@signalbox/ledger-core/statement';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createMemoryStore } from '../adapters/memory-store.js';
import { readAdmission, writeVerdict } from './admission-request.js';

const INCLUDED = 20_000n;
const LIMITS: Limits__Output = { caps: [], includedTokens: String(INCLUDED), hardCap: false, billingAnchorDay: 0 };
const REQUEST: AdmitRequest__Output = {
  requestId: '', accountId: 'acct_1', keyId: 'key_1', counter: 'CHAT', limits: LIMITS, amountNanoUsd: '0', minAmountNanoUsd: '0', tokens: '5010', minTokens: '5010', byok: false, advance: false,
};

/** Makes requests that ask for 5,010 tokens each and use all of them. */
async function used(limits: Limits__Output, kinds: readonly ('own' | 'managed')[]): Promise<{ readonly answers: readonly AdmitResponse[]; readonly tokens: bigint }> {
  const store = createMemoryStore({ clock: createFakeClock() });
  await store.applyTotals('acct_1', { seq: 1n, totals: [], requestIds: [] }, store.latestEpoch());
  const answers: AdmitResponse[] = [];
  let tokens = 0n;
  for (const [at, kind] of kinds.entries()) {
    const requestId = `r${at}`;
    const byok = kind === 'own';
    const admission = readAdmission({ ...REQUEST, requestId, limits, byok }, undefined);
    const verdict = await store.admit('acct_1', admission.command);
    if (typeof verdict === 'string') throw new Error(`expected a verdict, not ${verdict}`);
    answers.push(writeVerdict(admission, verdict));
    if (verdict.decision !== 'admitted') continue;
    await store.finish('acct_1', { requestId, charge: 0n, tokens: 5_010n, byok, keyId: 'key_1', periods: verdict.periods });
    tokens += 5_010n;
  }
  return { answers, tokens };
}

const ADMITTED = 'ADMITTED';
const REFUSED = 'ALLOTMENT_EXHAUSTED';

test.each<[string, readonly ('own' | 'managed')[]]>([
  ['over own credentials', ['own', 'own', 'own', 'own', 'own', 'own']],
  ['managed', ['managed', 'managed', 'managed', 'managed']],
  ['of both kinds', ['own', 'managed', 'own', 'managed', 'own']],
])('a hard allotment refuses what the bill would count beyond it: tokens %s', async (_name, kinds) => {
  const { answers, tokens } = await used({ ...LIMITS, hardCap: true }, kinds);
  expect(answers.map(({ decision }) => decision)).toEqual(kinds.map((_kind, at) => (at < 3 ? ADMITTED : REFUSED)));
  expect(answers.map(({ remainingTokens }) => remainingTokens)).toEqual(kinds.map((_kind, at) => String(INCLUDED - 5_010n * BigInt(Math.min(at + 1, 3)))));
  expect(answers.at(-1)).toMatchObject({ limitTokens: '20000', limitSource: 'account', spendNanoUsd: '15030', limitNanoUsd: '20000' });
  expect(overageOf(tokens, { includedTokens: INCLUDED, overageNanoUsdPerMillion: 400_000_000n, hardCap: false }).tokens).toBe(0n);
});

test('an allotment that overage follows refuses nobody, and shows what is left to both kinds', async () => {
  const { answers } = await used(LIMITS, ['own', 'managed', 'own', 'managed', 'own']);
  expect(answers.map(({ decision, remainingTokens }) => [decision, remainingTokens])).toEqual([14_990, 9_980, 4_970, 0, 0].map((left) => [ADMITTED, String(left)]));
});

test('an allotment of tokens over own credentials binds beside the hard one, and those alone', async () => {
  const { answers } = await used({ ...LIMITS, hardCap: true, byokTokens: '10000' }, ['own', 'own', 'managed', 'managed', 'managed']);
  expect(answers.map(({ decision }) => decision)).toEqual([ADMITTED, REFUSED, ADMITTED, ADMITTED, REFUSED]);
});

test.each<[string, Limits__Output, readonly ('own' | 'managed')[], readonly (readonly [string | undefined, string | undefined])[]]>([
  ['where it is the only one, and to nobody else', { caps: [], hardCap: false, billingAnchorDay: 0, byokTokens: '10000' }, ['own', 'managed', 'own'], [['10000', '4990'], [undefined, undefined], ['10000', '4990']]],
  ['where less is left of it than of the plan’s', { ...LIMITS, byokTokens: '10000' }, ['own', 'managed', 'own'], [['10000', '4990'], ['20000', '9980'], ['10000', '4990']]],
  ['not where less is left of the plan’s', { ...LIMITS, byokTokens: '19000' }, ['managed', 'own', 'managed'], [['20000', '14990'], ['20000', '9980'], ['20000', '4970']]],
])('what is left of the allotment over own credentials is shown to who asks on them: %s', async (_name, limits, kinds, shown) => {
  const { answers } = await used(limits, kinds);
  expect(answers.map(({ limitTokens, remainingTokens }) => [limitTokens, remainingTokens])).toEqual(shown);
  expect(answers.map(({ resetTokensMs }) => resetTokensMs !== undefined)).toEqual(shown.map(([limit]) => limit !== undefined));
});

test('the allotment that refuses says whose it is', async () => {
  expect((await used({ ...LIMITS, byokTokens: '5000' }, ['own'])).answers).toMatchObject([{ decision: REFUSED, ofOwnCredentials: true }]);
  expect((await used({ ...LIMITS, includedTokens: '5000', hardCap: true }, ['own'])).answers).toEqual([expect.not.objectContaining({ ofOwnCredentials: true })]);
});

test.each<[string, Partial<Limits__Output>, string]>([
  ['a hard allotment', { hardCap: true }, 'ALLOTMENT_EXHAUSTED'],
  ['the trial credit', { trialCreditNanoUsd: '20000' }, 'TRIAL_EXHAUSTED'],
  ['a cost cap', { caps: [{ scope: 'account', period: 'MONTH', capNanoUsd: '20000' }] }, 'COST_CAPPED'],
])('live requests that hold the rest of %s block under its name', async (_name, limits, blockedAs) => {
  const store = createMemoryStore({ clock: createFakeClock() });
  await store.applyTotals('acct_1', { seq: 1n, totals: [], requestIds: [] }, store.latestEpoch());
  const answers: AdmitResponse[] = [];
  for (const requestId of ['r0', 'r1']) {
    const admission = readAdmission({ ...REQUEST, requestId, amountNanoUsd: '15000', minAmountNanoUsd: '15000', tokens: '15000', minTokens: '15000', limits: { ...LIMITS, ...limits } }, undefined);
    const verdict = await store.admit('acct_1', admission.command);
    if (typeof verdict === 'string') throw new Error(`expected a verdict, not ${verdict}`);
    answers.push(writeVerdict(admission, verdict));
  }
  expect(answers.map(({ decision, blockedAs: as }) => [decision, as])).toEqual([[ADMITTED, undefined], ['BLOCKED_BY_LIVE', blockedAs]]);
});

describe('which limits a request meets', () => {
  const limits: Limits__Output = {
    ...LIMITS, hardCap: true, byokTokens: '7', trialCreditNanoUsd: '9', billingAnchorDay: 31,
    caps: [{ scope: 'account', period: 'DAY', capNanoUsd: '1' }, { scope: 'key_1', period: 'TOTAL', capNanoUsd: '2' }, { scope: 'key_2', period: 'WEEK', capNanoUsd: '3' }],
  };
  const read = (over: Partial<AdmitRequest__Output>) => readAdmission({ ...REQUEST, requestId: 'r', amountNanoUsd: '5', limits, ...over }, undefined);
  const [ofDay, ofKey] = [{ scope: 'account', period: 'day', meter: 'charge', limit: 1n }, { scope: 'key', period: 'total', meter: 'charge', limit: 2n }];
  const ofPlan = { scope: 'account', period: 'plan', meter: 'routed', limit: INCLUDED };

  test('on the operator’s credential: the caps of its account and its own key, the credit, the hard allotment', () => {
    const { command, walls } = read({});
    expect(command.walls).toEqual([ofDay, ofKey, { scope: 'account', period: 'total', meter: 'charge', limit: 9n }, ofPlan]);
    expect(walls.map(({ refusal }) => refusal)).toEqual(['COST_CAPPED', 'COST_CAPPED', 'TRIAL_EXHAUSTED', 'ALLOTMENT_EXHAUSTED']);
    expect(command).toMatchObject({ amount: 5n, tokens: 5_010n, anchorDay: 28, needsTotals: true });
  });

  test('on the account’s own: no money and no credit, but both allotments of tokens', () => {
    const { command } = read({ byok: true });
    expect(command.walls).toEqual([ofDay, ofKey, { scope: 'account', period: 'plan', meter: 'byok', limit: 7n }, ofPlan]);
    expect(command).toMatchObject({ amount: 0n, tokens: 5_010n });
  });

  test('for the list of models or keys: none of them', () => {
    expect(read({ counter: 'CONTROL' }).command).toMatchObject({ walls: [], amount: 0n, tokens: 0n, needsTotals: false });
  });

  test('where none is set the ledger need not be asked', () => {
    expect(read({ limits: LIMITS }).command).toMatchObject({ walls: [], needsTotals: false });
  });
});

test('a wait that is longer than its field can tell is told as the longest', async () => {
  const store = createMemoryStore({ clock: createFakeClock(1_000), periodSeconds: 10_000_000 });
  await store.applyTotals('acct_1', { seq: 1n, totals: [], requestIds: [] }, store.latestEpoch());
  const admission = readAdmission({ ...REQUEST, requestId: 'r', limits: { ...LIMITS, includedTokens: '1', hardCap: true } }, 10_000_000);
  const verdict = await store.admit('acct_1', admission.command);
  if (typeof verdict === 'string') throw new Error(`expected a verdict, not ${verdict}`);
  expect(writeVerdict(admission, verdict)).toMatchObject({ decision: REFUSED, retryAfterMs: 4_294_967_295, resetsAtMs: '10000000000' });
});
