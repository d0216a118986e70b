/**
 * Polls accounts for changes of keys and accounts, several times a second. Bus events are faster, but a lost one, or one that
 * accounts could not send, must not leave a revoked key working here (docs/adr/0032). While no key is in use it polls
 * rarely, and at once when the next request comes.
 */
import type { Change__Output, ListChangesRequest, ListChangesResponse__Output } from '@signalbox/contracts/accounts';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';

/** From one question to the next. */
const INTERVAL_MS = 400;
/** And to the next while there is no answer: a replica of accounts that hangs must not hide the others. */
const AGAIN_MS = 200;
/** Between questions while nobody needs the answers but to know whether accounts is away. */
const REST_INTERVAL_MS = 5_000;
/** How long after the last use of a key the answers are needed. */
const IN_USE_MS = 10_000;
const DEADLINE_MS = 1_000;
/** Questions in a row without any answer after which accounts is taken to be away: before what it last said is too old. */
const UNANSWERED_MAX = 3;
/** Of these none comes from an accounts that works, with its store. */
const AWAY: ReadonlySet<FaultCode> = new Set<FaultCode>(['peer_unavailable', 'link_lost', 'deadline_exceeded', 'store_unavailable', 'overloaded']);

export interface ChangesFeedOptions {
  readonly accounts: RpcClient;
  readonly clock: Clock;
  readonly onChange: (change: Pick<Change__Output, 'keyId' | 'accountId' | 'reason'>) => void;
  /** What was changed until now is not known: whatever was read before may be outdated. */
  readonly onBreak: () => void;
  /** True while something runs that a change must end. */
  readonly isServing: () => boolean;
}

export interface ChangesFeed {
  start(): void;
  stop(): void;
  /** Monotonic milliseconds: every change made before is known, to what was read after the last break. -Infinity = of none. */
  currentMs(): number;
  /** True while accounts or its store answers nothing: asking it about a key would only hold a request up. */
  isAway(): boolean;
  /** A key is used at `nowMs`, monotonic: from now on each change must be heard of in time. */
  use(nowMs: number): void;
  /** After a rest: resolves once accounts has answered, failed or is taken to be away. Never rejects. */
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

  /** The next question, so long after the latest. */
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
      // A later question may have been answered first: what it said stands.
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
        // Whatever else it says, it is there: an accounts of before this question, above all.
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
