/** RPC handlers for writers, quota and operators. */
import type { BookLostRequest__Output, DeclareLostRequest__Output, DeclareLostResponse, DeregisterRequest__Output, DeregisterResponse, LostRequest__Output, LedgerRequest__Output, LedgerResponse, RegisterRequest__Output, RegisterResponse, TotalsRequest__Output, WatermarkRequest__Output, WatermarkResponse, WatermarksResponse } from '@signalbox/contracts/billing';
import type { TotalsPublished } from '@signalbox/contracts/events';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { asNanoUsd, CAP_NANO_USD_MAX } from '@signalbox/kernel/money';
import type { CallInfo, Handlers } from '@signalbox/rpc/call';
import { announceTotals, NO_RANGE, totalsMessage } from './consumer.js';
import type { Hearing } from './domain/hearing.js';
import { standInFor, type LostRequest } from './domain/lost-writer.js';
import type { LedgerNow, LedgerStore, WriterMarkRow } from './domain/ports.js';

const LEDGER_LIMIT_DEFAULT = 100;
const LEDGER_LIMIT_MAX = 1_000;
/** A writer counts as lost after 15 min without a report. Writers report every 15 s. */
const LOST_MS = 900_000;
/** 10^10 tokens: the most that one request may have used of its plan. */
const LOST_TOKENS_MAX = 10_000_000_000;
/** Most requests in one call for totals. */
const ASKED_MAX = 10_000;

/** 60 s: a writer that reported within that time is alive, since each reports every 15 s. */
const ALIVE_MS = 60_000;
const NOTE_LENGTH_MAX = 200;

export interface LedgerDoorOptions {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly ledgerNow: LedgerNow;
  readonly hearing: Pick<Hearing, 'until'>;
  /** Further handlers, for reports. */
  readonly books?: Handlers['unary'];
  /** Delivered at most once, as in the consumer. */
  readonly announce: (subject: string, payload: Uint8Array) => void;
}

function readLost({ accountId, keyId, requestId, byok, chargeNanoUsd, tokens, periods }: LostRequest__Output): LostRequest {
  const [charge, count] = [BigInt(chargeNanoUsd), Number(tokens)];
  const isSound = requestId !== '' && accountId !== '' && periods !== null && periods.month !== '' && charge >= 0n && charge <= CAP_NANO_USD_MAX && count >= 0 && count <= LOST_TOKENS_MAX;
  if (!isSound) throw new Fault('bad_message', 'a lost request needs its account and periods, and figures within bounds');
  const { day, week, month, plan } = periods;
  return { accountId, keyId, requestId, byok, chargeNanoUsd: asNanoUsd(charge), tokens: count, periods: { day, week, month, plan } };
}

/** The ledger has everything that the writer reported, so what it lacks was lost with the log. */
const isBooked = ({ lastSeq, ledgerSeq, gaps }: WriterMarkRow): boolean => gaps === 0n && ledgerSeq > 0n && ledgerSeq >= lastSeq;

export function createHandlers({ store, clock, ledgerNow, hearing, books = {}, announce }: LedgerDoorOptions): Handlers {
  const known = (writer: string): string => {
    if (writer === '' || writer.length > 64) throw new Fault('bad_message', 'A writer needs an id.');
    return writer;
  };
  /** Writers that reported to this process: when, monotonic, and by the ledger's clock. A ledger that was restored from a backup may not know them, or not know that they are back. */
  const met = new Map<string, { readonly atMs: number; seenAtMs: number }>();
  /** Notes a report of a writer, which also shows that the ledger can receive reports. Returns its time by the ledger's clock. */
  const heard = async (writer: string): Promise<number> => {
    const meeting = { atMs: clock.monotonicMs(), seenAtMs: met.get(known(writer))?.seenAtMs ?? 0 };
    met.set(writer, meeting);
    const nowMs = (meeting.seenAtMs = await ledgerNow());
    hearing.until(nowMs);
    return nowMs;
  };
  const metBeside = (rows: readonly WriterMarkRow[]): readonly string[] => {
    const written = new Set(rows.map(({ writer }) => writer));
    for (const [writer, { atMs }] of met) if (clock.monotonicMs() - atMs > LOST_MS) met.delete(writer);
    return [...met.keys()].filter((writer) => !written.has(writer));
  };
  const hasEnded = ({ writer, isEnded, seenAtMs }: WriterMarkRow): boolean => isEnded && (met.get(writer)?.seenAtMs ?? 0) <= seenAtMs;
  return {
    unary: {
      ...books,
      Register: async (request: RegisterRequest__Output): Promise<RegisterResponse> => ({
        ledgerSeq: String((await store.register(request.writer, request.provider, BigInt(request.lastSeq), await heard(request.writer))).ledgerSeq),
      }),
      // A ledger that was restored from a backup older than the registration learns of the writer here.
      Watermark: async (request: WatermarkRequest__Output): Promise<WatermarkResponse> => {
        const { ledgerSeq, reportId } = await store.register(request.writer, '', BigInt(request.lastSeq), await heard(request.writer), Number(request.openSinceMs), request.owedSeq === undefined ? undefined : BigInt(request.owedSeq));
        return { ledgerSeq: String(ledgerSeq), reportId };
      },
      Deregister: async ({ writer, lastSeq, reportId }: DeregisterRequest__Output): Promise<DeregisterResponse> => ({ ended: await store.deregister(known(writer), BigInt(lastSeq), reportId) }),
      Watermarks: async (): Promise<WatermarksResponse> => {
        const rows = await store.watermarks();
        const heardMs = hearing.until(await ledgerNow());
        const told = rows.map((row) => ({
          lost: row.isDeclaredLost || heardMs - row.seenAtMs > LOST_MS, ended: hasEnded(row), writer: row.writer, provider: row.provider, lastSeq: String(row.lastSeq), ledgerSeq: String(row.ledgerSeq), gaps: String(row.gaps),
        }));
        return { writers: [...told, ...metBeside(rows).map((writer) => ({ writer }))] };
      },
      DeclareLost: async ({ writer, note }: DeclareLostRequest__Output): Promise<DeclareLostResponse> => {
        if (note === '' || note.length > NOTE_LENGTH_MAX) return { found: true, problem: `A note must have 1 to ${NOTE_LENGTH_MAX} characters.` };
        const nowMs = await ledgerNow();
        const found = await store.declareLost(known(writer), note, nowMs, nowMs - ALIVE_MS);
        if (found === 'unknown') return { found: false };
        return { found: true, problem: found === 'alive' ? 'That writer was heard of within the last minute: it is not lost.' : '' };
      },
      BookLost: async ({ writer, requests }: BookLostRequest__Output): Promise<object> => {
        if (requests.length > ASKED_MAX) throw new Fault('bad_message', 'Too many requests at once.');
        const mark = (await store.watermarks()).find((each) => each.writer === writer);
        const nowMs = await ledgerNow();
        if (mark === undefined || !(mark.isDeclaredLost || hearing.until(nowMs) - mark.seenAtMs > LOST_MS || isBooked(mark))) throw new Fault('bad_message', 'That writer is not lost, and more of its log is to come.');
        const facts = requests.map((request) => standInFor(readLost(request), mark.provider, nowMs));
        const { accounts } = await store.commit([{ writer, range: NO_RANGE, attempts: facts.map(({ attempt }) => attempt), outcomes: facts.map(({ outcome }) => outcome) }], [], nowMs);
        announceTotals(accounts, announce);
        return {};
      },
      Totals: async ({ accountId, requestIds }: TotalsRequest__Output): Promise<TotalsPublished> => {
        if (requestIds.length > ASKED_MAX) throw new Fault('bad_message', 'Too many requests at once.');
        return totalsMessage(await store.totals(accountId, requestIds, await ledgerNow()));
      },
      Ledger: async (request: LedgerRequest__Output, { signal }: CallInfo): Promise<LedgerResponse> => {
        const limit = Math.min(request.limit === 0 ? LEDGER_LIMIT_DEFAULT : request.limit, LEDGER_LIMIT_MAX);
        const rows = await store.ledger({ accountId: request.accountId, fromMs: BigInt(request.fromMs), toMs: BigInt(request.toMs), after: BigInt(request.after), limit, signal });
        const last = rows.at(-1);
        return {
          rows: rows.map((row) => ({ ...row, seq: String(row.seq), amountNanoUsd: String(row.amountNanoUsd), tokens: String(row.tokens), byokTokens: String(row.byokTokens), atMs: String(row.atMs), flags: [...row.flags] })),
          ...(rows.length === limit && last !== undefined ? { next: String(last.seq) } : {}),
        };
      },
    },
  };
}
