import { beforeEach, expect, test } from '@jest/globals';
import type { VerifyResponse } from '@signalbox/contracts/billing';
import type { WriterReport } from '@signalbox/ledger-core/close';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createBooksHandlers, type BooksDoorOptions } from './books-door.js';

let clock: FakeClock;
let writers: readonly WriterReport[];
/** The reports of the writers at a time, if they change. */
let at: (elapsedMs: number) => readonly WriterReport[];

/** A writer whose log is completely booked and that runs nothing, as it reports now. */
const writer = (changes: Partial<WriterReport> = {}): WriterReport => ({ writer: 'w', lastSeq: 9n, ledgerSeq: 9n, gaps: 0n, reportedAtMs: clock.nowMs(), openSinceMs: 0, isDeclaredLost: false, ...changes });

beforeEach(() => {
  clock = createFakeClock();
  writers = [writer()];
  at = () => writers;
});

/** Verifies, and lets as much time pass as that takes. */
async function prove(accountId = ''): Promise<{ readonly wrong: readonly string[]; readonly underWay: VerifyResponse['underWay']; readonly tookMs: number }> {
  // The check of the store alone counts every writer that is behind.
  const checks = () => writers.filter(({ ledgerSeq, lastSeq }) => ledgerSeq !== lastSeq).map((one) => one.writer);
  const inOrder = { invariant: 'I2', description: '', violations: 0n, examples: [] };
  const books = {
    writerReports: () => Promise.resolve(at(clock.monotonicMs())),
    verify: () => Promise.resolve([inOrder]),
    verifyFrom: () => Promise.resolve({ checks: [inOrder, { invariant: 'I6', description: '', violations: BigInt(checks().length), examples: checks() }], accounts: 1, next: '' }),
  };
  const handlers = createBooksHandlers({ books, clock, ledgerNow: () => Promise.resolve(clock.nowMs()) } as unknown as BooksDoorOptions);
  let answer: VerifyResponse | undefined;
  const fromMs = clock.monotonicMs();
  void (handlers['Verify']?.({ accountId } as never, {} as never) as Promise<VerifyResponse>).then((told) => (answer = told));
  for (await clock.settle(); answer === undefined && clock.pendingTimers() > 0; ) await clock.advanceAsync(100);
  const wrong = (answer?.checks ?? []).flatMap(({ invariant, violations, examples = [] }) => (violations === '0' ? [] : [`${String(invariant)} ${String(violations)}: ${examples.join(', ')}`]));
  return { wrong, underWay: answer?.underWay, tookMs: clock.monotonicMs() - fromMs };
}

test('nothing is under way if all writers are at rest', async () => {
  expect(await prove()).toEqual({ wrong: [], underWay: [], tookMs: 0 });
});

test('records that were in the logs when the check began are waited for; later ones are under way', async () => {
  at = (ms) => [writer({ lastSeq: 20n + BigInt(ms), ledgerSeq: 10n + BigInt(ms) / 50n })];
  writers = at(0);
  expect(await prove()).toEqual({ wrong: [], underWay: [{ writer: 'w', records: String(620 - 22), openSinceMs: '0' }], tookMs: 600 });
});

test.each<[string, Partial<WriterReport>]>([
  ['is behind', { ledgerSeq: 8n }],
  ['is booked beyond a gap', { ledgerSeq: 8n, gaps: 1n, openSinceMs: 5 }],
  ['is booked beyond a gap and reported no record after it', { gaps: 1n }],
  ['has an open attempt and is silent', { ledgerSeq: 8n, openSinceMs: 5, reportedAtMs: 0 }],
])('a writer that %s is a violation after the wait', async (_what, changes) => {
  writers = [writer(changes), writer({ writer: 'right' })];
  expect(await prove()).toEqual({ wrong: ['I6 1: w'], underWay: [], tookMs: 15_000 });
});

test('a gap that is filled is no violation, even if another one appeared meanwhile', async () => {
  at = (ms) => [writer({ lastSeq: 30n, ledgerSeq: ms < 400 ? 5n : 12n, gaps: 1n })];
  writers = [writer({ lastSeq: 12n, ledgerSeq: 5n, gaps: 1n })];
  at = (ms) => (ms === 0 ? writers : [writer({ lastSeq: 30n, ledgerSeq: ms < 400 ? 5n : 12n, gaps: 1n })]);
  expect(await prove()).toEqual({ wrong: [], underWay: [{ writer: 'w', records: '18', openSinceMs: '0' }], tookMs: 400 });
});

test('the start record of a running attempt is under way without a wait, since it is not booked', async () => {
  writers = [writer({ ledgerSeq: 8n, owedSeq: 8n, openSinceMs: 1_700_000_000_000 })];
  expect(await prove()).toEqual({ wrong: [], underWay: [{ writer: 'w', records: '1', openSinceMs: '1700000000000' }], tookMs: 0 });
});

test('a first attempt that runs is under way, even if nothing has been booked yet', async () => {
  writers = [writer({ lastSeq: 1n, ledgerSeq: 0n, owedSeq: 0n, openSinceMs: 5 })];
  expect(await prove()).toEqual({ wrong: [], underWay: [{ writer: 'w', records: '1', openSinceMs: '5' }], tookMs: 0 });
});

test('an unbooked record is a violation, even while attempts run', async () => {
  at = (ms) => [writer({ lastSeq: 10n + BigInt(ms), ledgerSeq: 8n, owedSeq: 9n + BigInt(ms), openSinceMs: 5 })];
  expect(await prove()).toMatchObject({ wrong: ['I6 1: w'], tookMs: 15_000 });
});

test('a record that is booked in time is no violation, even while others are added', async () => {
  at = (ms) => [writer({ lastSeq: 20n + BigInt(ms), ledgerSeq: ms < 400 ? 8n : 12n, owedSeq: 12n + BigInt(ms), openSinceMs: 5 })];
  expect(await prove()).toMatchObject({ wrong: [], underWay: [{ writer: 'w', records: '408' }], tookMs: 400 });
});

test('a start record without a running attempt, or of a silent worker, is a violation', async () => {
  writers = [writer({ writer: 'ended', ledgerSeq: 8n, owedSeq: 8n }), writer({ writer: 'silent', ledgerSeq: 8n, owedSeq: 8n, openSinceMs: 5, reportedAtMs: 0 })];
  expect(await prove()).toEqual({ wrong: ['I6 2: ended, silent'], underWay: [], tookMs: 15_000 });
});

test('a writer that comes back meanwhile and reports what is to be booked is believed', async () => {
  at = (ms) => [writer({ ledgerSeq: 8n, openSinceMs: 5, ...(ms < 1_000 ? {} : { owedSeq: 8n }) })];
  expect(await prove()).toMatchObject({ wrong: [], tookMs: 1_000 });
});

test('for a worker of an older version, missing records may be start records', async () => {
  writers = [writer({ ledgerSeq: 8n, openSinceMs: 1_700_000_000_000 })];
  expect(await prove()).toEqual({ wrong: [], underWay: [{ writer: 'w', records: '1', openSinceMs: '1700000000000' }], tookMs: 15_000 });
});

test('more of a log in the ledger than its writer reported is a violation even for a lost writer, for which nothing else is checked', async () => {
  writers = [writer({ writer: 'ahead', ledgerSeq: 10n }), writer({ writer: 'ahead-and-lost', ledgerSeq: 10n, isDeclaredLost: true }), writer({ writer: 'lost', ledgerSeq: 3n, gaps: 1n, isDeclaredLost: true })];
  expect(await prove()).toEqual({ wrong: ['I6 2: ahead, ahead-and-lost'], underWay: [], tookMs: 0 });
});

test('verifying one account does not ask for writers', async () => {
  writers = [writer({ ledgerSeq: 8n })];
  expect(await prove('acct_1')).toEqual({ wrong: [], underWay: [], tookMs: 0 });
});
