/** Quota in this process: for `npm start` and tests. One replica only; totals are asked of the ledger at each start. */
import type { Clock } from '@signalbox/kernel/clock';
import { admit, applyTotals, finish, heartbeat, newAccountState, overdue, release, show, sweep, type AccountState } from '@signalbox/ledger-core/admission';
import type { QuotaStore } from '../domain/ports.js';

const GENERATION = 'process';

/** `accounts` may be given to look at the state from outside. */
export function createMemoryStore(options: { readonly clock: Pick<Clock, 'nowMs'>; readonly periodSeconds?: number | undefined; readonly accounts?: Map<string, AccountState> }): QuotaStore {
  const { clock, periodSeconds, accounts = new Map<string, AccountState>() } = options;
  const of = (accountId: string): AccountState => {
    let state = accounts.get(accountId);
    if (state === undefined) accounts.set(accountId, (state = newAccountState()));
    return state;
  };
  return {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    ready: () => true,
    admit: async (accountId, command) => admit(of(accountId), command, GENERATION, clock.nowMs()),
    release: async (accountId, requestId) => release(of(accountId), requestId, clock.nowMs()),
    heartbeat: async (accountId, requestId, toAmount, toTokens) => heartbeat(of(accountId), requestId, toAmount, toTokens, clock.nowMs(), periodSeconds),
    finish: async (accountId, command) => finish(of(accountId), command, clock.nowMs(), periodSeconds),
    applyTotals: async (accountId, command, complete) => applyTotals(of(accountId), command, clock.nowMs(), complete ? GENERATION : undefined),
    openAccounts: async () => [...accounts].flatMap(([accountId, { holds, finished }]) => (holds.size + finished.size > 0 ? [accountId] : [])),
    overdue: async (accountId, ageMs, limit) => overdue(of(accountId), ageMs, limit, clock.nowMs()),
    show: async (accountId) => show(of(accountId), clock.nowMs(), periodSeconds),
    sweep: async (accountId) => sweep(of(accountId), clock.nowMs()).length,
  };
}
