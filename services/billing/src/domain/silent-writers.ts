/** Writers that nobody hears of and whose log has more than the ledger: their records wait on a disk that may be lost. */
import type { WriterMarkRow } from './ports.js';

/** 2 min: whoever lives reports every 15 s, and a pod that is replaced is back by then. */
const SILENT_MS = 120_000;

/** How many. `heardMs`: up to when silence counts (`Hearing`). One that was declared lost is known to be. */
export function silentWriters(writers: readonly WriterMarkRow[], heardMs: number): number {
  return writers.filter(({ lastSeq, ledgerSeq, seenAtMs, isDeclaredLost }) => lastSeq > ledgerSeq && !isDeclaredLost && heardMs - seenAtMs > SILENT_MS).length;
}
