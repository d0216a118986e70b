/** The door for calls: message in, ledger call, message out. */
import type { LedgerRequest__Output, LedgerResponse, RegisterRequest__Output, RegisterResponse, TotalsRequest__Output, WatermarkRequest__Output, WatermarkResponse, WatermarksResponse } from '@signalbox/contracts/billing';
import type { TotalsPublished } from '@signalbox/contracts/events';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import { totalsMessage } from './consumer.js';
import type { LedgerStore } from './domain/ports.js';

const LEDGER_LIMIT_DEFAULT = 100;
const LEDGER_LIMIT_MAX = 1_000;
/** 15 min without a word: nobody waits for this writer any more (BILLING, section 6). Each tells its watermark every 15 s. */
const LOST_MS = 900_000;
/** Requests in one question for totals. */
const ASKED_MAX = 10_000;

/** `books`: handlers of the door for reports, where there is one. */
export function createHandlers({ store, clock, books = {} }: { readonly store: LedgerStore; readonly clock: Clock; readonly books?: Handlers['unary'] }): Handlers {
  const known = (writer: string): string => {
    if (writer === '' || writer.length > 64) throw new Fault('bad_message', 'A writer needs an id.');
    return writer;
  };
  return {
    unary: {
      ...books,
      Register: async (request: RegisterRequest__Output): Promise<RegisterResponse> => ({
        ledgerSeq: String(await store.register(known(request.writer), request.provider, BigInt(request.lastSeq), clock.nowMs())),
      }),
      // A ledger restored from before the registration learns the writer here again.
      Watermark: async (request: WatermarkRequest__Output): Promise<WatermarkResponse> => ({
        ledgerSeq: String(await store.register(known(request.writer), '', BigInt(request.lastSeq), clock.nowMs(), Number(request.openSinceMs))),
      }),
      Watermarks: async (): Promise<WatermarksResponse> => ({
        writers: (await store.watermarks()).map(({ writer, provider, lastSeq, ledgerSeq, gaps, seenAtMs }) => ({ lost: clock.nowMs() - seenAtMs > LOST_MS, writer, provider, lastSeq: String(lastSeq), ledgerSeq: String(ledgerSeq), gaps: String(gaps) })),
      }),
      Totals: async ({ accountId, requestIds }: TotalsRequest__Output): Promise<TotalsPublished> => {
        if (requestIds.length > ASKED_MAX) throw new Fault('bad_message', 'Too many requests are asked about.');
        return totalsMessage(await store.totals(accountId, requestIds, clock.nowMs()));
      },
      Ledger: async (request: LedgerRequest__Output): Promise<LedgerResponse> => {
        const limit = Math.min(request.limit === 0 ? LEDGER_LIMIT_DEFAULT : request.limit, LEDGER_LIMIT_MAX);
        const rows = await store.ledger({ accountId: request.accountId, fromMs: BigInt(request.fromMs), toMs: BigInt(request.toMs), after: BigInt(request.after), limit });
        const last = rows.at(-1);
        return {
          rows: rows.map((row) => ({ ...row, seq: String(row.seq), amountNanoUsd: String(row.amountNanoUsd), atMs: String(row.atMs), flags: [...row.flags] })),
          ...(rows.length === limit && last !== undefined ? { next: String(last.seq) } : {}),
        };
      },
    },
  };
}
