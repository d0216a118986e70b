/** The doors of quota: message in, domain call, message out. */
import type { AdmitRequest__Output, AdmitResponse, BucketState, FinishRequest__Output, HeartbeatRequest__Output, HeartbeatResponse, ReleaseRequest__Output, ShowRequest__Output, ShowResponse } from '@signalbox/contracts/quota';
import type { TotalsPublished__Output } from '@signalbox/contracts/events';
import { checkAmount, type TotalsCommand } from '@signalbox/ledger-core/admission';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import { readAdmission, writeVerdict } from './domain/admission-request.js';
import type { Quota } from './domain/quota.js';
import type { QuotaMetrics } from './metrics.js';

/** Bound on holds in one heartbeat or finish. */
const ITEMS_MAX = 10_000;

/** The ledger's message as the state machine takes it. */
export function readTotals(message: TotalsPublished__Output): TotalsCommand {
  return {
    seq: BigInt(message.ledgerSeq),
    totals: message.totals.map(({ scope, periodId, chargeNanoUsd, tokens, byokTokens }) => ({ scope, periodId, charge: BigInt(chargeNanoUsd), tokens: BigInt(tokens), byok: BigInt(byokTokens) })),
    requestIds: message.requestIds,
    previousSeq: BigInt(message.previousSeq),
  };
}

export function createHandlers(options: { readonly quota: Quota; readonly metrics: QuotaMetrics; readonly periodSeconds: number | undefined }): Handlers {
  const { quota, metrics, periodSeconds } = options;
  return {
    unary: {
      Admit: async (request: AdmitRequest__Output): Promise<AdmitResponse> => {
        const admission = readAdmission(request, periodSeconds);
        const response = writeVerdict(admission, await quota.admit(request.accountId, admission));
        metrics.admitted(String(response.decision).toLowerCase());
        return response;
      },
      Release: async (request: ReleaseRequest__Output): Promise<object> => {
        await quota.release(request.accountId, request.requestId);
        return {};
      },
      Heartbeat: async ({ holds }: HeartbeatRequest__Output): Promise<HeartbeatResponse> => {
        if (holds.length > ITEMS_MAX) throw new Fault('bad_message', 'too many holds');
        const granted = await Promise.all(holds.map((hold) => quota.heartbeat(hold.accountId, hold.requestId, checkAmount(BigInt(hold.extendToNanoUsd)), checkAmount(BigInt(hold.extendToTokens)))));
        return { refusedRequestIds: holds.filter((_, index) => granted[index] === false).map((hold) => hold.requestId) };
      },
      Finish: async ({ finished }: FinishRequest__Output): Promise<object> => {
        if (finished.length > ITEMS_MAX) throw new Fault('bad_message', 'too many requests');
        await Promise.all(
          finished.map((item) => {
            const { periods } = item;
            return quota.finish(item.accountId, {
              requestId: item.requestId,
              charge: checkAmount(BigInt(item.chargeNanoUsd)),
              tokens: checkAmount(BigInt(item.tokens)),
              byok: item.byok,
              keyId: item.keyId,
              periods: periods === null || periods.day === '' ? undefined : { day: periods.day, week: periods.week, month: periods.month, plan: periods.plan, reservedAtMs: Number(periods.reservedAtMs) },
            });
          }),
        );
        return {};
      },
      Show: async ({ accountId }: ShowRequest__Output): Promise<ShowResponse> => {
        const { buckets, remaining } = await quota.show(accountId);
        const all = buckets.get('account|total');
        const states = [...buckets].map(([name, bucket]): BucketState => {
          const cut = name.indexOf('|');
          return {
            scope: name.slice(0, cut),
            periodId: name.slice(cut + 1),
            settledNanoUsd: String(bucket.charge),
            finishedNanoUsd: String(bucket.finishedCharge),
            reservedNanoUsd: String(bucket.heldCharge),
            tokens: String(bucket.tokens + bucket.finishedTokens),
            reservedTokens: String(bucket.heldTokens),
          };
        });
        return {
          settledNanoUsd: String((all?.charge ?? 0n) + (all?.finishedCharge ?? 0n)),
          reservedNanoUsd: String(all?.heldCharge ?? 0n),
          ...(remaining === undefined ? {} : { remainingNanoUsd: String(remaining) }),
          buckets: states,
          ledgerSeq: String(all?.seq ?? 0n),
        };
      },
    },
  };
}
