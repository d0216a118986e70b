/** Writers that are silent and whose log has more than the ledger: their records wait on a disk that may be lost. */
import type { WriterMarkRow } from './ports.js';

/** 2 min: a live writer reports every 15 s, and a pod that was replaced is back by then. */
const SILENT_MS = 120_000;

/** Number of silent writers, without those that were declared lost. `heardMs`: up to when silence counts (`Hearing`). */
export function silentWriters(writers: readonly WriterMarkRow[], heardMs: number): number {
  return writers.filter(({ lastSeq, ledgerSeq, seenAtMs, isDeclaredLost }) => lastSeq > ledgerSeq && !isDeclaredLost && heardMs - seenAtMs > SILENT_MS).length;
}
