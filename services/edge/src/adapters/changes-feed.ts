/**
 * Polls accounts for changes of keys and accounts, several times a second. Bus events are faster, but a lost one, or one that
 * accounts could not send, must not leave a revoked key working here (docs/adr/0032). While no key is in use it polls
 * rarely, and at once when the next request comes.
 */
import type { Change__Output, ListChangesRequest, ListChangesResponse__Output } from '@signalbox/contracts/accounts';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';

/** Interval between polls. */
const INTERVAL_MS = 400;
/** The next poll while the latest is unanswered: one replica of accounts that hangs must not hide the others. */
const AGAIN_MS = 200;
/** Interval while no key is in use: polls then only show whether accounts is away. */
const REST_INTERVAL_MS = 5_000;
/** Polls stay frequent this long after the last use of any key. */
const IN_USE_MS = 10_000;
const DEADLINE_MS = 1_000;
/** Unanswered polls in a row after which accounts counts as away. Reached before cached keys become too old to use (900 ms, authenticator.ts). */
const UNANSWERED_MAX = 3;
/** Faults that an accounts service that works, with its store, never gives. */
const AWAY: ReadonlySet<FaultCode> = new Set<FaultCode>(['peer_unavailable', 'link_lost', 'deadline_exceeded', 'store_unavailable', 'overloaded']);

export interface ChangesFeedOptions {
  readonly accounts: RpcClient;
  readonly clock: Clock;
  readonly onChange: (change: Pick<Change__Output, 'keyId' | 'accountId' | 'reason'>) => void;
  /** Earlier changes may have been missed: whatever was read before may be outdated. */
  readonly onBreak: () => void;
  /** True while any request runs: a change may have to end it. */
  readonly isServing: () => boolean;
}

export interface ChangesFeed {
  start(): void;
  stop(): void;
  /** Monotonic milliseconds: every change made before is known, for entries read after the last break. -Infinity = nothing is known. */
  currentMs(): number;
  /** True while accounts or its store does not answer: asking it about a key would only delay a request. */
  isAway(): boolean;
  /** A key is used at `nowMs`, monotonic: from now on polls are frequent. */
  use(nowMs: number): void;
  /** The first poll after a time of rare ones, if it is under way: resolves once accounts has answered, failed or counts as away. Never rejects. */
  catchingUp(): Promise<void> | undefined;
}

export function createChangesFeed({ accounts, clock, onChange, onBreak, isServing }: ChangesFeedOptions): ChangesFeed {
  let cursor = '';
  let currentMs = -Infinity;
  let unanswered = 0;
  let timer: Timer | undefined;
  let isStopped = false;
  let latestMs = 0;
  let usedMs = clock.monotonicMs();
  let isResting = false;
  let catchUp: { readonly done: Promise<void>; readonly end: () => void } | undefined;

  const endCatchUp = (): void => {
    catchUp?.end();
    catchUp = undefined;
  };

  /** Sets the timer for the next poll, counted from the latest. */
  const arm = (): void => {
    timer?.cancel();
    if (isStopped) return;
    const nowMs = clock.monotonicMs();
    const isAskedAgain = unanswered > 0 && unanswered < UNANSWERED_MAX;
    isResting = !isAskedAgain && nowMs - usedMs >= IN_USE_MS && !isServing();
    const pauseMs = isAskedAgain ? AGAIN_MS : isResting ? REST_INTERVAL_MS : INTERVAL_MS;
    timer = clock.setTimer(Math.max(0, latestMs + pauseMs - nowMs), tick, { unref: true });
  };

  const answered = (): void => {
    unanswered = 0;
    arm();
  };

  const ask = async (): Promise<void> => {
    const askedMs = clock.monotonicMs();
    let after = cursor;
    for (;;) {
      const answer = await accounts.unary<ListChangesRequest, ListChangesResponse__Output>('ListChanges', { after }, { deadlineMs: DEADLINE_MS });
      answered();
      if (!answer.unbroken) onBreak();
      for (const change of answer.changes) onChange(change);
      // A later poll may have been answered first: its cursor stays.
      if (askedMs >= currentMs) cursor = answer.cursor;
      if (!answer.more) break;
      after = answer.cursor;
    }
    currentMs = Math.max(currentMs, askedMs);
  };

  const tick = (): void => {
    latestMs = clock.monotonicMs();
    unanswered += 1;
    arm();
    if (unanswered >= UNANSWERED_MAX) endCatchUp();
    ask()
      .catch((error: unknown) => {
        // Any other error shows that accounts is there, for example a version that does not know this method.
        if (!(error instanceof Fault) || !AWAY.has(error.code)) answered();
      })
      .finally(endCatchUp);
  };

  return {
    start: tick,
    stop: () => {
      isStopped = true;
      timer?.cancel();
      endCatchUp();
    },
    currentMs: () => currentMs,
    isAway: () => unanswered >= UNANSWERED_MAX,
    use: (nowMs) => {
      usedMs = nowMs;
      if (!isResting || isStopped) return;
      let end = (): void => undefined;
      const done = new Promise<void>((resolve) => (end = resolve));
      catchUp = { done, end };
      tick();
    },
    catchingUp: () => catchUp?.done,
  };
}
