/** Interfaces that the domain needs from outside. */
import type { KnownWriter, ReregisterCommand } from '@signalbox/ledger-core/rebuild';
import type { Draw } from '@signalbox/ledger-core/advance';
import type { AccountView } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitCommand } from '@signalbox/ledger-core/admission';
import type { FinishCommand, OpenRequest, TotalsCommand } from '@signalbox/ledger-core/settlement';

export interface Swept {
  /** Leases that were over. */
  readonly ended: number;
  /** A lease may still end: the account is to be swept again soon. */
  readonly hasLeases: boolean;
}

/** Limits and holds by account. Each call is atomic and safe to repeat; all throw a Fault `quota_unavailable` if the store is unreachable. */
export interface QuotaStore {
  /** Resolves once the store answers, or at once if the store may become available later. */
  start(): Promise<void>;
  stop(): Promise<void>;
  ready(): boolean;
  admit(accountId: string, command: AdmitCommand): Promise<AdmitAnswer>;
  /** True = room was freed for which a request may be waiting. `draw`, here and below: set if the request was served from an advance. */
  release(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  /** False = the hold was not allowed to grow. `writer`: the log that has the request. */
  heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint, writer?: string, draw?: Draw): Promise<boolean>;
  /** True = room was freed for which a request may be waiting. */
  finish(accountId: string, command: FinishCommand): Promise<boolean>;
  /** Restores a hold in use from its worker's report. */
  reregister(accountId: string, command: ReregisterCommand): Promise<void>;
  /** Renews a hold's lease. A hold that no worker has reported yet may still expire with it. False = there is no hold; none is created. */
  confirm(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  isHeld(accountId: string, requestId: string): Promise<boolean>;
  /** Reads the current epoch of the store. An epoch lasts until the store loses its state: holds of an earlier epoch are gone. Never empty. */
  epoch(): Promise<string>;
  /** The epoch as last read, without asking: admissions count in this one. */
  latestEpoch(): string;
  /** Writers that have reported all their running requests in `epoch`. */
  heard(epoch: string): Promise<ReadonlySet<string>>;
  hear(epoch: string, writer: string): Promise<void>;
  /** Newest ledger sequence number known for the account; 0 = none. */
  totalsSeq(accountId: string): Promise<bigint>;
  /** A non-empty `epoch` means that these are all totals of the account, and that admissions which need them may proceed in that epoch. True = earlier totals were missed, or the ledger was restored to an older state: ask for all of them. */
  applyTotals(accountId: string, command: TotalsCommand, epoch: string): Promise<boolean>;
  /** Accounts with holds or finished charges. */
  openAccounts(): Promise<readonly string[]>;
  /** Requests that the ledger should have by now: finished more than `ageMs` ago, or dispatched and without a heartbeat for longer than a lease. At most `limit`. */
  overdue(accountId: string, ageMs: number, limit: number): Promise<readonly string[]>;
  /** Describes those of the requests that are dispatched, or finished but not yet named by the ledger. */
  describeOpen(accountId: string, requestIds: readonly string[]): Promise<readonly OpenRequest[]>;
  show(accountId: string): Promise<AccountView>;
  /** Ends expired leases, and forgets old periods where an hour has passed since the last time. */
  sweep(accountId: string): Promise<Swept>;
}

/** Fetches the ledger's absolute totals of an account. The answer names the requests charged last, and those of `requestIds` that are charged. `waiting` is the request that waits for the answer; empty = none. Throws a Fault if billing is unreachable. */
export type AskTotals = (accountId: string, requestIds: readonly string[], waiting: string) => Promise<TotalsCommand>;

/** Fetches the writers that billing knows; `waiting` as above. `isBooked`: the ledger has booked all that the writer reported. Throws a Fault if billing is unreachable. */
export type AskWriters = (waiting: string) => Promise<readonly (KnownWriter & { readonly isBooked?: boolean })[]>;

/** Makes the ledger book requests whose log is lost, as far as quota knows them. Throws a Fault if billing is unreachable; safe to repeat. */
export type BookLost = (writer: string, accountId: string, requests: readonly OpenRequest[]) => Promise<void>;
