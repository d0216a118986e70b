/** Quota's state in this process's memory, for `npm start` and tests. One replica only; totals are fetched from the ledger after each start. */
import type { Clock } from '@signalbox/kernel/clock';
import { newAccountState, show, sweep, type AccountState } from '@signalbox/ledger-core/account-state';
import { admit, confirm, heartbeat, release } from '@signalbox/ledger-core/admission';
import { applyTotals, describeOpen, finish, overdue, totalsSeq } from '@signalbox/ledger-core/settlement';
import { reregister } from '@signalbox/ledger-core/rebuild';
import type { QuotaStore } from '../domain/ports.js';

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly periodSeconds?: number | undefined;
  /** Pass a map to inspect the state from outside. */
  readonly accounts?: Map<string, AccountState>;
  /** Names the epoch of this store; every new store needs a new name. */
  readonly epoch?: () => string;
}

export function createMemoryStore(options: MemoryStoreOptions): QuotaStore {
  const { clock, periodSeconds, accounts = new Map<string, AccountState>(), epoch = (): string => 'process' } = options; // kept: by account; none is dropped.
  const heardIn = new Map<string, Set<string>>(); // kept: by epoch of the store, names of writers.
  const of = (accountId: string): AccountState => {
    let state = accounts.get(accountId);
    if (state === undefined) accounts.set(accountId, (state = newAccountState()));
    return state;
  };
  return {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    ready: () => true,
    admit: (accountId, command) => Promise.resolve(admit(of(accountId), command, epoch(), clock.nowMs())),
    release: async (accountId, requestId, draw) => release(of(accountId), requestId, clock.nowMs(), draw),
    heartbeat: async (accountId, requestId, toAmount, toTokens, writer, draw) => heartbeat(of(accountId), requestId, toAmount, toTokens, clock.nowMs(), writer, draw),
    finish: (accountId, command) => Promise.resolve(finish(of(accountId), command, clock.nowMs(), periodSeconds)),
    reregister: async (accountId, command) => reregister(of(accountId), command, clock.nowMs()),
    confirm: async (accountId, requestId, draw) => confirm(of(accountId), requestId, clock.nowMs(), draw),
    isHeld: async (accountId, requestId) => of(accountId).holds.has(requestId),
    epoch: async () => epoch(),
    latestEpoch: epoch,
    heard: async (life) => heardIn.get(life) ?? new Set<string>(),
    hear: async (life, writer) => {
      const heard = heardIn.get(life) ?? new Set<string>();
      heardIn.clear();
      heardIn.set(life, heard.add(writer));
    },
    totalsSeq: async (accountId) => totalsSeq(of(accountId)),
    applyTotals: async (accountId, command, life) => applyTotals(of(accountId), command, clock.nowMs(), life === '' ? undefined : life),
    openAccounts: async () => [...accounts].flatMap(([accountId, { holds, finished }]) => (holds.size + finished.size > 0 ? [accountId] : [])),
    overdue: async (accountId, ageMs, limit) => overdue(of(accountId), ageMs, limit, clock.nowMs()),
    describeOpen: async (accountId, requestIds) => describeOpen(of(accountId), requestIds, clock.nowMs()),
    show: async (accountId) => show(of(accountId), clock.nowMs(), periodSeconds),
    sweep: async (accountId) => {
      const state = of(accountId);
      return { ended: sweep(state, clock.nowMs()).length, hasLeases: state.nextSweepMs !== undefined };
    },
  };
}
