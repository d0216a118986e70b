import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AdmitRequest, Limits } from '@signalbox/contracts/quota';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createAdvances, type Advances } from './advances.js';
import type { Admission, QuotaPort } from './ports.js';

const START_MS = Date.parse('2026-11-21T12:00:00Z');
/** Highest cost and tokens of each request. */
const NANO_USD = 1_000n;
const TOKENS = 10n;
const CAP = 1_000_000_000n;
const CAPPED: Limits = { caps: [{ scope: 'account', period: 'MONTH', capNanoUsd: String(CAP) }] };

let clock: FakeClock;
let quota: QuotaPort;
let advances: Advances;
let asked: AdmitRequest[];
let released: (readonly [string, string | undefined, string | undefined])[];
/** Of advances. */
let decision: Admission['decision'];
/** What the cap leaves. */
let room: bigint;
let isAway: boolean;
let takesDraws: boolean;
/** Live holds block requests that ask quota themselves. */
let isFull: boolean;
/** How long quota takes to answer about an advance. */
let lateMs: number;
let served: number;
let ids: number;

beforeEach(() => {
  clock = createFakeClock(START_MS);
  [asked, released, decision, room, isAway, takesDraws, isFull, lateMs, served, ids] = [[], [], 'ADMITTED', CAP, false, true, false, 0, 0, 0];
  quota = {
    admit: async (request) => {
      asked.push(request);
      if (isAway) throw new Error('away');
      if (lateMs > 0 && request.requestId?.startsWith('adv_') === true) await new Promise<void>((resolve) => void clock.setTimer(lateMs, resolve));
      const answer: Admission = {
        decision: request.advance === true ? decision : isFull ? 'BLOCKED_BY_LIVE' : 'ADMITTED', retryAfterMs: 0, limitSource: '', limitNanoUsd: '0', spendNanoUsd: '0', reservedNanoUsd: '0', heldNanoUsd: String(request.amountNanoUsd), heldTokens: String(request.tokens), epoch: 'life', draws: takesDraws, ofOwnCredentials: false,
        periods: { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11', reservedAtMs: String(clock.nowMs()) },
      };
      // For a request without cost quota does not report the room.
      if (request.amountNanoUsd !== '0') answer.roomNanoUsd = String(room);
      return answer;
    },
    release: (_accountId, requestId, draw) => void released.push([requestId, draw?.amountNanoUsd?.toString(), draw?.tokens?.toString()]),
    extend: () => Promise.resolve(true),
  };
  advances = createAdvances(quota, { clock, makeId: () => `adv_${(ids += 1)}`, onServed: () => void (served += 1) });
});

const ask = (limits: Limits, more: AdmitRequest = {}): Promise<Admission> =>
  advances.admit({ requestId: `r${asked.length}`, accountId: 'acct_1', keyId: 'key_1', counter: 'CHAT', limits, amountNanoUsd: String(NANO_USD), minAmountNanoUsd: '0', tokens: String(TOKENS), minTokens: '0', byok: false, ...more });
/** Sends this many requests, evenly over this time. */
async function come(count: number, overMs: number, limits: Limits, more?: AdmitRequest): Promise<Admission[]> {
  const answers: Admission[] = [];
  for (let i = 0; i < count; i += 1) {
    answers.push(await ask(limits, more));
    await clock.advanceAsync(overMs / count);
  }
  return answers;
}
const taken = (): readonly AdmitRequest[] => asked.filter(({ requestId = '' }) => requestId.startsWith('adv_'));
const drawnFrom = (answers: readonly Admission[]): bigint => answers.reduce((sum, { draw }) => sum + BigInt(String(draw?.amountNanoUsd ?? 0)), 0n);

test('with few requests, quota admits each one', async () => {
  const answers = await come(10, 2_000, CAPPED);
  expect([answers.filter(({ draw }) => draw !== undefined), taken(), asked.length]).toEqual([[], [], 10]);
});

test('with many requests, quota is asked a few times a second, and each request gets the amount that it asked for', async () => {
  await come(200, 1_000, CAPPED);
  asked = [];
  const answers = await come(400, 2_000, CAPPED);
  expect(asked.length).toBeLessThanOrEqual(12);
  expect(answers.filter(({ draw, heldNanoUsd, heldTokens }) => draw !== undefined && heldNanoUsd === String(NANO_USD) && heldTokens === String(TOKENS)).length).toBe(400);
  expect(served).toBeGreaterThanOrEqual(400);
});

test('no more is served from an advance than was taken, and the rest is given back within a second', async () => {
  const answers = await come(300, 1_500, CAPPED);
  await clock.advanceAsync(1_000);
  const byAdvance = new Map<string, bigint>();
  for (const { draw } of answers) if (draw !== undefined) byAdvance.set(draw.advanceId ?? '', (byAdvance.get(draw.advanceId ?? '') ?? 0n) + BigInt(String(draw.amountNanoUsd)));
  expect(byAdvance.size).toBeGreaterThan(0);
  const back = new Map(released.map(([id, amount]) => [id.replace(/-rest$/, ''), BigInt(amount ?? 0)]));
  for (const { requestId = '', amountNanoUsd } of taken()) expect((byAdvance.get(requestId) ?? 0n) + (back.get(requestId) ?? 0n)).toBe(BigInt(String(amountNanoUsd)));
});

test('an advance serves for one second, counted from its request', async () => {
  await come(100, 500, CAPPED);
  expect(taken().length).toBeGreaterThan(0);
  await clock.advanceAsync(1_000);
  const [answer] = await come(1, 1, CAPPED);
  expect(answer?.draw).toBeUndefined();
});

test('an advance is at most a two-hundredth of what the tightest cap leaves, and none is taken if that is little', async () => {
  room = 4_000_000n;
  await come(200, 1_000, CAPPED);
  expect(taken().length).toBeGreaterThan(0);
  for (const { amountNanoUsd } of taken()) expect(BigInt(String(amountNanoUsd))).toBeLessThanOrEqual(room / 200n);
  room = 400_000n;
  await come(200, 1_000, CAPPED);
  asked = [];
  await come(200, 1_000, CAPPED);
  expect(taken()).toEqual([]);
});

test('that bound also holds if requests without cost, which do not report the room, come in between', async () => {
  room = 400_000n;
  for (let i = 0; i < 100; i += 1) {
    await come(1, 5, CAPPED);
    await come(1, 5, CAPPED, { amountNanoUsd: '0' });
  }
  expect(taken()).toEqual([]);
});

test('all keys of an account together take at most a hundredth of what the cap leaves', async () => {
  room = 8_000_000n;
  const keys = Array.from({ length: 10 }, () => ({ ...CAPPED }));
  for (let turn = 0; turn < 20; turn += 1) for (const limits of keys) await ask(limits);
  const amount = taken().reduce((sum, { amountNanoUsd }) => sum + BigInt(String(amountNanoUsd)), 0n);
  expect(amount).toBeGreaterThan(0n);
  expect(amount).toBeLessThanOrEqual(room / 100n);
  // What was given back may be taken again.
  await clock.advanceAsync(1_000);
  asked = [];
  for (let turn = 0; turn < 20; turn += 1) for (const limits of keys) await ask(limits);
  expect(taken().length).toBeGreaterThan(0);
});

test('requests without cost are served from an advance of amount 0', async () => {
  room = 4_000_000n;
  const answers = await come(100, 500, CAPPED, { amountNanoUsd: '0' });
  expect(answers.filter(({ draw }) => draw !== undefined).length).toBeGreaterThan(50);
});

test('the room for growth of a request is what the cap left, minus what was served before', async () => {
  room = 1_000_000_000n;
  const answers = (await come(200, 1_000, CAPPED)).filter(({ draw }) => draw !== undefined);
  const first = answers.filter(({ draw }) => draw?.advanceId === answers[0]?.draw?.advanceId);
  expect(first.slice(0, 3).map(({ roomNanoUsd }) => roomNanoUsd)).toEqual(['1000000000', '999999000', '999998000']);
});

describe('quota is asked about each request', () => {
  test.each<[string, Limits, AdmitRequest]>([
    ['if a rate is counted', { ...CAPPED, requestsPerMinute: 100_000 }, {}],
    ['if bursts are counted', { ...CAPPED, burstPerSecond: 1_000 }, {}],
    ['if the key has a rate', { ...CAPPED, keyRequestsPerMinute: 1_000 }, {}],
    ['if tokens are counted', { ...CAPPED, includedTokens: '1000000' }, {}],
    ['if the account has a trial credit', { trialCreditNanoUsd: '5000000000' }, {}],
    ['if tokens on own credentials are counted', { byokTokens: '100000' }, { byok: true }],
    ['for control calls', CAPPED, { counter: 'CONTROL' }],
  ])('%s', async (_, limits, more) => {
    await come(100, 500, limits, more);
    expect([taken(), asked.length]).toEqual([[], 100]);
  });

  test('if it is an older version without draws, or edge decides by itself', async () => {
    takesDraws = false;
    await come(100, 500, CAPPED);
    expect([taken(), asked.length]).toEqual([[], 100]);
  });

  test('if the replica that granted the advance does not know draws: the advance is given back whole', async () => {
    await come(7, 100, CAPPED);
    takesDraws = false;
    const answers = await come(50, 200, CAPPED);
    expect([taken().length, answers.filter(({ draw }) => draw !== undefined)]).toEqual([1, []]);
    expect(released).toEqual([['adv_1', undefined, undefined]]);
  });

  test('if the request needs more than is left', async () => {
    await come(100, 500, CAPPED);
    expect((await ask(CAPPED, { amountNanoUsd: '1000000000' })).draw).toBeUndefined();
    expect((await ask(CAPPED)).draw).toBeDefined();
  });

  test('for a second after an advance was refused or not answered', async () => {
    decision = 'BLOCKED_BY_LIVE';
    await come(100, 500, CAPPED);
    expect(taken().length).toBe(1);
    decision = 'ADMITTED';
    await clock.advanceAsync(1_000);
    await come(40, 100, CAPPED);
    const before = taken().length;
    expect(before).toBeGreaterThan(1);
    isAway = true;
    await clock.advanceAsync(2_000);
    for (let i = 0; i < 40; i += 1) await ask(CAPPED).catch(() => undefined);
    expect(taken().length).toBe(before + 1);
  });
});

test('changed limits, and the other kind of credential, have advances of their own', async () => {
  const before = await come(100, 500, CAPPED);
  const changed = { ...CAPPED };
  const [first] = await come(1, 1, changed);
  expect(first?.draw).toBeUndefined();
  const own = await come(100, 500, changed, { byok: true, amountNanoUsd: '0' });
  const of = (answers: readonly Admission[]): Set<string | undefined> => new Set(answers.map(({ draw }) => draw?.advanceId).filter((id) => id !== undefined));
  expect([...of(own)].filter((id) => of(before).has(id))).toEqual([]);
  expect(taken().filter(({ byok }) => byok === true).length).toBeGreaterThan(0);
});

test('a request counts in the same day as quota would count it', async () => {
  clock.advance(Date.parse('2026-11-21T23:59:59.300Z') - clock.nowMs());
  const before = await come(100, 500, CAPPED);
  expect(before.at(-1)?.draw).toBeDefined();
  expect(before.at(-1)?.periods?.reservedAtMs).toBe(String(Date.parse('2026-11-21T23:59:59.795Z')));
  await clock.advanceAsync(300);
  expect((await ask(CAPPED)).draw).toBeUndefined();
});

test('all advances of an account are given back at once when one of its requests waits for running ones, whichever key asks', async () => {
  const answers = await come(100, 500, CAPPED);
  isFull = true;
  expect((await ask({ ...CAPPED, keyRequestsPerMinute: 10 }, { keyId: 'key_2' })).decision).toBe('BLOCKED_BY_LIVE');
  const back = released.reduce((sum, [, amount]) => sum + BigInt(amount ?? 0), 0n);
  expect(back + drawnFrom(answers)).toBe(taken().reduce((sum, { amountNanoUsd }) => sum + BigInt(String(amountNanoUsd)), 0n));
});

test('a request counts in the same billing period, if that is shorter than a day', async () => {
  advances = createAdvances(quota, { clock, periodSeconds: 3_600, makeId: () => `adv_${(ids += 1)}` });
  clock.advance(Date.parse('2026-11-21T12:59:59.300Z') - clock.nowMs());
  expect((await come(100, 500, CAPPED)).at(-1)?.draw).toBeDefined();
  await clock.advanceAsync(300);
  expect((await ask(CAPPED)).draw).toBeUndefined();
});

test('a late answer serves for the rest of the second, and one that comes after it is given back whole', async () => {
  lateMs = 600;
  const answers = await come(200, 2_000, CAPPED);
  const [first] = answers.filter(({ draw }) => draw !== undefined);
  const of = answers.flatMap(({ draw }, index) => (draw?.advanceId === first?.draw?.advanceId ? [index * 10] : []));
  expect((of.at(-1) ?? 0) - (of[0] ?? 0)).toBeLessThanOrEqual(400);
  // Quota admitted it before it answered: no request may count as reserved later than it is.
  for (const [index, { periods }] of answers.entries()) expect(Number(periods?.reservedAtMs)).toBeLessThanOrEqual(START_MS + index * 10);

  await clock.advanceAsync(3_000);
  lateMs = 1_200;
  const before = taken().length;
  expect((await come(200, 2_000, CAPPED)).filter(({ draw }) => draw !== undefined)).toEqual([]);
  await clock.advanceAsync(2_000);
  const late = taken().slice(before);
  expect(late.length).toBeGreaterThan(0);
  expect(released.slice(-late.length)).toEqual(late.map(({ requestId, amountNanoUsd, tokens }) => [`${requestId}-rest`, amountNanoUsd, tokens]));
});

test('an advance without an answer from quota is given back, since it may have been stored', async () => {
  await come(7, 100, CAPPED);
  isAway = true;
  for (let i = 0; i < 3; i += 1) await ask(CAPPED).catch(() => undefined);
  const [advance] = taken();
  expect(released).toEqual([[advance?.requestId, advance?.amountNanoUsd, advance?.tokens]]);
});

test('a stopping edge gives back all advances', async () => {
  const answers = await come(100, 500, CAPPED);
  advances.close();
  const back = released.reduce((sum, [, amount]) => sum + BigInt(amount ?? 0), 0n);
  expect(back + drawnFrom(answers)).toBe(taken().reduce((sum, { amountNanoUsd }) => sum + BigInt(String(amountNanoUsd)), 0n));
});
