/** Queue of programs: runs a few at once, fairly between accounts. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { ProgramProcess, ProgramProcesses } from './ports.js';
import { CODE_BYTES_MAX, LANGUAGE, MEMORY_BYTES, OUTPUT_BYTES, refused, TIMEOUT_MS_MAX, type ProgramEnd } from './program.js';

/** Most waiting programs; more could not be answered in time. */
const WAITING_MAX = 64;
/** Most programs of one account, running and waiting together. */
const ACCOUNT_MAX = 8;
/** A spare process, started ahead, saves the next program the start-up time; it is ended after this long without a program. */
const SPARE_MS = 60_000;

const OVERLOADED: ProgramEnd = { status: 'OVERLOADED', output: '', result: '', error: 'The program was not run: too many programs wait. Try again later.' };

export interface Submission {
  readonly accountId: string;
  readonly language: string;
  readonly code: string;
  /** 0 = the maximum. */
  readonly timeoutMs: number;
  /** Calls the listener once if the answer is no longer wanted. */
  readonly onAbort: (listener: () => void) => void;
}

export interface ProgramQueue {
  /** Never rejects. */
  submit(submission: Submission): Promise<ProgramEnd>;
  running(): number;
  waiting(): number;
  /** Ends every process. */
  stop(): void;
}

interface Waiting {
  readonly submission: Submission;
  readonly resolve: (end: ProgramEnd) => void;
}

export interface QueueOptions {
  readonly processes: ProgramProcesses;
  readonly clock: Clock;
  /** Most programs that run at once. */
  readonly concurrency: number;
}

export function createProgramQueue({ processes, clock, concurrency }: QueueOptions): ProgramQueue {
  const waiting: Waiting[] = [];
  const live = new Set<ProgramProcess>();
  /** Number of running and waiting programs by account; below, of running ones only. */
  const byAccount = new Map<string, number>();
  const runningOf = new Map<string, number>();
  /** For accounts with programs: a sequence number of their latest start. */
  const lastOf = new Map<string, number>();
  let begun = 0;
  let spare: ProgramProcess | undefined;
  let spareTimer: Timer | undefined;
  let isStopped = false;

  const count = (counts: Map<string, number>, accountId: string, change: 1 | -1): void => {
    const now = (counts.get(accountId) ?? 0) + change;
    if (now > 0) counts.set(accountId, now);
    else {
      counts.delete(accountId);
      if (counts === byAccount) lastOf.delete(accountId);
    }
  };

  const keepSpare = (): void => {
    if (isStopped) return;
    spare ??= processes.start();
    spareTimer?.cancel();
    spareTimer = clock.setTimer(SPARE_MS, () => {
      spare?.kill();
      spare = undefined;
    }, { unref: true });
  };

  const begin = async ({ submission, resolve }: Waiting): Promise<void> => {
    const process = spare === undefined || spare.isOver ? processes.start() : spare;
    spare = undefined;
    live.add(process);
    count(runningOf, submission.accountId, 1);
    begun += 1;
    lastOf.set(submission.accountId, begun);
    submission.onAbort(() => process.kill());
    const timeoutMs = submission.timeoutMs === 0 ? TIMEOUT_MS_MAX : Math.min(submission.timeoutMs, TIMEOUT_MS_MAX);
    const end = await process.run(submission.code, { timeoutMs, memoryBytes: MEMORY_BYTES, outputBytes: OUTPUT_BYTES });
    live.delete(process);
    count(runningOf, submission.accountId, -1);
    count(byAccount, submission.accountId, -1);
    resolve(end);
    next();
    keepSpare();
  };

  /** Dequeues the first program of the account with the fewest running; among equals, of the account whose latest start is longest ago. */
  const taken = (): Waiting | undefined => {
    const [head] = waiting;
    if (head === undefined) return undefined;
    let best = head;
    const of = (counts: Map<string, number>, { submission }: Waiting): number => counts.get(submission.accountId) ?? 0;
    for (const entry of waiting) {
      const fewer = of(runningOf, entry) - of(runningOf, best);
      if (fewer < 0 || (fewer === 0 && of(lastOf, entry) < of(lastOf, best))) best = entry;
    }
    waiting.splice(waiting.indexOf(best), 1);
    return best;
  };

  const next = (): void => {
    while (!isStopped && live.size < concurrency) {
      const first = taken();
      if (first === undefined) return;
      void begin(first);
    }
  };

  return {
    submit: (submission) => {
      const { accountId, language, code } = submission;
      if (language !== LANGUAGE) return Promise.resolve(refused(`Programs in '${language.slice(0, 32)}' cannot be run: only ${LANGUAGE}.`));
      if (Buffer.byteLength(code) > CODE_BYTES_MAX) return Promise.resolve(refused(`The program is longer than ${CODE_BYTES_MAX} bytes.`));
      if (isStopped || waiting.length >= WAITING_MAX || (byAccount.get(accountId) ?? 0) >= ACCOUNT_MAX) return Promise.resolve(OVERLOADED);
      count(byAccount, accountId, 1);
      return new Promise((resolve) => {
        const entry: Waiting = { submission, resolve };
        waiting.push(entry);
        submission.onAbort(() => {
          const at = waiting.indexOf(entry);
          if (at === -1) return;
          waiting.splice(at, 1);
          count(byAccount, accountId, -1);
          resolve(OVERLOADED);
        });
        next();
      });
    },
    running: () => live.size,
    waiting: () => waiting.length,
    stop: () => {
      isStopped = true;
      spareTimer?.cancel();
      spare?.kill();
      for (const process of live) process.kill();
      for (const { resolve } of waiting.splice(0)) resolve(OVERLOADED);
    },
  };
}
