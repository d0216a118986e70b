import { expect, test } from '@jest/globals';
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { END, frame, journalRig, outcomesIn, start } from './testing/journal-rig.js';
import { FRAME } from './wal-frame.js';
import { listSegments } from './wal-segment.js';
import type { OpenJournal } from './wal.js';

test('a settled attempt reaches the ledger in one contiguous range, and quota is told its charge', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  void journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  expect(w.usage).toMatchObject([{ firstSeq: '1', lastSeq: '3', ended: [{ requestId: 'r1', costNanoUsd: '7' }], outcomes: [{ outcome: 'DELIVERED', toldByEdge: true }] }]);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '7', tokens: '7' }]);
  expect(journal.state()).toMatchObject({ lastSeq: 3, ledgerSeq: 3 });
  await journal.close();
});

test('an attempt whose process died is booked at its last checkpoint, and at 0 if nothing was delivered, despite a torn tail', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.start(start('r2'));
  journal.checkpoint('r1', 1, { ...NO_TOKENS, outputText: 5 });
  await journal.flush();
  await journal.close();
  appendFileSync(listSegments(w.directory).at(-1)?.path ?? '', frame(FRAME.end, 3, Buffer.alloc(100)).subarray(0, 60));
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(successor.state().writer).toBe(journal.state().writer);
  const ended = w.usage.flatMap((event) => event.ended);
  expect(ended).toMatchObject([{ requestId: 'r1', source: 'ORPHAN', costNanoUsd: '12' }, { requestId: 'r2', source: 'ORPHAN', costNanoUsd: '0' }]);
  expect(outcomesIn(w.usage)).toEqual([]);
  await w.recover(successor);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r2 DISCARDED false']);
  await successor.close();
});

test('an end with other price cards than its start is booked, and read back, with its own', async () => {
  const w = await journalRig();
  const journal = await w.open();
  const begun = start('r1');
  const cards = { card: { ...begun.card, id: 'card_2', outputText: '5000000' }, referenceCard: { ...begun.card, id: 'list_2' } };
  await journal.start(begun);
  await journal.start(start('r2'));
  await journal.end('r1', 1, { ...END, cards });
  await journal.end('r2', 1, END);
  await journal.flush();
  await journal.close();
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(w.usage.flatMap((event) => event.ended)).toMatchObject([{ requestId: 'r1', ...cards }, { requestId: 'r2', card: begun.card }]);
  await successor.close();
});

test('resends from the watermark after the bus was away, and refuses a second holder of the directory', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await expect(w.open()).rejects.toThrow(/in use/);
  w.bus.setConnected(false);
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  await w.clock.advanceAsync(2_000);
  expect(w.usage).toEqual([]);
  w.bus.setConnected(true);
  await w.clock.advanceAsync(8_000);
  expect(w.usage.flatMap((event) => event.ended)).toHaveLength(1);
  await journal.close();
});

test('one damaged record does not affect others: the records before and after it are read', async () => {
  const w = await journalRig();
  const journal = await w.open();
  w.bus.setConnected(false);
  for (const id of ['r1', 'r2', 'r3']) {
    await journal.start(start(id));
    await journal.end(id, 1, END);
  }
  await journal.close();
  const path = listSegments(w.directory).at(-1)?.path ?? '';
  const bytes = readFileSync(path);
  // The second occurrence of r2 is in its end.
  const at = bytes.indexOf('r2', bytes.indexOf('r2') + 1);
  bytes[at] = 0;
  writeFileSync(path, bytes);
  w.bus.setConnected(true);
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(w.usage.flatMap((event) => event.ended).map(({ requestId, source }) => `${requestId} ${source}`).sort()).toEqual(['r1 PROVIDER', 'r2 ORPHAN', 'r3 PROVIDER']);
  await successor.close();
});

test.each([false, true])('records written after a power failure lost the end of the log are booked, although the ledger has yet to book what was lost (read and closed before: %s)', async (isReadBefore) => {
  const w = await journalRig();
  const journal = await w.open();
  const serve = async (by: OpenJournal, id: string): Promise<void> => {
    await by.start(start(id));
    await by.end(id, 1, END);
    void by.outcome(id, 1, 'DELIVERED', true);
    await w.clock.advanceAsync(200);
  };
  w.connection.isBooking = false;
  await serve(journal, 'r1');
  const durable = listSegments(w.directory).map(({ path }) => readFileSync(path).length);
  await serve(journal, 'r2');
  const machine = w.newDirectory();
  cpSync(w.directory, machine, { recursive: true });
  // The dead process left its lock.
  writeFileSync(join(machine, 'lock'), '999999999 1');
  for (const [index, { path }] of listSegments(machine).entries()) writeFileSync(path, readFileSync(path).subarray(0, durable[index]));
  await journal.close();
  // As an all-in-one process does at its start: it books what is left in the log and closes it in order.
  if (isReadBefore) await (await w.open(machine)).close();
  const successor = await w.open(machine);
  await serve(successor, 'r3');
  // Skipped numbers do not count as waiting records.
  expect(successor.recordsAfter(successor.state().ledgerSeq)).toBe(6);
  w.connection.isBooking = true;
  await w.clock.advanceAsync(40_000);
  expect(w.usage.flatMap((event) => event.outcomes).map(({ requestId }) => requestId)).toContain('r3');
  expect(w.usage.flatMap((event) => event.ended).map(({ requestId }) => requestId)).toContain('r3');
  const { lastSeq, ledgerSeq } = successor.state();
  expect(ledgerSeq).toBe(lastSeq);
  expect(successor.recordsWritten()).toBe(3);
  await successor.close();
});

test('a ledger that went back gets its records again, although the bus deduplicates messages', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  void journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  w.restoreLedger();
  await w.clock.advanceAsync(20_000);
  expect(w.usage.flatMap((event) => event.ended).map(({ requestId }) => requestId)).toEqual(['r1', 'r1']);
  expect(journal.state().ledgerSeq).toBe(3);
  await journal.close();
});
