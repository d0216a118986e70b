/** What the domain needs from the world. */
import type { KnownWriter, ReregisterCommand } from '@signalbox/ledger-core/rebuild';
import type { Draw } from '@signalbox/ledger-core/advance';
import type { AccountView } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitCommand } from '@signalbox/ledger-core/admission';
import type { FinishCommand, OpenRequest, TotalsCommand } from '@signalbox/ledger-core/settlement';

/** Limits and holds by account. Each call is atomic and safe to repeat; all throw a Fault `quota_unavailable` when the store is away. */
export interface QuotaStore {
  /** Resolves once the store answers, or at once when it may come later. */
  start(): Promise<void>;
  stop(): Promise<void>;
  ready(): boolean;
  admit(accountId: string, command: AdmitCommand): Promise<AdmitAnswer>;
  /** True = room was freed that somebody may wait for. `draw`, here and below: of a request that was served from an advance. */
  release(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  /** False = the growth of the hold was refused. `writer`: in whose log the request stands. */
  heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint, writer?: string, draw?: Draw): Promise<boolean>;
  /** True = room was freed that somebody may wait for. */
  finish(accountId: string, command: FinishCommand): Promise<boolean>;
  /** A hold in use, as its worker knows it. */
  reregister(accountId: string, command: ReregisterCommand): Promise<void>;
  /** A hold's lease begins anew, as one that may still come to nothing. False = there is none, and none is made. */
  confirm(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  isHeld(accountId: string, requestId: string): Promise<boolean>;
  /** The present life of the store, as it says now: whatever was held in another one is forgotten. Never empty. */
  epoch(): Promise<string>;
  /** As heard last: admissions count in this one. */
  latestEpoch(): string;
  /** Writers that have told in `epoch` all they have under way. */
  heard(epoch: string): Promise<ReadonlySet<string>>;
  hear(epoch: string, writer: string): Promise<void>;
  /** Newest sequence of the ledger that is known of the account; 0 = none. */
  totalsSeq(accountId: string): Promise<bigint>;
  /** `epoch`, unless empty: these are all totals of the account, and in that life of the store admissions that need them may go on. True = totals told before these were missed, or the ledger went back: ask for all of them. */
  applyTotals(accountId: string, command: TotalsCommand, epoch: string): Promise<boolean>;
  /** Accounts with holds or finished charges. */
  openAccounts(): Promise<readonly string[]>;
  /** Requests that the ledger should have by now: finished for longer than `ageMs`, or dispatched and without a heartbeat for longer than a lease. At most `limit`. */
  overdue(accountId: string, ageMs: number, limit: number): Promise<readonly string[]>;
  /** What is known of those of the requests that are dispatched, or finished and not named by the ledger. */
  describeOpen(accountId: string, requestIds: readonly string[]): Promise<readonly OpenRequest[]>;
  show(accountId: string): Promise<AccountView>;
  /** Ends leases that ran out; answers how many. */
  sweep(accountId: string): Promise<number>;
}

/** The ledger's absolute totals of an account. Named are the requests charged last, and those of `requestIds` that are charged. `waiting` is the request that cannot go on without; empty = none waits. Throws a Fault when billing is away. */
export type AskTotals = (accountId: string, requestIds: readonly string[], waiting: string) => Promise<TotalsCommand>;

/** The writers that billing knows; `waiting` as above. `isBooked`: the ledger has all that the writer told it of. Throws a Fault when it is away. */
export type AskWriters = (waiting: string) => Promise<readonly (KnownWriter & { readonly isBooked?: boolean })[]>;

/** Has the ledger book what a lost writer's log would have told. Throws a Fault when billing is away; safe to repeat. */
export type BookLost = (writer: string, accountId: string, requests: readonly OpenRequest[]) => Promise<void>;
