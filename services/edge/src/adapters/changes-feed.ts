/**
 * What was changed of keys and accounts, asked of accounts several times a second: events of the bus are faster, but
 * one that is lost, or that accounts could not send, must not leave a revoked key working here (docs/adr/0032).
 */
import type { Change__Output, ListChangesRequest, ListChangesResponse__Output } from '@signalbox/contracts/accounts';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';

/** From one question to the next, whether the first was answered or not: a replica of accounts that hangs must not hide the others. */
const INTERVAL_MS = 250;
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
}

export interface ChangesFeed {
  start(): void;
  stop(): void;
  /** Monotonic milliseconds: every change made before is known, to what was read after the last break. -Infinity = of none. */
  currentMs(): number;
  /** True while accounts or its store answers nothing: asking it about a key would only hold a request up. */
  isAway(): boolean;
}

export function createChangesFeed({ accounts, clock, onChange, onBreak }: ChangesFeedOptions): ChangesFeed {
  let cursor = '';
  let currentMs = -Infinity;
  let unanswered = 0;
  let timer: Timer | undefined;
  let isStopped = false;

  const ask = async (): Promise<void> => {
    const askedMs = clock.monotonicMs();
    let after = cursor;
    for (;;) {
      const answer = await accounts.unary<ListChangesRequest, ListChangesResponse__Output>('ListChanges', { after }, { deadlineMs: DEADLINE_MS });
      unanswered = 0;
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
    unanswered += 1;
    ask().catch((error: unknown) => {
      // Whatever else it says, it is there: an accounts of before this question, above all.
      if (!(error instanceof Fault) || !AWAY.has(error.code)) unanswered = 0;
    });
    if (!isStopped) timer = clock.setTimer(INTERVAL_MS, tick, { unref: true });
  };

  return {
    start: tick,
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
    currentMs: () => currentMs,
    isAway: () => unanswered >= UNANSWERED_MAX,
  };
}
