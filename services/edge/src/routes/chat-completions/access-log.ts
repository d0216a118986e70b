/** One line for a share of the requests: what became of them, without a word of the client's or the model's. */
import type { Log } from '@signalbox/runtime/log';
import type { Conducted } from '../../domain/conduct.js';

export interface AccessLine {
  readonly requestId: string;
  /** 499: the client left before any status. */
  readonly status: number;
  readonly durationMs: number;
  /** Whose key it was; undefined = none that is known. */
  readonly accountId: string | undefined;
  /** Undefined for what was refused before any provider could be asked. */
  readonly conducted: Conducted | undefined;
}

export type AccessLog = (line: AccessLine) => void;

const PER_MILLE = 1_000;

/** Of `perMille` in a thousand requests a line each, evenly; undefined where none leaves one. */
export function createAccessLog(log: Log, perMille: number): AccessLog | undefined {
  if (perMille === 0) return undefined;
  let due = 0;
  return ({ requestId, status, durationMs, accountId, conducted }) => {
    due += perMille;
    if (due < PER_MILLE) return;
    due -= PER_MILLE;
    // Models and providers are the catalog's names: what a client wrote is not told.
    const answered = conducted?.attempts.findLast(({ failed }) => failed === undefined);
    log.info('A chat completion.', { request_id: requestId, account_id: accountId, status, duration_ms: Math.round(durationMs), result: conducted?.result, attempts: conducted?.attempts.length, model: answered?.model, provider: answered?.provider });
  };
}
