/** RPC handlers of quota: translate messages to domain calls and back. */
import type { AdmitRequest__Output, AdmitResponse, BucketState, FinishRequest__Output, HeartbeatRequest__Output, HeartbeatResponse, LiveHold__Output, ReleaseRequest__Output, ReregisterRequest__Output, Finished__Output, ShowRequest__Output, ShowResponse } from '@signalbox/contracts/quota';
import type { TotalsPublished__Output } from '@signalbox/contracts/events';
import type { BookLostRequest, WatermarksResponse__Output } from '@signalbox/contracts/billing';
import type { Draw__Output, PeriodSet__Output } from '@signalbox/contracts/common';
import type { Draw } from '@signalbox/ledger-core/advance';
import { checkAmount } from '@signalbox/ledger-core/admission';
import type { FinishCommand, OpenRequest, TotalsCommand } from '@signalbox/ledger-core/settlement';
import type { Periods } from '@signalbox/ledger-core/periods';
import type { KnownWriter, ReregisterCommand } from '@signalbox/ledger-core/rebuild';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import { readAdmission, writeVerdict } from './domain/admission-request.js';
import type { Quota } from './domain/quota.js';
import type { QuotaMetrics } from './metrics.js';

/** Most holds in one heartbeat or finish. */
const ITEMS_MAX = 10_000;

/** Translates the ledger's message for the state machine. */
export function readTotals(message: TotalsPublished__Output): TotalsCommand {
  return {
    seq: BigInt(message.ledgerSeq),
    totals: message.totals.map(({ scope, periodId, chargeNanoUsd, tokens, byokTokens }) => ({ scope, periodId, charge: BigInt(chargeNanoUsd), tokens: BigInt(tokens), byok: BigInt(byokTokens) })),
    requestIds: message.requestIds,
    previousSeq: BigInt(message.previousSeq),
  };
}

/** Translates billing's list of writers for the rebuild. */
export function readWriters({ writers }: WatermarksResponse__Output): readonly (KnownWriter & { readonly isBooked: boolean })[] {
  return writers.map(({ writer, lost, ended, lastSeq, ledgerSeq, gaps }) => ({ writer, isLost: lost, isEnded: ended, isBooked: gaps === '0' && BigInt(ledgerSeq) > 0n && BigInt(ledgerSeq) >= BigInt(lastSeq) }));
}

/** Writes what quota knows about requests of a lost writer as a message to the ledger. */
export function writeLost(writer: string, accountId: string, requests: readonly OpenRequest[]): BookLostRequest {
  return {
    writer,
    requests: requests.map(({ requestId, keyId, byok, periods, charge, tokens }) => ({
      accountId, keyId, requestId, byok, chargeNanoUsd: String(charge), tokens: String(tokens), periods,
    })),
  };
}

function readPeriods(periods: PeriodSet__Output | null): Periods | undefined {
  return periods === null || periods.day === '' ? undefined : { day: periods.day, week: periods.week, month: periods.month, plan: periods.plan, reservedAtMs: Number(periods.reservedAtMs) };
}

function readDraw(draw: Draw__Output | null): Draw | undefined {
  return draw === null || draw.advanceId === '' ? undefined : { advanceId: draw.advanceId, amount: checkAmount(BigInt(draw.amountNanoUsd)), tokens: checkAmount(BigInt(draw.tokens)) };
}

function asksNothing({ extendToNanoUsd, extendToTokens }: { readonly extendToNanoUsd: string; readonly extendToTokens: string }): boolean {
  return extendToNanoUsd === '0' && extendToTokens === '0';
}

function readFinished({ requestId, keyId, byok, chargeNanoUsd, tokens, periods, draw }: Finished__Output, writer: string): FinishCommand {
  return { requestId, keyId, byok, charge: checkAmount(BigInt(chargeNanoUsd)), tokens: checkAmount(BigInt(tokens)), periods: readPeriods(periods), writer, draw: readDraw(draw) };
}

function readLive({ requestId, keyId, byok, amountNanoUsd, tokens, periods, started, draw }: LiveHold__Output): ReregisterCommand {
  const known = readPeriods(periods);
  if (requestId === '' || known === undefined) throw new Fault('bad_message', 'a hold needs its request and periods');
  return { requestId, keyId, byok, amount: checkAmount(BigInt(amountNanoUsd)), tokens: checkAmount(BigInt(tokens)), periods: known, isStarted: started, draw: readDraw(draw) };
}

export function createHandlers(options: { readonly quota: Quota; readonly metrics: QuotaMetrics; readonly periodSeconds: number | undefined }): Handlers {
  const { quota, metrics, periodSeconds } = options;
  return {
    unary: {
      Admit: async (request: AdmitRequest__Output): Promise<AdmitResponse> => {
        const admission = readAdmission(request, periodSeconds);
        const { verdict, epoch } = await quota.admit(request.accountId, admission);
        const response = writeVerdict(admission, verdict);
        response.draws = true;
        // Without limits, nothing depends on the hold.
        if (admission.command.needsTotals) response.epoch = epoch;
        metrics.admitted(String(response.decision));
        return response;
      },
      Release: async (request: ReleaseRequest__Output): Promise<object> => {
        await quota.release(request.accountId, request.requestId, readDraw(request.draw));
        return {};
      },
      Heartbeat: async ({ writer, holds, confirm }: HeartbeatRequest__Output): Promise<HeartbeatResponse> => {
        if (holds.length > ITEMS_MAX) throw new Fault('bad_message', 'too many holds');
        // The epoch is read in the same round trip, after the holds, so that an epoch that began in between is noticed.
        if (confirm) {
          const [isHeld, epoch] = await Promise.all([Promise.all(holds.map(({ accountId, requestId, draw }) => quota.confirm(accountId, requestId, readDraw(draw)))), quota.presentEpoch(writer)]);
          return { unheldRequestIds: holds.filter((_, index) => isHeld[index] === false).map(({ requestId }) => requestId), epoch };
        }
        // Ask together: a heartbeat that asks for no growth neither creates nor ends a hold.
        const [granted, asked, epoch] = await Promise.all([
          Promise.all(holds.map((hold) => quota.heartbeat(hold.accountId, hold.requestId, checkAmount(BigInt(hold.extendToNanoUsd)), checkAmount(BigInt(hold.extendToTokens)), writer, readDraw(hold.draw)))),
          Promise.all(holds.map((hold) => (asksNothing(hold) ? quota.isHeld(hold.accountId, hold.requestId) : undefined))),
          quota.presentEpoch(writer),
        ]);
        const isKnown = holds.every((_, index) => asked[index] !== undefined || granted[index] === true);
        // A request that asked for more and got it has a hold.
        const isHeld = await Promise.all(holds.map(({ accountId, requestId }, index) => asked[index] ?? (granted[index] === true || quota.isHeld(accountId, requestId))));
        const ids = (of: readonly boolean[]): string[] => holds.filter((_, index) => of[index] === false).map(({ requestId }) => requestId);
        return { refusedRequestIds: ids(granted), unheldRequestIds: ids(isHeld), epoch: isKnown ? epoch : await quota.presentEpoch(writer) };
      },
      Finish: async ({ writer, finished }: FinishRequest__Output): Promise<object> => {
        if (finished.length > ITEMS_MAX) throw new Fault('bad_message', 'too many requests');
        await Promise.all(finished.map((item) => quota.finish(item.accountId, readFinished(item, writer))));
        return {};
      },
      Reregister: async ({ writer, epoch, live, finished, last }: ReregisterRequest__Output): Promise<object> => {
        if (writer === '' || live.length + finished.length > ITEMS_MAX) throw new Fault('bad_message', 'no writer, or too many requests');
        const holds = live.map((hold) => ({ accountId: hold.accountId, command: readLive(hold) }));
        await quota.reregister(writer, epoch, holds, finished.map((item) => ({ accountId: item.accountId, command: readFinished(item, writer) })), last);
        return {};
      },
      Show: async ({ accountId, overdueMs }: ShowRequest__Output): Promise<ShowResponse> => {
        const overdue = overdueMs === '0' ? [] : await quota.overdue(accountId, Number(overdueMs));
        const { nowMs, buckets, remaining } = await quota.show(accountId);
        const all = buckets.get('account|total');
        const states = [...buckets].map(([name, bucket]): BucketState => {
          const cut = name.indexOf('|');
          return {
            scope: name.slice(0, cut),
            periodId: name.slice(cut + 1),
            settledNanoUsd: String(bucket.charge),
            finishedNanoUsd: String(bucket.finishedCharge),
            reservedNanoUsd: String(bucket.heldCharge),
            tokens: String(bucket.tokens + bucket.finishedTokens + bucket.byok + bucket.finishedByok),
            reservedTokens: String(bucket.heldTokens + bucket.heldByok),
            byokTokens: String(bucket.byok + bucket.finishedByok),
            reservedByokTokens: String(bucket.heldByok),
          };
        });
        return {
          settledNanoUsd: String((all?.charge ?? 0n) + (all?.finishedCharge ?? 0n)),
          reservedNanoUsd: String(all?.heldCharge ?? 0n),
          ...(remaining === undefined ? {} : { remainingNanoUsd: String(remaining) }),
          buckets: states,
          ledgerSeq: String(all?.seq ?? 0n),
          atMs: String(nowMs),
          overdue: overdue.map(({ requestId, charge, isSilent }) => ({ requestId, chargeNanoUsd: String(charge), silent: isSilent })),
        };
      },
    },
  };
}
