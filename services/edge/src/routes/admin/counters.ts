/** Compares quota's counters with the ledger: what they have settled must equal what the ledger had booked when it told them last. Later bookings are still on their way. */
import type { ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import type { GetRequestRequest, GetRequestResponse__Output, LedgerRequest, LedgerResponse__Output, TotalsRequest } from '@signalbox/contracts/billing';
import type { TotalsPublished__Output } from '@signalbox/contracts/events';
import type { OverdueRequest__Output, ShowRequest, ShowResponse__Output } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import { ANSWER_OPTIONS } from './answers.js';

/** The comparison of one account. */
export interface CountedAccount {
  readonly accountId: string;
  /** The ledger's total, up to what the counters were told last. */
  readonly oursNanoUsd: bigint;
  /** What the counters have settled, plus finished requests that the ledger does not know although it should. */
  readonly theirsNanoUsd: bigint;
  /** Ours less theirs; 0 if they differ only by the precision of the counters. */
  readonly differenceNanoUsd: bigint;
  /** Finished requests, on their way to the ledger. */
  readonly finishedNanoUsd: bigint;
  readonly reservedNanoUsd: bigint;
  /** Requests that finished and that the ledger should have settled by now. */
  readonly lost: readonly string[];
}

export interface CountersDeps {
  readonly accounts: RpcClient;
  readonly billing: RpcClient;
  readonly quota: RpcClient;
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
}

/** Accounts compared at once. */
const COMPARED_AT_ONCE = 16;
const ACCOUNTS_PAGE = 1_000;
/** Longest wait for counters that are behind. Quota asks billing every 10 s about requests that are open for 15 s. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 200;
/** A finished request should be booked by then; usually it takes a second or two. */
const OVERDUE_MS = 60_000;
const LEDGER_PAGE_ROWS = 1_000;
/** Pages of ledger rows that are added up at most for counters that are behind. */
const BEHIND_PAGES_MAX = 5;

/** The amount as counters of doubles hold it, as in Redis: exact up to 2^53 nano-dollars, which is nine million dollars. */
const counted = (nanoUsd: bigint): bigint => BigInt(Number(nanoUsd));
const differenceOf = (ours: bigint, theirs: bigint): bigint => (counted(ours) === counted(theirs) ? 0n : ours - theirs);

interface Look {
  readonly account: CountedAccount;
  /** The ledger sequence that the counters have heard of, and what they had settled by then. */
  readonly seq: bigint;
  readonly settled: bigint;
  /** The ledger's sequence at the first look: the counters must hear of all rows up to it. */
  readonly mark: bigint;
  /** The counters have not heard of all rows yet: look again. */
  readonly isBehind: boolean;
}

export interface Counters {
  /** Compares every account. Those whose counters are behind are looked at again, for at most `PATIENCE_MS`. */
  compare(): Promise<readonly CountedAccount[]>;
}

export function createCounters({ accounts, billing, quota, clock }: CountersDeps): Counters {
  async function accountIds(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let after = ''; ; ) {
      const page = await accounts.unary<object, ListAccountsResponse__Output>('ListAccounts', { limit: ACCOUNTS_PAGE, after }, ANSWER_OPTIONS);
      ids.push(...page.accounts.map(({ id }) => id));
      if (!page.hasMore) return ids;
      after = ids.at(-1) ?? '';
    }
  }

  /** The sum that rows after `seq`, up to `head`, added to the account's total; undefined = too many rows. */
  async function bookedSince(accountId: string, seq: bigint, head: bigint): Promise<bigint | undefined> {
    let sum = 0n;
    let after = seq;
    for (let page = 0; page < BEHIND_PAGES_MAX; page += 1) {
      const { rows, next } = await billing.unary<LedgerRequest, LedgerResponse__Output>('Ledger', { accountId, fromMs: '0', toMs: '0', after: String(after), limit: LEDGER_PAGE_ROWS }, ANSWER_OPTIONS);
      for (const row of rows) if (BigInt(row.seq) <= head && (row.kind === 'charge' || (row.kind === 'adjustment' && row.appliesTo !== 'cost'))) sum += BigInt(row.amountNanoUsd);
      after = BigInt(rows.at(-1)?.seq ?? head);
      if (next === undefined || after >= head) return sum;
    }
    return undefined;
  }

  /** A request that the ledger knows is settled only once no further round can come, so it is not lost before it is silent. */
  async function isLost({ requestId, silent }: OverdueRequest__Output): Promise<boolean> {
    return silent || !(await billing.unary<GetRequestRequest, GetRequestResponse__Output>('GetRequest', { accountId: '', requestId }, ANSWER_OPTIONS)).found;
  }

  async function look(accountId: string, before?: Look): Promise<Look> {
    // The ledger is asked second, so that it is never behind the counters.
    const shown = await quota.unary<ShowRequest, ShowResponse__Output>('Show', { accountId, overdueMs: String(OVERDUE_MS) }, ANSWER_OPTIONS);
    const told = await billing.unary<TotalsRequest, TotalsPublished__Output>('Totals', { accountId, requestIds: [] }, ANSWER_OPTIONS);
    const isAll = ({ scope, periodId }: { readonly scope: string; readonly periodId: string }): boolean => scope === 'account' && periodId === 'total';
    const bucket = shown.buckets.find(isAll);
    const [settled, seq, total, head] = [BigInt(bucket?.settledNanoUsd ?? '0'), BigInt(shown.ledgerSeq), BigInt(told.totals.find(isAll)?.chargeNanoUsd ?? '0'), BigInt(told.ledgerSeq)];
    const mark = before?.mark ?? head;
    const isEven = differenceOf(total, settled) === 0n;
    // The counters have heard of nothing since the previous look.
    if (before !== undefined && !isEven && seq === before.seq && settled === before.settled) return before;
    const since = isEven || seq >= head ? 0n : await bookedSince(accountId, seq, head);
    const ours = total - (since ?? 0n);
    const isRight = since !== undefined && differenceOf(ours, settled) === 0n;
    // A difference at a sequence that the ledger knows is an error; no further look is needed.
    const isBehind = !isEven && (isRight ? seq < mark : since === undefined || seq > head);

    const lost: OverdueRequest__Output[] = [];
    if (!isBehind) for (const request of shown.overdue) if (await isLost(request)) lost.push(request);
    const lostNanoUsd = lost.reduce((sum, { chargeNanoUsd }) => sum + BigInt(chargeNanoUsd), 0n);
    const theirs = settled + lostNanoUsd;
    return {
      seq, settled, mark, isBehind,
      account: {
        accountId, oursNanoUsd: isBehind ? total : ours, theirsNanoUsd: theirs, differenceNanoUsd: differenceOf(isBehind ? total : ours, theirs),
        finishedNanoUsd: BigInt(bucket?.finishedNanoUsd ?? '0') - lostNanoUsd, reservedNanoUsd: BigInt(shown.reservedNanoUsd), lost: lost.map(({ requestId }) => requestId),
      },
    };
  }

  async function lookAt<Item>(items: readonly Item[], one: (item: Item) => Promise<Look>): Promise<readonly Look[]> {
    const looks: Look[] = [];
    for (let i = 0; i < items.length; i += COMPARED_AT_ONCE) looks.push(...(await Promise.all(items.slice(i, i + COMPARED_AT_ONCE).map(one))));
    return looks;
  }

  return {
    compare: async () => {
      let looks = await lookAt(await accountIds(), (accountId) => look(accountId));
      const endMs = clock.monotonicMs() + PATIENCE_MS;
      for (;;) {
        const behind = looks.filter(({ isBehind }) => isBehind);
        if (behind.length === 0 || clock.monotonicMs() >= endMs) return looks.map(({ account }) => account);
        await new Promise<void>((resolve) => void clock.setTimer(LOOK_EVERY_MS, resolve));
        const again = new Map((await lookAt(behind, (one) => look(one.account.accountId, one))).map((one) => [one.account.accountId, one]));
        looks = looks.map((one) => again.get(one.account.accountId) ?? one);
      }
    },
  };
}
