/** Distinguishes a silent store from a process that was too busy to read the store's answers. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';

export interface SilenceOptions {
  readonly clock: Clock;
  /**
   * Longest wait for any reply, counting only time in which this process could have read it. It is counted in slices of a fifth; a slice that
   * ends late counts at most `JITTER_MS` more than its length, since whatever stalled this process may have stalled the store too. By the clock, a
   * wait ends after `WALL_FACTOR` times this long, plus a turn of the event loop, whatever was counted.
   */
  readonly patienceMs: number;
  /** Pings the store; the reply counts like any other. */
  readonly probe: () => Promise<unknown>;
  /** For tests: replaces setImmediate, which calls back after the current turn of the event loop. */
  readonly afterTurn?: (callback: () => void) => void;
}

export interface Silence {
  /** True from the first wait that timed out without any reply, until the store replies. Meanwhile callers should fail at once. */
  isSilent(): boolean;
  /**
   * Settles as `answer` does, or rejects with a Fault `quota_unavailable` if it is late. Call it as the command is written: the wait begins here
   * and restarts with each reply of the store. `workMs` (0 by default) is added to `patienceMs`: how long the store may need for this command before it replies.
   */
  within<Answer>(answer: Promise<Answer>, workMs?: number): Promise<Answer>;
  /** The store sent a reply, though perhaps not the last that a caller waits for. */
  heard(): void;
  /** The connection is new, or lost: forget that the store was silent. */
  reset(): void;
}

/** Interval between probes of a silent store. */
const PROBE_MS = 500;
/** Turns of the event loop after the wait, in which replies waiting in the socket are read. */
const TURNS = 2;
/** Slices per wait. */
const SLICES = 5;
/** How late a timer may fire in a process that is not stalled. */
const JITTER_MS = 2;
/** Longest wait by the clock, as a multiple of the patience. Edge waits 150 ms for an admission, and still gets the Fault. */
const WALL_FACTOR = 2;

interface Wait {
  readonly patienceMs: number;
  /** When the wait is over, as a value of `listened`: `patienceMs` after its beginning or the latest reply. */
  end: number;
  wallEndMs: number;
  /** Value of `answers` when the wait began. */
  readonly answersBefore: number;
  isSettled: boolean;
  readonly reject: (error: Error) => void;
}

export function createSilence({ clock, patienceMs, probe, afterTurn = setImmediate }: SilenceOptions): Silence {
  /** Replies so far: one that came after a command was sent shows that the store is alive. */
  let answers = 0;
  let isSilent = false;
  let probing: Timer | undefined;
  /** Few: a round trip or two, and commands sent besides. */
  let waits: Wait[] = [];
  /** Timer of the current slice, which ends no later than the first unsettled wait. */
  let timer: Timer | undefined;
  /** True from the end of a slice in which a wait became late until `giveUp` has run. */
  let isJudging = false;
  const sliceMs = patienceMs / SLICES;
  /** Milliseconds in which replies could have been read, up to the current slice. Stands still while nobody waits. */
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
  /** Rejects the waits that are still late, now that the socket has been read once more. */
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
            // Late replies count too: the store is alive.
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

/** True for an error that Redis replied, such as OOM or READONLY; false for a lost connection. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
