/** Reads what earlier processes wrote: the attempts they left open, and the latest sequence. */
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
  /** Another worker's log may have more rounds of the request. */
  readonly isPart: boolean;
}

export interface Replayed {
  /** Attempts without an end or an outcome, by key. */
  readonly open: LiveMap<string, LiveAttempt>;
  /** Attempts whose outcome the worker concluded; edge may still tell another. */
  readonly concluded: Map<string, LiveAttempt>;
  /** Holds that outcomes finished, in order, as far as the ledger may not have them; only the newest if there are many. */
  readonly finished: readonly FinishedBefore[];
  /** Newest sequence of each segment, by number. */
  readonly newest: Map<number, number>;
  readonly lastSeq: number;
  /** Skipped sequences in the segments that were read. */
  readonly leaps: Leaps;
}

/** Replays the segments that are not cold. Damaged places are skipped and logged. Throws the system error. `nowMs` is monotonic. */
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
      // Its end is not written yet: keep the outcome until then.
      if (told.outcome !== 'OUTCOME_UNSPECIFIED') attempt.early = { outcome: told.outcome, byEdge: told.toldByEdge, isFollowed: told.followed };
      return;
    }
    const known = attempt ?? concluded.get(key);
    const hold = known === undefined || told.outcome === 'OUTCOME_UNSPECIFIED' || told.followed ? undefined : finishedHold(known.event, told.outcome, known.rounds);
    const isPart = known?.rounds !== undefined && !told.toldByEdge;
    // A round that was discarded here tells nothing about rounds in another log.
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
      // An edge that is alive will say so again, so there is no need to wait longer than for other attempts.
      attempt.tendedAtMs = nowMs;
      open.set(attempt.key, attempt);
    } else if (kind === FRAME.check) check(endedCodec.decode(payload));
    else if (kind === FRAME.end) end(endedCodec.decode(payload));
    else if (kind === FRAME.outcome) outcome(payload, seq);
  };

  for (const file of files) {
    if (file.isCold) continue;
    const damaged = disk.read(file, (frame) => replay(frame, file.number));
    if (damaged > 0) log.warn('A segment of the write-ahead log is damaged; the damaged places were skipped.', { segment: file.number, damaged });
    newest.set(file.number, lastSeq);
  }
  return { open, concluded, finished, newest, lastSeq, leaps };
}
