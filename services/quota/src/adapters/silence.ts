/** Tells a store that is silent from a process that was too busy to read what the store said. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';

export interface SilenceOptions {
  readonly clock: Clock;
  /**
   * Longest wait for an answer, counted while this process could have read it: in slices of a fifth, of which one that ends late counts
   * at most `JITTER_MS` more than its length, since whoever kept this process from running may have kept the store. By the clock a wait ends after
   * `WALL_FACTOR` times as long, whatever was counted, and the time of a turn of the event loop.
   */
  readonly patienceMs: number;
  /** Asks for a sign of life; its answer counts as any other. */
  readonly probe: () => Promise<unknown>;
  /** For tests: instead of setImmediate, calls back when the present turn of the event loop is over. */
  readonly afterTurn?: (callback: () => void) => void;
}

export interface Silence {
  /** True from the first wait in vain until the store says anything: whoever asks meanwhile need not wait. */
  isSilent(): boolean;
  /** Settles as `answer` does, or rejects with a Fault `quota_unavailable` when it is late. To be called as the command is written: the wait begins here. */
  within<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** The connection is new, or gone: what was said before means nothing. */
  reset(): void;
}

/** Between two questions for a sign of life. */
const PROBE_MS = 500;
/** Turns of the event loop, after the wait, in which answers that lie in the socket are read. */
const TURNS = 2;
/** Slices of a wait. */
const SLICES = 5;
/** As late as a timer is in a process that runs when it has something to do. */
const JITTER_MS = 2;
/** Bound of a wait by the clock, in times of its patience: edge, which waits 150 ms for an admission, still hears of it. */
const WALL_FACTOR = 2;

interface Wait {
  /** In time listened. */
  readonly end: number;
  readonly wallEndMs: number;
  /** Answers of the store before it began. */
  readonly answersBefore: number;
  isSettled: boolean;
  readonly reject: (error: Error) => void;
}

export function createSilence({ clock, patienceMs, probe, afterTurn = setImmediate }: SilenceOptions): Silence {
  /** Answers so far: one that came after a command was sent shows that the store lives. */
  let answers = 0;
  let isSilent = false;
  let probing: Timer | undefined;
  /** In the order of their ends, since all are equally long; what is settled goes with those before it. */
  const waits: Wait[] = [];
  /** Of the present slice, which ends no later than the first wait that is not settled. */
  let timer: Timer | undefined;
  const sliceMs = patienceMs / SLICES;
  /** Time in which answers could have been read, up to the present slice: it stands still while nobody waits. */
  let listened = 0;
  let sliceStartMs = 0;
  let presentMs = 0;

  const reset = (): void => {
    isSilent = false;
    probing?.cancel();
    probing = undefined;
  };
  const heard = (): void => {
    answers += 1;
    if (isSilent) reset();
  };
  const ask = (): void => {
    probe().then(heard, () => undefined);
    probing = clock.setTimer(PROBE_MS, ask, { unref: true });
  };
  const afterTurns = (turns: number, then: () => void): void => {
    if (turns === 0) then();
    else afterTurn(() => afterTurns(turns - 1, then));
  };

  const giveUp = (late: readonly Wait[]): void => {
    for (const wait of late) {
      if (wait.isSettled) continue;
      if (answers === wait.answersBefore && !isSilent) {
        isSilent = true;
        ask();
      }
      wait.reject(new Fault('quota_unavailable', 'redis did not answer in time'));
    }
  };
  const listenedAt = (nowMs: number): number => (timer === undefined ? listened : listened + Math.min(nowMs - sliceStartMs, presentMs + JITTER_MS));
  const arm = (nowMs: number, delayMs: number): void => {
    sliceStartMs = nowMs;
    presentMs = delayMs;
    timer = clock.setTimer(delayMs, expire, { unref: true });
  };
  const expire = (): void => {
    const nowMs = clock.monotonicMs();
    listened = listenedAt(nowMs);
    const alive = waits.findIndex(({ end, wallEndMs, isSettled }) => !isSettled && end > listened && wallEndMs > nowMs);
    const past = waits.splice(0, alive < 0 ? waits.length : alive);
    timer = undefined;
    const [next] = waits;
    if (next !== undefined) arm(nowMs, Math.min(sliceMs, next.end - listened, next.wallEndMs - nowMs));
    const late = past.filter(({ isSettled }) => !isSettled);
    if (late.length > 0) afterTurns(TURNS, () => giveUp(late));
  };

  return {
    isSilent: () => isSilent,
    reset,
    within: (answer) =>
      new Promise((resolve, reject) => {
        const nowMs = clock.monotonicMs();
        const wait: Wait = { end: listenedAt(nowMs) + patienceMs, wallEndMs: nowMs + WALL_FACTOR * patienceMs, answersBefore: answers, isSettled: false, reject };
        waits.push(wait);
        if (timer === undefined) arm(nowMs, sliceMs);
        answer.then(
          (value) => {
            // Late ones count too: the store lives.
            heard();
            wait.isSettled = true;
            resolve(value);
          },
          (error: unknown) => {
            if (isReply(error)) heard();
            wait.isSettled = true;
            reject(error instanceof Error ? error : new Error('unknown'));
          },
        );
      }),
  };
}

/** The store's own words, such as OOM or READONLY, and not the end of a connection. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
