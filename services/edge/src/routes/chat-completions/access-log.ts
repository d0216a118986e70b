/** One log line for a share of the requests: their result, without any text of the client or the model. */
import type { Log } from '@signalbox/runtime/log';
import type { Conducted } from '../../domain/conduct.js';

export interface AccessLine {
  readonly requestId: string;
  /** 499: the client left before any status. */
  readonly status: number;
  readonly durationMs: number;
  /** The account of the key; undefined = not known. */
  readonly accountId: string | undefined;
  /** Undefined for a request that was refused before routing. */
  readonly conducted: Conducted | undefined;
}

export type AccessLog = (line: AccessLine) => void;

const PER_MILLE = 1_000;

/** Logs `perMille` of a thousand requests, evenly spread; undefined for 0. */
export function createAccessLog(log: Log, perMille: number): AccessLog | undefined {
  if (perMille === 0) return undefined;
  let due = 0;
  return ({ requestId, status, durationMs, accountId, conducted }) => {
    due += perMille;
    if (due < PER_MILLE) return;
    due -= PER_MILLE;
    // The catalog's names of model and provider, not what the client wrote.
    const answered = conducted?.attempts.findLast(({ failed }) => failed === undefined);
    log.info('A chat completion.', { request_id: requestId, account_id: accountId, status, duration_ms: Math.round(durationMs), result: conducted?.result, attempts: conducted?.attempts.length, model: answered?.model, provider: answered?.provider });
  };
}
