/** Decides admissions over a store, after asking the ledger where a store knows nothing yet. */
import type { AccountView, AdmitVerdict, FinishCommand, TotalsCommand } from '@signalbox/ledger-core/admission';
import { Fault } from '@signalbox/kernel/fault';
import type { Admission } from './admission-request.js';
import type { AskTotals, QuotaStore } from './ports.js';

export interface Quota {
  /** Throws a Fault `quota_unavailable` when store or ledger cannot answer, `bad_message` for an id used up before. */
  admit(accountId: string, admission: Admission): Promise<AdmitVerdict>;
  release(accountId: string, requestId: string): Promise<void>;
  heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint): Promise<boolean>;
  finish(accountId: string, command: FinishCommand): Promise<void>;
  /** Asks the ledger when totals before these were missed; throws a Fault `quota_unavailable` when it cannot, and the next totals say so again. */
  applyTotals(accountId: string, command: TotalsCommand): Promise<void>;
  show(accountId: string): Promise<AccountView>;
  /** Ends leases of the accounts seen by this process; answers how many. Faults of the store end it early. */
  sweep(): Promise<number>;
  /** Asks the ledger about requests of any account that are open for longer than `ageMs`, since totals are announced at most once. Answers how many were settled. Faults end it early. */
  reconcile(ageMs: number): Promise<number>;
}

/** Accounts remembered for the sweep; each admission of an account sweeps its own too. */
const SEEN_MAX = 100_000;
/** Requests in one question to the ledger. */
const ASKED_MAX = 1_000;

export function createQuota(store: QuotaStore, askTotals: AskTotals): Quota {
  const seen = new Set<string>();

  /** Accounts whose announced totals the store did not take: nothing that is open may tell of them. */
  const behind = new Set<string>();

  const touch = (accountId: string): void => {
    if (seen.size < SEEN_MAX) seen.add(accountId);
  };
  const ask = async (accountId: string, requestIds: readonly string[]): Promise<ReadonlySet<string>> => {
    let totals: TotalsCommand;
    try {
      totals = await askTotals(accountId, requestIds);
    } catch (error) {
      throw new Fault('quota_unavailable', 'the ledger did not tell its totals', { cause: error });
    }
    await store.applyTotals(accountId, totals, true);
    return new Set(totals.requestIds);
  };
  /** Work that is done once for an account, however many wait for it. */
  const once = (work: (accountId: string) => Promise<unknown>): ((accountId: string) => Promise<void>) => {
    const running = new Map<string, Promise<void>>();
    return (accountId) => {
      let current = running.get(accountId);
      if (current === undefined) {
        current = work(accountId)
          .then(() => undefined)
          .finally(() => running.delete(accountId));
        running.set(accountId, current);
      }
      return current;
    };
  };
  const load = once((accountId) => ask(accountId, []));
  const catchUp = once(async (accountId) => ask(accountId, await store.overdue(accountId, 0, ASKED_MAX)));
  /** Settles what the ledger has of the requests that are open for longer than `ageMs`. */
  const settle = async (accountId: string, ageMs: number): Promise<number> => {
    for (let settled = 0; ; ) {
      const asked = await store.overdue(accountId, ageMs, ASKED_MAX);
      if (asked.length === 0) return settled;
      const charged = await ask(accountId, asked);
      const found = asked.filter((requestId) => charged.has(requestId)).length;
      settled += found;
      if (asked.length < ASKED_MAX || found === 0) return settled;
    }
  };

  return {
    admit: async (accountId, { command }) => {
      touch(accountId);
      let answer = await store.admit(accountId, command);
      if (answer === 'unloaded') {
        await load(accountId);
        answer = await store.admit(accountId, command);
      }
      if (answer === 'unloaded') throw new Fault('quota_unavailable', 'the store lost its state while loading');
      if (answer === 'ended') throw new Fault('bad_message', 'this request id was used up before');
      return answer;
    },
    release: (accountId, requestId) => store.release(accountId, requestId),
    heartbeat: (accountId, requestId, toAmount, toTokens) => {
      touch(accountId);
      return store.heartbeat(accountId, requestId, toAmount, toTokens);
    },
    finish: (accountId, command) => store.finish(accountId, command),
    applyTotals: async (accountId, command) => {
      if (behind.size < SEEN_MAX) behind.add(accountId);
      if (await store.applyTotals(accountId, command, false)) await catchUp(accountId);
      behind.delete(accountId);
    },
    show: async (accountId) => {
      const view = await store.show(accountId);
      if (view.buckets.size > 0) return view;
      await load(accountId);
      return store.show(accountId);
    },
    sweep: async () => {
      let ended = 0;
      for (const accountId of [...seen]) ended += await store.sweep(accountId);
      return ended;
    },
    reconcile: async (ageMs) => {
      let settled = 0;
      for (const accountId of [...behind]) {
        await catchUp(accountId);
        behind.delete(accountId);
      }
      for (const accountId of await store.openAccounts()) settled += await settle(accountId, ageMs);
      return settled;
    },
  };
}
