/** Reads what earlier processes wrote: which attempts they left open, and how far the sequence came. */
import { LiveMap } from '@signalbox/kernel/live-map';
import type { Log } from '@signalbox/runtime/log';
import { attemptKey, LiveAttempt } from './wal-attempt.js';
import { FINISHED_MAX, type FinishedHold } from './settlement.js';
import { endedCodec, finishedHold, outcomeCodec, roundsOf, withPrompt, type AttemptEvent } from './wal-events.js';
import { coldSequences } from './wal-files.js';
import type { WalDisk } from './wal-disk.js';
import { FRAME, type Frame } from './wal-frame.js';
import { Leaps } from './wal-leaps.js';

export interface FinishedBefore {
  readonly seq: number;
  readonly hold: FinishedHold;
  /** Another log may have more of the request. */
  readonly isPart: boolean;
}

export interface Replayed {
  /** Without an end or an outcome, by key. */
  readonly open: LiveMap<string, LiveAttempt>;
  /** Outcomes that the worker concluded by itself: edge's word may still come. */
  readonly concluded: Map<string, LiveAttempt>;
  /** What outcomes made of holds, in order: those that the ledger may not have yet, the newest at most. */
  readonly finished: readonly FinishedBefore[];
  /** Newest sequence of each segment, by number. */
  readonly newest: Map<number, number>;
  readonly lastSeq: number;
  /** Of the segments that were read. */
  readonly leaps: Leaps;
}

/** Throws the system's error. Damaged places are passed over and logged. `nowMs` is monotonic. */
export function replayLog(disk: WalDisk, nowMs: number, log: Log): Replayed {
  const files = disk.list();
  const newest = coldSequences(disk, files);
  const open = new LiveMap<string, LiveAttempt>();
  const concluded = new Map<string, LiveAttempt>();
  let finished: FinishedBefore[] = [];
  let lastSeq = Math.max(0, ...newest.values());
  const leaps = new Leaps();

  const end = (event: AttemptEvent): void => {
    const attempt = open.get(attemptKey(event.requestId, event.attempt));
    if (attempt === undefined) return;
    Object.assign(attempt.event, event);
    attempt.isEnding = true;
    attempt.endedAtMs = nowMs;
  };
  const check = ({ requestId, attempt: number, tokens }: AttemptEvent): void => {
    const attempt = open.get(attemptKey(requestId, number));
    if (attempt !== undefined && tokens !== null) attempt.event.tokens = withPrompt(tokens, attempt.promptTokens);
  };
  const outcome = (payload: Buffer, seq: number): void => {
    const told = outcomeCodec.decode(payload);
    const key = attemptKey(told.requestId, told.attempt);
    const attempt = open.get(key);
    if (attempt !== undefined && attempt.endedAtMs === undefined) {
      // Its end is not written yet: the word is kept until then.
      if (told.outcome !== 'OUTCOME_UNSPECIFIED') attempt.early = { outcome: told.outcome, byEdge: told.toldByEdge, isFollowed: told.followed };
      return;
    }
    const known = attempt ?? concluded.get(key);
    const hold = known === undefined || told.outcome === 'OUTCOME_UNSPECIFIED' || told.followed ? undefined : finishedHold(known.event, told.outcome, known.rounds);
    const isPart = known?.rounds !== undefined && !told.toldByEdge;
    // A round that was given up here says nothing of those that another log has.
    if (hold !== undefined && (!isPart || told.outcome === 'DELIVERED')) finished.push({ seq, hold, isPart });
    if (finished.length > 2 * FINISHED_MAX) finished = finished.slice(-FINISHED_MAX);
    open.delete(key);
    concluded.delete(key);
    if (attempt === undefined || told.toldByEdge || told.outcome === 'OUTCOME_UNSPECIFIED') return;
    attempt.told = { outcome: told.outcome, byEdge: false };
    concluded.set(key, attempt);
  };
  const replay = ({ kind, seq, payload }: Frame, segment: number): void => {
    const reached = Math.max(lastSeq, kind === FRAME.head ? seq - 1 : seq);
    leaps.note(lastSeq, reached);
    lastSeq = reached;
    if (kind === FRAME.start) {
      const event = endedCodec.decode(payload);
      const attempt = new LiveAttempt(event, event.tokens?.inputUncached ?? 0, segment, roundsOf(event));
      attempt.isStarted = true;
      // An edge that lives says so again: no longer wait than for others.
      attempt.tendedAtMs = nowMs;
      open.set(attempt.key, attempt);
    } else if (kind === FRAME.check) check(endedCodec.decode(payload));
    else if (kind === FRAME.end) end(endedCodec.decode(payload));
    else if (kind === FRAME.outcome) outcome(payload, seq);
  };

  for (const file of files) {
    if (file.isCold) continue;
    const damaged = disk.read(file, (frame) => replay(frame, file.number));
    if (damaged > 0) log.warn('A segment of the write-ahead log holds damaged places.', { segment: file.number, damaged });
    newest.set(file.number, lastSeq);
  }
  return { open, concluded, finished, newest, lastSeq, leaps };
}
