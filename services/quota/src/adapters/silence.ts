/** Tells a store that is silent from a process that was too busy to read what the store said. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';

export interface SilenceOptions {
  readonly clock: Clock;
  /**
   * Longest wait for a word, counted while this process could have read it: in slices of a fifth, of which one that ends late counts
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
  /**
   * Settles as `answer` does, or rejects with a Fault `quota_unavailable` when it is late. To be called as the command is written: the wait begins here,
   * and anew with each word of the store. `workMs` (0 by default) is added to the patience: for how long the store may have to work on what was asked before it says anything.
   */
  within<Answer>(answer: Promise<Answer>, workMs?: number): Promise<Answer>;
  /** The store said something, though not yet all that somebody waits for. */
  heard(): void;
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
  readonly patienceMs: number;
  /** In time listened: so long after its beginning, or the last word since. */
  end: number;
  wallEndMs: number;
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
  /** A round trip or two, and what is asked beside them. */
  let waits: Wait[] = [];
  /** Of the present slice, which ends no later than the first wait that is not settled. */
  let timer: Timer | undefined;
  /** Between the end of a slice in which somebody waited long enough and what becomes of that. */
  let isJudging = false;
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
  const listenedAt = (nowMs: number): number => (timer === undefined ? listened : listened + Math.min(nowMs - sliceStartMs, presentMs + JITTER_MS));
  const begin = (wait: Wait, nowMs: number): void => {
    wait.end = listenedAt(nowMs) + wait.patienceMs;
    wait.wallEndMs = nowMs + WALL_FACTOR * wait.patienceMs;
  };
  const heard = (): void => {
    answers += 1;
    if (isSilent) reset();
    if (waits.length === 0) return;
    const nowMs = clock.monotonicMs();
    for (const wait of waits) begin(wait, nowMs);
  };
  const ask = (): void => {
    probe().then(heard, () => undefined);
    probing = clock.setTimer(PROBE_MS, ask, { unref: true });
  };
  const afterTurns = (turns: number, then: () => void): void => {
    if (turns === 0) then();
    else afterTurn(() => afterTurns(turns - 1, then));
  };

  const isLate = ({ end, wallEndMs }: Wait, nowMs: number): boolean => end <= listened || wallEndMs <= nowMs;
  /** What lay in the socket has been read since they were late. */
  const giveUp = (): void => {
    const nowMs = clock.monotonicMs();
    for (const wait of waits.filter(({ isSettled }) => !isSettled)) {
      if (!isLate(wait, nowMs)) continue;
      wait.isSettled = true;
      if (answers === wait.answersBefore && !isSilent) {
        isSilent = true;
        ask();
      }
      wait.reject(new Fault('quota_unavailable', 'redis did not answer in time'));
    }
    waits = waits.filter(({ isSettled }) => !isSettled);
    isJudging = false;
    if (waits.length > 0) arm(nowMs);
  };
  const arm = (nowMs: number): void => {
    sliceStartMs = nowMs;
    presentMs = Math.min(sliceMs, ...waits.map(({ end, wallEndMs }) => Math.max(0, Math.min(end - listened, wallEndMs - nowMs))));
    timer = clock.setTimer(presentMs, expire, { unref: true });
  };
  const expire = (): void => {
    const nowMs = clock.monotonicMs();
    listened = listenedAt(nowMs);
    timer = undefined;
    waits = waits.filter(({ isSettled }) => !isSettled);
    isJudging = waits.some((wait) => isLate(wait, nowMs));
    if (isJudging) afterTurns(TURNS, giveUp);
    else if (waits.length > 0) arm(nowMs);
  };

  return {
    isSilent: () => isSilent,
    reset,
    heard,
    within: (answer, workMs = 0) =>
      new Promise((resolve, reject) => {
        const nowMs = clock.monotonicMs();
        const wait: Wait = { patienceMs: patienceMs + workMs, end: 0, wallEndMs: 0, answersBefore: answers, isSettled: false, reject };
        begin(wait, nowMs);
        waits.push(wait);
        if (timer === undefined && !isJudging) arm(nowMs);
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
