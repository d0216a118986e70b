/** Decides admissions with the store's figures, and asks the ledger first if the store has none yet. */
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
  /** Epoch of the store in which it was decided. */
  readonly epoch: string;
}

export interface Quota {
  /** Throws a Fault `quota_unavailable` if the store or the ledger cannot answer, or if not every writer has reported since the store lost its state; `bad_message` for the id of a request that has ended. */
  admit(accountId: string, admission: Admission): Promise<Admitted>;
  /** True if the request has a hold, whose lease is renewed. A hold that no worker has reported yet may still expire with it. */
  confirm(accountId: string, requestId: string, draw?: Draw): Promise<boolean>;
  /** True if the request has a hold. */
  isHeld(accountId: string, requestId: string): Promise<boolean>;
  /** Reads the current epoch of the store; `writer` is noted as alive. */
  presentEpoch(writer: string): Promise<string>;
  /** Restores what a writer reports as running or finished; with its last message the writer counts as heard. Throws a Fault `quota_unavailable` if `epoch` is over. */
  reregister(writer: string, epoch: string, holds: readonly { readonly accountId: string; readonly command: ReregisterCommand }[], finished: readonly { readonly accountId: string; readonly command: FinishCommand }[], isLast: boolean): Promise<void>;
  /** `draw`, here and in the others: set if the request was served from an advance. */
  release(accountId: string, requestId: string, draw?: Draw): Promise<void>;
  heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint, writer: string, draw?: Draw): Promise<boolean>;
  finish(accountId: string, command: FinishCommand): Promise<void>;
  /** If earlier totals were missed, asks the ledger for all. Throws a Fault `quota_unavailable` if that fails; the next totals then trigger it again. */
  applyTotals(accountId: string, command: TotalsCommand): Promise<void>;
  show(accountId: string): Promise<AccountView>;
  /** Requests with a charge or tokens that finished more than `ageMs` ago and that the ledger has not settled; at most 100. Loads the account's totals if they are not known. */
  overdue(accountId: string, ageMs: number): Promise<readonly OpenRequest[]>;
  /** Ends expired leases of the accounts that this process has seen; returns how many. Lets some accounts forget old periods, in `ROUNDS_FOR_ALL` calls each account once. A Fault of the store ends it early. */
  sweep(): Promise<number>;
  /**
   * Asks the ledger about requests of any account that are open for longer than `ageMs`, since announcements of totals may be lost. Requests that the
   * ledger does not have are handed to it for booking, if their writer is lost or nobody has reported them for 45 minutes. Also asks about accounts that
   * were refused at a wall: the announcement that lowered their sums may have been lost, and nothing more is booked for them that would announce it
   * again. Returns how many requests were settled. Faults end it early.
   */
  reconcile(ageMs: number): Promise<number>;
}

/** Most accounts remembered for the sweep; each admission also sweeps its own account. */
const SEEN_MAX = 100_000;
/** A sweep looks at every account with leases, and at one in so many of the others: at one sweep in 5 s, each account has its turn once an hour. */
export const ROUNDS_FOR_ALL = 720;
/** Most accounts at a wall that are asked about in one round. */
const REFUSED_ASKED_MAX = 1_000;
/** Most requests in one question to the ledger. */
const ASKED_MAX = 1_000;
/** Most requests in a list for operators. */
const OVERDUE_TOLD_MAX = 100;
/** After 15 min of silence, admissions no longer wait for a writer. */
const LOST_MS = 900_000;
/** 60 s: by then every living writer has reported its running requests again, and the ledger has booked what its log contains. */
const TELL_AGAIN_MS = 60_000;
/** How long accounts wait for writers before the operator is told, then once a minute. Living writers report within seconds. */
const AWAITED_TOLD_MS = 10_000;
const AWAITED_TOLD_AGAIN_MS = 60_000;
/** Writers, by what the ledger knows about them. */
interface Standings {
  readonly lost: ReadonlySet<string>;
  readonly booked: ReadonlySet<string>;
}

/**
 * `tellFreed` is called when an account has room again for which a request may be waiting. Without `rebuild`, all running requests are known to
 * the store at any time. `rebuild.tellAwaited` gets the writers that have not reported since a loss, while accounts with limits wait for them.
 */
export function createQuota(
  store: QuotaStore,
  askTotals: AskTotals,
  tellFreed: (accountId: string) => void = () => undefined,
  rebuild?: { readonly askWriters: AskWriters; readonly bookLost: BookLost; readonly clock: Pick<Clock, 'monotonicMs'>; readonly tellAwaited?: (writers: readonly string[]) => void },
): Quota {
  const seen = new Set<string>(); // kept: by account; none is dropped.

  /** Accounts whose announced totals the store may not have taken: no open request need exist that would lead `reconcile` to them. */
  const behind = new Set<string>(); // kept: by account whose totals were not taken.

  /** Accounts refused at a wall since they were last asked about, oldest first. */
  const refused = new Set<string>(); // kept: by account at a wall.

  /** Accounts that may have a lease which ends. */
  const leased = new Set<string>(); // kept: by account, until the store says that no lease of it can end.

  /** To be called right before a step that may begin a lease. */
  const touch = (accountId: string): void => {
    if (seen.size < SEEN_MAX) seen.add(accountId);
    if (leased.size < SEEN_MAX) leased.add(accountId);
  };
  let others = seen.values();
  /** The next of all accounts, as many as a sweep looks at. */
  const nextOthers = (): readonly string[] => {
    const found: string[] = [];
    for (let wanted = Math.ceil(seen.size / ROUNDS_FOR_ALL); wanted > 0; wanted -= 1) {
      const next = others.next();
      if (next.done === true) {
        others = seen.values();
        break;
      }
      found.push(next.value);
    }
    return found;
  };
  /** Writers that this process has heard from, and when: a restored ledger may not know them. */
  const met = new Map<string, number>(); // kept: by writer.
  const meet = (writer: string): void => {
    if (rebuild !== undefined && writer !== '') met.set(writer, rebuild.clock.monotonicMs());
  };
  const metLately = (): readonly KnownWriter[] => {
    const nowMs = rebuild?.clock.monotonicMs() ?? 0;
    for (const [writer, atMs] of met) if (nowMs - atMs > LOST_MS) met.delete(writer);
    return [...met.keys()].map((writer) => ({ writer, isLost: false }));
  };
  /** Latest epoch of the store in which every writer was heard. */
  let openEpoch = '';
  /** Latest epoch in which writers were waited for, and when to tell of them next. */
  let awaited = { epoch: '', tellAtMs: 0 };
  const tellAwaited = (epoch: string, writers: readonly string[]): void => {
    const nowMs = rebuild?.clock.monotonicMs() ?? 0;
    if (awaited.epoch !== epoch) awaited = { epoch, tellAtMs: nowMs + AWAITED_TOLD_MS };
    if (nowMs < awaited.tellAtMs) return;
    awaited.tellAtMs = nowMs + AWAITED_TOLD_AGAIN_MS;
    rebuild?.tellAwaited?.(writers);
  };
  /** Returns the current epoch if all holds are known in it; else throws. */
  const rebuilt = async (waiting: string): Promise<string> => {
    const present = await store.epoch();
    if (present === openEpoch || rebuild === undefined) return present;
    let missing: readonly string[];
    try {
      const writers = await rebuild.askWriters(waiting);
      missing = unheard([...writers, ...metLately().filter(({ writer }) => !writers.some((known) => known.writer === writer))], await store.heard(present));
    } catch (error) {
      throw new Fault('quota_unavailable', 'the ledger did not return its writers', { cause: error });
    }
    if (missing.length > 0) {
      tellAwaited(present, missing);
      throw new Fault('quota_unavailable', `${missing.length} writers have not reported since the store lost its state`);
    }
    return (openEpoch = present);
  };
  const ask = async (accountId: string, requestIds: readonly string[], openedIn = '', waiting = ''): Promise<ReadonlySet<string>> => {
    // What we know by now was committed, so an answer with a lower sequence comes from a ledger restored from a backup.
    const knownSeq = await store.totalsSeq(accountId);
    let totals: TotalsCommand;
    try {
      totals = { ...(await askTotals(accountId, requestIds, waiting)), knownSeq };
    } catch (error) {
      throw new Fault('quota_unavailable', 'the ledger did not return its totals', { cause: error });
    }
    await store.applyTotals(accountId, totals, openedIn);
    return new Set(totals.requestIds);
  };
  /** Runs `work` once per account at a time, however many callers wait for it; `waiting` is the request of the first caller. */
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
    // If the store lost its state meanwhile, it may hold nothing but these totals.
    if ((await store.epoch()) !== life) throw new Fault('quota_unavailable', 'the store lost its state while loading');
  });
  const look = once((accountId) => ask(accountId, []));
  const catchUp = once(async (accountId) => ask(accountId, await store.overdue(accountId, 0, ASKED_MAX)));
  /** Requests that the store called silent in the previous round, and in this one: since when, in monotonic milliseconds of this process. */
  let silentBefore: ReadonlyMap<string, number> = new Map();
  let silentNow = new Map<string, number>(); // kept: ids and numbers, of requests that were silent for minutes.
  /** False until a request has been silent for `TELL_AGAIN_MS` by our own clock: if the store's clock jumps ahead, or its host slept, all requests seem silent for a moment. */
  const staysSilent = (requestId: string, nowMs: number): boolean => {
    const sinceMs = silentBefore.get(requestId) ?? nowMs;
    silentNow.set(requestId, sinceMs);
    return nowMs - sinceMs >= TELL_AGAIN_MS;
  };
  /**
   * Hands requests that no log will ever report to the ledger: those of lost writers, and silent ones that are missing from a log although the
   * ledger has booked it to its newest record (the log lost its end). The ledger books what quota knows of them, and its totals then end them here.
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
  /** Asks the ledger at the first use only. */
  const askStandings = (): (() => Promise<Standings>) => {
    let asked: Promise<Standings> | undefined;
    const ask = async (): Promise<Standings> => {
      const writers = (await rebuild?.askWriters('')) ?? [];
      const those = (is: (each: (typeof writers)[number]) => boolean | undefined): ReadonlySet<string> => new Set(writers.filter(is).map(({ writer }) => writer));
      return { lost: those(({ isLost }) => isLost), booked: those(({ isBooked }) => isBooked) };
    };
    return () => (asked ??= ask());
  };
  /** Settles the requests that are open for longer than `ageMs` and that the ledger has. */
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
        touch(accountId);
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
      if (told === '' || told !== (await store.epoch())) throw new Fault('quota_unavailable', 'the store has lost its state since that epoch');
      for (const { accountId } of holds) touch(accountId);
      await Promise.all([...holds.map(({ accountId, command }) => store.reregister(accountId, { ...command, writer })), ...finished.map(({ accountId, command }) => store.finish(accountId, { ...command, writer }))]);
      if (isLast) await store.hear(told, writer);
    },
    isHeld: (accountId, requestId) => store.isHeld(accountId, requestId),
    confirm: (accountId, requestId, draw) => {
      touch(accountId);
      return store.confirm(accountId, requestId, draw);
    },
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
      // Requests without limits are counted even before the totals were loaded.
      if ((await store.totalsSeq(accountId)) === 0n) await look(accountId);
      const asked = await store.overdue(accountId, ageMs, ASKED_MAX);
      if (asked.length === 0) return [];
      // A hold has no charge yet.
      return (await store.describeOpen(accountId, asked)).filter(({ charge, tokens }) => charge > 0n || tokens > 0n).slice(0, OVERDUE_TOLD_MAX);
    },
    sweep: async () => {
      let ended = 0;
      for (const accountId of new Set([...leased, ...nextOthers()])) {
        // Before the store is asked: a lease that begins meanwhile puts the account back.
        leased.delete(accountId);
        try {
          const swept = await store.sweep(accountId);
          ended += swept.ended;
          if (swept.hasLeases) leased.add(accountId);
        } catch (error) {
          leased.add(accountId);
          throw error;
        }
      }
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
