/** Decides admissions over a store, after asking the ledger where a store knows nothing yet. */
import type { Draw } from '@signalbox/ledger-core/advance';
import type { AccountView } from '@signalbox/ledger-core/account-state';
import type { AdmitVerdict } from '@signalbox/ledger-core/admission';
import type { FinishCommand, OpenRequest, TotalsCommand } from '@signalbox/ledger-core/settlement';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Admission } from './admission-request.js';
import { unheard, type KnownWriter, type ReregisterCommand } from '@signalbox/ledger-core/rebuild';
import type { AskTotals, AskWriters, BookLost, QuotaStore } from './ports.js';

export interface Admitted {
  readonly verdict: AdmitVerdict;
  /** Life of the store in which it was decided. */
  readonly epoch: string;
}

export interface Quota {
  /** Throws a Fault `quota_unavailable` when store or ledger cannot answer, or not every writer was heard after a loss of the store; `bad_message` for an id used up before. */
  admit(accountId: string, admission: Admission): Promise<Admitted>;
  /** True when the request has a hold, whose lease then begins anew: its attempt may still come to nothing. */
  confirm(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  /** True when the request has a hold. */
  isHeld(accountId: string, requestId: string): Promise<boolean>;
  /** The present life of the store, asked of it for a living writer. */
  presentEpoch(writer: string): Promise<string>;
  /** What a writer has under way; it counts as heard with its last message. Throws a Fault `quota_unavailable` when `epoch` is over. */
  reregister(writer: string, epoch: string, holds: readonly { readonly accountId: string; readonly command: ReregisterCommand }[], finished: readonly { readonly accountId: string; readonly command: FinishCommand }[], isLast: boolean): Promise<void>;
  /** `draw`, here and in the others: of a request that was served from an advance. */
  release(accountId: string, requestId: string, draw?: Draw): Promise<void>;
  heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint, writer: string, draw?: Draw): Promise<boolean>;
  finish(accountId: string, command: FinishCommand): Promise<void>;
  /** Asks the ledger when totals before these were missed; throws a Fault `quota_unavailable` when it cannot, and the next totals say so again. */
  applyTotals(accountId: string, command: TotalsCommand): Promise<void>;
  show(accountId: string): Promise<AccountView>;
  /** Requests that count for something, finished longer than `ageMs` ago and are not settled by the ledger, at most 100. Its totals are known afterwards, too. */
  overdue(accountId: string, ageMs: number): Promise<readonly OpenRequest[]>;
  /** Ends leases of the accounts seen by this process; answers how many. Faults of the store end it early. */
  sweep(): Promise<number>;
  /**
   * Asks the ledger about requests of any account that are open for longer than `ageMs`, since totals are announced at most once; what it does not have
   * and a lost writer told of, or nobody for 45 minutes, is handed to it. Accounts that were refused at a wall are asked about too: what lowered their sums may have been missed,
   * and nothing is booked for them that would tell. Answers how many requests were settled. Faults end it early.
   */
  reconcile(ageMs: number): Promise<number>;
}

/** Accounts remembered for the sweep; each admission of an account sweeps its own too. */
const SEEN_MAX = 100_000;
/** Accounts at a wall that are asked about in one round. */
const REFUSED_ASKED_MAX = 1_000;
/** Requests in one question to the ledger. */
const ASKED_MAX = 1_000;
/** Requests that are told to an operator. */
const OVERDUE_TOLD_MAX = 100;
/** 15 min without a word: nobody waits for a writer any more. */
const LOST_MS = 900_000;
/** 60 s: by then whoever lives has told again what it has under way, and the ledger what its log comes to. */
const TELL_AGAIN_MS = 60_000;
/** Writers that accounts wait for are told of once they have been for so long, and each minute from then on: who lives has told within seconds. */
const AWAITED_TOLD_MS = 10_000;
const AWAITED_TOLD_AGAIN_MS = 60_000;
/** Writers by what the ledger knows of them. */
interface Standings {
  readonly lost: ReadonlySet<string>;
  readonly booked: ReadonlySet<string>;
}

/**
 * `tellFreed` is called when an account has room again that somebody may wait for. Without `rebuild` nobody can hold what this store does not know;
 * its `tellAwaited` names the writers that accounts with limits still wait for after a loss.
 */
export function createQuota(
  store: QuotaStore,
  askTotals: AskTotals,
  tellFreed: (accountId: string) => void = () => undefined,
  rebuild?: { readonly askWriters: AskWriters; readonly bookLost: BookLost; readonly clock: Pick<Clock, 'monotonicMs'>; readonly tellAwaited?: (writers: readonly string[]) => void },
): Quota {
  const seen = new Set<string>(); // kept: by account; none is dropped.

  /** Accounts whose announced totals the store did not take: nothing that is open may tell of them. */
  const behind = new Set<string>(); // kept: by account whose totals were not taken.

  /** Accounts refused at a wall since they were last asked about, the first of them first. */
  const refused = new Set<string>(); // kept: by account at a wall.

  const touch = (accountId: string): void => {
    if (seen.size < SEEN_MAX) seen.add(accountId);
  };
  /** Writers that this process heard of itself, and when: a ledger that was restored may not know them. */
  const met = new Map<string, number>(); // kept: by writer.
  const meet = (writer: string): void => {
    if (rebuild !== undefined && writer !== '') met.set(writer, rebuild.clock.monotonicMs());
  };
  const metLately = (): readonly KnownWriter[] => {
    const nowMs = rebuild?.clock.monotonicMs() ?? 0;
    for (const [writer, atMs] of met) if (nowMs - atMs > LOST_MS) met.delete(writer);
    return [...met.keys()].map((writer) => ({ writer, isLost: false }));
  };
  /** Latest life of the store in which every writer was heard. */
  let openEpoch = '';
  /** Latest life in which writers were waited for: when they are to be told of next. */
  let awaited = { epoch: '', tellAtMs: 0 };
  const tellAwaited = (epoch: string, writers: readonly string[]): void => {
    const nowMs = rebuild?.clock.monotonicMs() ?? 0;
    if (awaited.epoch !== epoch) awaited = { epoch, tellAtMs: nowMs + AWAITED_TOLD_MS };
    if (nowMs < awaited.tellAtMs) return;
    awaited.tellAtMs = nowMs + AWAITED_TOLD_AGAIN_MS;
    rebuild?.tellAwaited?.(writers);
  };
  /** Answers the life of the store in which all that is held is known again. */
  const rebuilt = async (waiting: string): Promise<string> => {
    const present = await store.epoch();
    if (present === openEpoch || rebuild === undefined) return present;
    let missing: readonly string[];
    try {
      const writers = await rebuild.askWriters(waiting);
      missing = unheard([...writers, ...metLately().filter(({ writer }) => !writers.some((known) => known.writer === writer))], await store.heard(present));
    } catch (error) {
      throw new Fault('quota_unavailable', 'the ledger did not tell its writers', { cause: error });
    }
    if (missing.length > 0) {
      tellAwaited(present, missing);
      throw new Fault('quota_unavailable', `after a loss ${missing.length} writers were not heard yet`);
    }
    return (openEpoch = present);
  };
  const ask = async (accountId: string, requestIds: readonly string[], openedIn = '', waiting = ''): Promise<ReadonlySet<string>> => {
    // Whatever is known by now was committed: an answer below it comes from a ledger that was restored from a backup.
    const knownSeq = await store.totalsSeq(accountId);
    let totals: TotalsCommand;
    try {
      totals = { ...(await askTotals(accountId, requestIds, waiting)), knownSeq };
    } catch (error) {
      throw new Fault('quota_unavailable', 'the ledger did not tell its totals', { cause: error });
    }
    await store.applyTotals(accountId, totals, openedIn);
    return new Set(totals.requestIds);
  };
  /** Work that is done once for an account, however many wait for it: the first of them is told. */
  const once = (work: (accountId: string, waiting: string) => Promise<unknown>): ((accountId: string, waiting?: string) => Promise<void>) => {
    const running = new Map<string, Promise<void>>();
    return (accountId, waiting = '') => {
      let current = running.get(accountId);
      if (current === undefined) {
        current = work(accountId, waiting)
          .then(() => undefined)
          .finally(() => running.delete(accountId));
        running.set(accountId, current);
      }
      return current;
    };
  };
  const load = once(async (accountId, waiting) => {
    const life = await rebuilt(waiting);
    await ask(accountId, [], life, waiting);
    // Lost meanwhile: what was written down may be all there is.
    if ((await store.epoch()) !== life) throw new Fault('quota_unavailable', 'the store lost its state while loading');
  });
  const look = once((accountId) => ask(accountId, []));
  const catchUp = once(async (accountId) => ask(accountId, await store.overdue(accountId, 0, ASKED_MAX)));
  /** Requests that the store took for silent in the round before and in this one: since when, by the clock of this process. */
  let silentBefore: ReadonlyMap<string, number> = new Map();
  let silentNow = new Map<string, number>(); // kept: ids and numbers, of requests that were silent for minutes.
  /** A store whose clock is set ahead, and a host that slept, make all seem silent at once; what is silent stays so. */
  const staysSilent = (requestId: string, nowMs: number): boolean => {
    const sinceMs = silentBefore.get(requestId) ?? nowMs;
    silentNow.set(requestId, sinceMs);
    return nowMs - sinceMs >= TELL_AGAIN_MS;
  };
  /**
   * No log will tell of what a lost writer had under way, nor of what a log has lost of its end: silent, and its writer booked to its
   * newest record. The ledger books what is known of it here, and its totals then end it.
   */
  const handOver = async (accountId: string, requestIds: readonly string[], standings: () => Promise<Standings>): Promise<void> => {
    if (rebuild === undefined || requestIds.length === 0) return;
    const { lost, booked } = await standings();
    if (lost.size + booked.size === 0) return;
    const nowMs = rebuild.clock.monotonicMs();
    const byWriter = new Map<string, OpenRequest[]>();
    for (const request of await store.describeOpen(accountId, requestIds)) if (lost.has(request.writer) || (request.isSilent && booked.has(request.writer) && staysSilent(request.requestId, nowMs))) byWriter.set(request.writer, [...(byWriter.get(request.writer) ?? []), request]);
    for (const [writer, requests] of byWriter) await rebuild.bookLost(writer, accountId, requests);
    if (byWriter.size > 0) await ask(accountId, [...byWriter.values()].flat().map(({ requestId }) => requestId));
  };
  /** Asked for once. */
  const askStandings = (): (() => Promise<Standings>) => {
    let asked: Promise<Standings> | undefined;
    const ask = async (): Promise<Standings> => {
      const writers = (await rebuild?.askWriters('')) ?? [];
      const those = (is: (each: (typeof writers)[number]) => boolean | undefined): ReadonlySet<string> => new Set(writers.filter(is).map(({ writer }) => writer));
      return { lost: those(({ isLost }) => isLost), booked: those(({ isBooked }) => isBooked) };
    };
    return () => (asked ??= ask());
  };
  /** Settles what the ledger has of the requests that are open for longer than `ageMs`. */
  const settle = async (accountId: string, ageMs: number, standings: () => Promise<Standings>): Promise<number> => {
    for (let settled = 0; ; ) {
      const asked = await store.overdue(accountId, ageMs, ASKED_MAX);
      if (asked.length === 0) return settled;
      const charged = await ask(accountId, asked);
      const found = asked.filter((requestId) => charged.has(requestId)).length;
      settled += found;
      await handOver(accountId, asked.filter((requestId) => !charged.has(requestId)), standings);
      if (asked.length < ASKED_MAX || found === 0) return settled;
    }
  };

  return {
    admit: async (accountId, { command }) => {
      touch(accountId);
      let epoch = store.latestEpoch();
      let answer = await store.admit(accountId, command);
      if (answer === 'unloaded') {
        await load(accountId, command.requestId);
        epoch = store.latestEpoch();
        answer = await store.admit(accountId, command);
      }
      if (answer === 'unloaded') throw new Fault('quota_unavailable', 'the store lost its state while loading');
      if (answer === 'ended') throw new Fault('bad_message', 'this request id was used up before');
      if (answer.decision === 'wall' && refused.size < SEEN_MAX) refused.add(accountId);
      return { verdict: answer, epoch };
    },
    presentEpoch: (writer) => {
      meet(writer);
      return store.epoch();
    },
    reregister: async (writer, told, holds, finished, isLast) => {
      meet(writer);
      if (told === '' || told !== (await store.epoch())) throw new Fault('quota_unavailable', 'that life of the store is over');
      for (const { accountId } of holds) touch(accountId);
      await Promise.all([...holds.map(({ accountId, command }) => store.reregister(accountId, { ...command, writer })), ...finished.map(({ accountId, command }) => store.finish(accountId, { ...command, writer }))]);
      if (isLast) await store.hear(told, writer);
    },
    isHeld: (accountId, requestId) => store.isHeld(accountId, requestId),
    confirm: (accountId, requestId, draw) => store.confirm(accountId, requestId, draw),
    release: async (accountId, requestId, draw) => {
      if (await store.release(accountId, requestId, draw)) tellFreed(accountId);
    },
    heartbeat: (accountId, requestId, toAmount, toTokens, writer, draw) => {
      touch(accountId);
      return store.heartbeat(accountId, requestId, toAmount, toTokens, writer, draw);
    },
    finish: (accountId, command) =>
      store.finish(accountId, command).then((isFreed) => {
        if (isFreed) tellFreed(accountId);
      }),
    applyTotals: async (accountId, command) => {
      if (behind.size < SEEN_MAX) behind.add(accountId);
      if (await store.applyTotals(accountId, command, '')) await catchUp(accountId);
      behind.delete(accountId);
    },
    show: async (accountId) => {
      const view = await store.show(accountId);
      if (view.buckets.size > 0) return view;
      await look(accountId);
      return store.show(accountId);
    },
    overdue: async (accountId, ageMs) => {
      // What is held without limits is counted before the ledger was asked.
      if ((await store.totalsSeq(accountId)) === 0n) await look(accountId);
      const asked = await store.overdue(accountId, ageMs, ASKED_MAX);
      if (asked.length === 0) return [];
      // A hold has no charge yet.
      return (await store.describeOpen(accountId, asked)).filter(({ charge, tokens }) => charge > 0n || tokens > 0n).slice(0, OVERDUE_TOLD_MAX);
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
      for (const accountId of [...refused].slice(0, REFUSED_ASKED_MAX)) {
        await look(accountId);
        refused.delete(accountId);
      }
      const standings = askStandings();
      [silentBefore, silentNow] = [silentNow, new Map()];
      for (const accountId of await store.openAccounts()) settled += await settle(accountId, ageMs, standings);
      return settled;
    },
  };
}
