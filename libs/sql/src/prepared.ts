/** Transactions of statements that the server keeps prepared: for paths that run the same few statements for ever. */
import { assert } from '@signalbox/kernel/assert';
import type pg from 'pg';
import { sqlStateOf, toStoreFault } from './faults.js';

/** A statement's text never changes under its name: a connection prepares it once, at its first use. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
}

/**
 * Runs one statement of the transaction. A Buffer among the values is sent in the type's binary form, anything else as
 * text. Over a pipelined database several may run at once: they are executed in the order of the calls.
 */
export type RunPrepared = <Row>(statement: Prepared, values: readonly unknown[]) => Promise<readonly Row[]>;

/**
 * Nothing more is run: over a pipelined database the commit goes with the statements that are on their way, in one round trip. One of them that
 * fails keeps nothing of the transaction, as ever; what `work` throws by itself afterwards does not undo it.
 */
export type Conclude = () => void;

/** SQLSTATE of a statement of a transaction that had failed by then. */
const FAILED_BEFORE = '25P02';

/** Commits what `work` did, or keeps nothing of it and rejects: with a Fault `store_unavailable`, the driver's error, or what `work` threw. */
export async function transactPrepared<Result>(pool: pg.Pool, pipelined: boolean, work: (run: RunPrepared, conclude: Conclude) => Promise<Result>): Promise<Result> {
  let isBroken = false;
  let latest: unknown;
  const failed = (error: unknown): unknown => {
    // Answers that come together may be heard in any order by who waits for all: each of them says what went wrong.
    if (sqlStateOf(error) === FAILED_BEFORE && latest !== undefined) return latest;
    const fault = toStoreFault(error);
    if (fault !== undefined) isBroken = true;
    return (latest = fault ?? error);
  };
  let client: pg.PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw failed(error);
  }
  // A checked-out connection that breaks emits too; the query in work rejects as well.
  const ignore = (): void => undefined;
  client.on('error', ignore);
  let isGathering = false;
  const query = async (config: string | pg.QueryConfig): Promise<readonly unknown[]> => {
    if (pipelined && !isGathering) {
      // One write for the statements of one turn.
      const { stream } = client.connection;
      isGathering = true;
      stream.cork();
      process.nextTick(() => {
        isGathering = false;
        stream.uncork();
      });
    }
    try {
      return (await client.query<Record<string, unknown>>(config)).rows;
    } catch (error) {
      throw failed(error);
    }
  };
  let isConcluded = false;
  let committed: Promise<unknown> | undefined;
  const conclude = (): void => {
    isConcluded = true;
    if (!pipelined) return;
    committed = query('commit');
    committed.catch(ignore);
  };
  try {
    const begun = query('begin');
    // Pipelined: the first statements share its round trip; when it fails they fail too.
    if (pipelined) begun.catch(ignore);
    else await begun;
    const run = async <Row>({ name, text }: Prepared, values: readonly unknown[]): Promise<readonly Row[]> => {
      assert(!isConcluded, 'The transaction is concluded.');
      return (await query({ name, text, values: [...values] })) as readonly Row[];
    };
    const result = await work(run, conclude);
    await (committed ?? query('commit'));
    return result;
  } catch (error) {
    // A commit behind a statement that failed has ended the transaction by now.
    if (!isBroken) await (committed ?? query('rollback')).catch(ignore);
    throw error;
  } finally {
    client.off('error', ignore);
    // After a timeout the connection may still be busy with the old statement: never reuse it.
    client.release(isBroken);
  }
}
