import { cpSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { END, journalRig, outcomesIn, start } from './testing/journal-rig.js';
import { listSegments } from './wal-segment.js';

type Rig = Awaited<ReturnType<typeof journalRig>>;
type Journal = Awaited<ReturnType<Rig['open']>>;

/** Closes in order; returns how many milliseconds that took, up to 10 s. */
async function closed(w: Rig, journal: Journal, endWaitMs: number | undefined): Promise<number> {
  const fromMs = w.clock.monotonicMs();
  let doneMs = Infinity;
  const closing = journal.close(endWaitMs).then(() => (doneMs = w.clock.monotonicMs() - fromMs));
  for (let steps = 0; doneMs === Infinity && steps < 1_000; steps += 1) await w.clock.advanceAsync(10);
  await closing;
  return doneMs;
}

async function opened(w: Rig): Promise<Journal> {
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  return journal;
}

/** One request, with its outcome unless `isOpen`. */
async function served(journal: Journal, isOpen = false): Promise<void> {
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  if (!isOpen) await journal.outcome('r1', 1, 'DELIVERED', true);
}

test('billing is told that a writer has ended once the ledger has its log, with the id of its latest report', async () => {
  const w = await journalRig();
  const journal = await opened(w);
  await served(journal);
  // The ledger is a second behind: the end is told only after it has everything.
  w.connection.isBooking = false;
  w.clock.setTimer(1_000, () => {
    expect(w.ends.told).toEqual([]);
    w.connection.isBooking = true;
  });
  expect(await closed(w, journal, 5_000)).toBeGreaterThan(1_000);
  const { writer } = journal.state();
  expect(w.ends.told).toEqual([{ writer, lastSeq: '3', reportId: `report ${w.ends.reports}` }]);
  await expect(journal.start(start('r2'))).rejects.toThrow(/^store_unavailable/);
});

test('a billing that is away for a moment is asked again', async () => {
  const w = await journalRig();
  const journal = await opened(w);
  w.connection.isBillingUp = false;
  w.clock.setTimer(1_000, () => void (w.connection.isBillingUp = true));
  expect(await closed(w, journal, 5_000)).toBeLessThan(1_500);
  expect(w.ends.told).toMatchObject([{ lastSeq: '0' }]);
});

test('a writer that wrote nothing has ended at once', async () => {
  const w = await journalRig();
  const journal = await opened(w);
  expect(await closed(w, journal, 5_000)).toBeLessThan(100);
  expect(w.ends.told).toMatchObject([{ lastSeq: '0' }]);
});

test.each<[string, number, (w: Rig, journal: Journal) => void | Promise<void>]>([
  ['an attempt is without its outcome', 100, (_w, journal) => served(journal, true)],
  ['billing is away', 5_300, (w) => void (w.connection.isBillingUp = false)],
  ['billing is an older version', 100, (w) => void (w.ends.named = false)],
  ['the ledger stays behind', 5_100, async (w, journal) => {
    w.connection.isBooking = false;
    await served(journal);
  }],
])('the end is not told if %s, and closing takes at most %i ms', async (_what, mostMs, prepare) => {
  const w = await journalRig();
  const journal = await opened(w);
  await prepare(w, journal);
  expect(await closed(w, journal, 5_000)).toBeLessThanOrEqual(mostMs);
  expect(w.ends.told).toEqual([]);
});

test('nothing is told unless the caller asks for it', async () => {
  const w = await journalRig();
  const journal = await opened(w);
  await served(journal);
  await w.clock.advanceAsync(3_000);
  await closed(w, journal, undefined);
  expect(w.ends.told).toEqual([]);
});

test('an end that the ledger does not accept is told again with the id of a later report, until the time is over', async () => {
  const w = await journalRig();
  const journal = await opened(w);
  w.ends.isTaken = false;
  expect(await closed(w, journal, 100)).toBeLessThan(200);
  const names = w.ends.told.map(({ reportId }) => reportId);
  expect(names.length).toBeGreaterThan(1);
  expect(new Set(names).size).toBe(names.length);
});

test.each<[string, boolean, (w: Rig, journal: Journal) => void | Promise<void>]>([
  ['all is in the ledger', false, (_w, journal) => served(journal)],
  ['an attempt is without its outcome', true, (_w, journal) => served(journal, true)],
  ['edge may still tell another outcome than the one that was concluded', true, async (_w, journal) => {
    await served(journal, true);
    await journal.outcome('r1', 1, 'DELIVERED', false);
  }],
  ['the ledger stays behind', true, async (w, journal) => {
    w.connection.isBooking = false;
    await served(journal);
  }],
])('if %s at the close of a log, the next process replays it: %p', async (_what, isReplayed, prepare) => {
  const w = await journalRig();
  const journal = await opened(w);
  await prepare(w, journal);
  await closed(w, journal, 1_000);
  expect(listSegments(w.directory).map(({ isCold }) => !isCold)).toEqual([isReplayed]);
});

test('a log whose ledger was never reached is replayed by the next process', async () => {
  const w = await journalRig();
  w.connection.isBillingUp = false;
  const journal = await opened(w);
  await closed(w, journal, 1_000);
  expect(listSegments(w.directory).map(({ isCold }) => isCold)).toEqual([false]);
});

test('a log that was recovered is not replayed again, and the next process writes on behind it', async () => {
  const w = await journalRig();
  await served(await opened(w), true);
  // The process is killed; the directory is as it left it.
  const directory = w.newDirectory();
  cpSync(w.directory, directory, { recursive: true, filter: (path) => !path.endsWith('/lock') });
  const recovering = await w.open(directory);
  await w.recover(recovering);
  await closed(w, recovering, 0);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false']);
  expect(listSegments(directory).map(({ isCold }) => isCold)).toEqual([true, true]);
  const next = await w.open(directory);
  await w.clock.advanceAsync(100);
  expect(next.state().lastSeq).toBe(recovering.state().lastSeq);
  await next.start(start('r2'));
  await next.end('r2', 1, END);
  await next.outcome('r2', 1, 'DELIVERED', true);
  await closed(w, next, 5_000);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r2 DELIVERED true']);
  expect(next.state()).toMatchObject({ ledgerSeq: next.state().lastSeq });
});
