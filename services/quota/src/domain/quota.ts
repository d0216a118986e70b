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
  applyTotals(accountId: string, command: TotalsCommand): Promise<void>;
  show(accountId: string): Promise<AccountView>;
  /** Ends leases of the accounts seen by this process; answers how many. Faults of the store end it early. */
  sweep(): Promise<number>;
}

/** Accounts remembered for the sweep; each admission of an account sweeps its own too. */
const SEEN_MAX = 100_000;

export function createQuota(store: QuotaStore, askTotals: AskTotals): Quota {
  const seen = new Set<string>();
  const loading = new Map<string, Promise<void>>();

  const touch = (accountId: string): void => {
    if (seen.size < SEEN_MAX) seen.add(accountId);
  };
  // One question an account, however many requests wait for it.
  const load = (accountId: string): Promise<void> => {
    let running = loading.get(accountId);
    if (running === undefined) {
      running = (async () => {
        let totals: TotalsCommand;
        try {
          totals = await askTotals(accountId);
        } catch (error) {
          throw new Fault('quota_unavailable', 'the ledger did not tell its totals', { cause: error });
        }
        await store.applyTotals(accountId, totals, true);
      })().finally(() => loading.delete(accountId));
      loading.set(accountId, running);
    }
    return running;
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
    applyTotals: (accountId, command) => store.applyTotals(accountId, command, false),
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
  };
}
