import { expect, test } from '@jest/globals';
import { closeBlockers, WRITER_LOST_MS, type CloseInput, type WriterReport } from './close.js';

const writer = (over: Partial<WriterReport> = {}): WriterReport => ({ writer: 'w', lastSeq: 9n, ledgerSeq: 9n, gaps: 0n, reportedAtMs: 1_040_000, openSinceMs: 0, isDeclaredLost: false, ...over });
const input = (over: Partial<CloseInput> = {}): CloseInput => ({ boundaryMs: 1_000_000, nowMs: 1_045_000, graceMs: 30_000, writers: [writer()], deadEvents: 0, ...over });
const reasons = (over: Partial<CloseInput>) => closeBlockers(input(over)).map(({ reason }) => reason);

test.each<readonly [string, Partial<CloseInput>, readonly string[]]>([
  ['all is in', {}, []],
  ['there is no writer', { writers: [] }, []],
  ['a writer that is behind was declared lost', { writers: [writer({ lastSeq: 12n, gaps: 1n, openSinceMs: 1, isDeclaredLost: true })] }, []],
  ['the period is not over', { nowMs: 999_999, writers: [] }, ['not_over']],
  ['what was held last may still be on its way', { nowMs: 1_029_999, writers: [] }, ['not_over']],
  ['an event was kept aside', { deadEvents: 1 }, ['dead_events']],
  ['a writer told of more than is booked', { writers: [writer({ lastSeq: 10n })] }, ['writer_behind']],
  ['a range is missing', { writers: [writer({ gaps: 1n })] }, ['writer_behind']],
  ['a writer has not reported since the boundary', { writers: [writer({ reportedAtMs: 999_000 })] }, ['writer_silent']],
  ['a writer has not reported since what was held last is out', { writers: [writer({ reportedAtMs: 1_029_999 })] }, ['writer_silent']],
  ['a writer reported the moment that it is', { nowMs: 1_030_000, writers: [writer({ reportedAtMs: 1_030_000 })] }, []],
  ['an attempt of the period runs', { writers: [writer({ openSinceMs: 999_999 })] }, ['reservation_open']],
  ['an attempt of the next period runs', { writers: [writer({ openSinceMs: 1_000_000 })] }, []],
  ['a writer is declared lost', { nowMs: 1_000_000 + WRITER_LOST_MS, writers: [writer({ reportedAtMs: 1_000_000, lastSeq: 10n })] }, []],
  ['a writer is as good as lost', { nowMs: 1_000_000 + WRITER_LOST_MS, writers: [writer({ reportedAtMs: 1_000_001, lastSeq: 10n })] }, ['writer_behind']],
  ['one of two writers is behind', { writers: [writer(), writer({ writer: 'v', lastSeq: 10n })] }, ['writer_behind']],
])('%s', (_what, over, expected) => {
  expect(reasons(over)).toEqual(expected);
});
