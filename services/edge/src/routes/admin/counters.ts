/** The counters that limits stand on, beside the ledger: what they have settled must be what it had booked when it told them. What is told since is under way. */
import type { ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import type { GetRequestRequest, GetRequestResponse__Output, LedgerRequest, LedgerResponse__Output, TotalsRequest } from '@signalbox/contracts/billing';
import type { TotalsPublished__Output } from '@signalbox/contracts/events';
import type { OverdueRequest__Output, ShowRequest, ShowResponse__Output } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import { ANSWER_OPTIONS } from './answers.js';

/** An account as it was compared. */
export interface CountedAccount {
  readonly accountId: string;
  /** The ledger's total, as of what the counters were told last. */
  readonly oursNanoUsd: bigint;
  /** What the counters have settled, and what they count of requests that the ledger does not know although it should. */
  readonly theirsNanoUsd: bigint;
  /** Ours less theirs; nothing where they differ by no more than the counters can hold. */
  readonly differenceNanoUsd: bigint;
  /** Finished, and on its way to the ledger. */
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
/** 30 s: quota asks by itself about what is open for 15, every ten. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 200;
/** 60 s: what finished is booked within a second or two. */
const OVERDUE_MS = 60_000;
const LEDGER_PAGE_ROWS = 1_000;
/** Rows that the counters may be behind by and be compared all the same. */
const BEHIND_PAGES_MAX = 5;

/** What counters of doubles, as those in Redis, hold of an amount: exact up to 2^53 nano-dollars, nine million dollars. */
const counted = (nanoUsd: bigint): bigint => BigInt(Number(nanoUsd));
const differenceOf = (ours: bigint, theirs: bigint): bigint => (counted(ours) === counted(theirs) ? 0n : ours - theirs);

interface Look {
  readonly account: CountedAccount;
  /** Of the counters, and what they had settled at it. */
  readonly seq: bigint;
  readonly settled: bigint;
  /** The ledger's sequence as it was met first: the counters are to hear of all up to it. */
  readonly mark: bigint;
  /** They may not have heard of it yet: to be looked at again. */
  readonly isBehind: boolean;
}

export interface Counters {
  /** Every account; of those whose counters have not heard of all yet, once they have or patience has ended. */
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

  /** What rows after `seq`, up to `head`, added to the account's total; undefined = they are too many. */
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

  /** One that the ledger has is settled when no further round of it can come; until it is silent, that is waited for. */
  async function isLost({ requestId, silent }: OverdueRequest__Output): Promise<boolean> {
    return silent || !(await billing.unary<GetRequestRequest, GetRequestResponse__Output>('GetRequest', { accountId: '', requestId }, ANSWER_OPTIONS)).found;
  }

  async function look(accountId: string, before?: Look): Promise<Look> {
    // The ledger second: it is never behind what it told.
    const shown = await quota.unary<ShowRequest, ShowResponse__Output>('Show', { accountId, overdueMs: String(OVERDUE_MS) }, ANSWER_OPTIONS);
    const told = await billing.unary<TotalsRequest, TotalsPublished__Output>('Totals', { accountId, requestIds: [] }, ANSWER_OPTIONS);
    const isAll = ({ scope, periodId }: { readonly scope: string; readonly periodId: string }): boolean => scope === 'account' && periodId === 'total';
    const bucket = shown.buckets.find(isAll);
    const [settled, seq, total, head] = [BigInt(bucket?.settledNanoUsd ?? '0'), BigInt(shown.ledgerSeq), BigInt(told.totals.find(isAll)?.chargeNanoUsd ?? '0'), BigInt(told.ledgerSeq)];
    const mark = before?.mark ?? head;
    const isEven = differenceOf(total, settled) === 0n;
    // The counters have heard of nothing since.
    if (before !== undefined && !isEven && seq === before.seq && settled === before.settled) return before;
    const since = isEven || seq >= head ? 0n : await bookedSince(accountId, seq, head);
    const ours = total - (since ?? 0n);
    const isRight = since !== undefined && differenceOf(ours, settled) === 0n;
    // Wrong at a sequence that the ledger knows is wrong at once.
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
