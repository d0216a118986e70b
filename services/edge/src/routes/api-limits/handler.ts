/** GET /api/limits: which caps and allotments an account and key have, and how much of each is spent and reserved (docs/caps.md). */
import type { CostCap, ShowRequest, ShowResponse__Output } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { periodEndMs } from '@signalbox/ledger-core/periods';
import type { RpcClient } from '@signalbox/rpc/call';
import { countedAt, kindOf, spentOf, toBigint } from '../../domain/counted.js';
import { limitsOf } from '../../domain/limits.js';
import type { Caller } from '../../domain/ports.js';
import { exactJson, usd } from '../api-auth/exact-json.js';

const DEADLINE_MS = 2_000;

/** The smaller of two limits, since both apply; null = neither exists. */
const tighter = (one: number | undefined, other: number | undefined): number | null => (one === undefined ? (other ?? null) : Math.min(one, other ?? one));

const seconds = (ms: number | undefined): number | null => (ms === undefined ? null : Math.floor(ms / 1_000));

/** JSON text of the answer. `periodSeconds`: length of plan and month periods, for tests; undefined = calendar months. Throws a Fault `quota_unavailable`. */
export async function answerLimits(quota: RpcClient, clock: Clock, periodSeconds: number | undefined, caller: Caller): Promise<string> {
  const { account, key } = caller;
  const limits = limitsOf(caller);
  let shown: ShowResponse__Output;
  try {
    shown = await quota.unary<ShowRequest, ShowResponse__Output>('Show', { accountId: account.id }, { deadlineMs: DEADLINE_MS });
  } catch (error) {
    throw new Fault('quota_unavailable', 'limits could not be read', { cause: error });
  }
  // The clock of quota, which counts, decides which period it is.
  const nowMs = Number(shown.atMs) || clock.nowMs();
  const rules = { anchorDay: limits.billingAnchorDay ?? 0, periodSeconds };
  const counted = countedAt(shown, nowMs, rules);

  const capBody = (cap: CostCap): object => {
    const kind = kindOf(cap.period);
    const found = counted(cap.scope ?? 'account', kind);
    return {
      scope: cap.scope === 'account' ? 'account' : 'key',
      key_id: cap.scope === 'account' ? null : key.id,
      period: kind,
      limit_usd: usd(toBigint(cap.capNanoUsd)),
      spent_usd: usd(spentOf(found)),
      reserved_usd: usd(toBigint(found?.reservedNanoUsd)),
      resets_at: seconds(periodEndMs(kind, nowMs, rules)),
    };
  };

  const plan = counted('account', 'plan');
  const all = counted('account', 'total');
  return exactJson({
    object: 'limits',
    requests_per_minute: tighter(limits.requestsPerMinute, limits.keyRequestsPerMinute),
    burst_per_second: limits.burstPerSecond ?? null,
    caps: (limits.caps ?? []).map(capBody),
    tokens:
      limits.includedTokens === undefined
        ? null
        : { included: Number(limits.includedTokens), used: Number(plan?.tokens ?? 0), reserved: Number(plan?.reservedTokens ?? 0), hard_cap: limits.hardCap === true, resets_at: seconds(periodEndMs('plan', nowMs, rules)) },
    // These tokens also count towards `tokens` above.
    byok_tokens: limits.byokTokens === undefined ? null : { included: Number(limits.byokTokens), used: Number(plan?.byokTokens ?? 0), reserved: Number(plan?.reservedByokTokens ?? 0), resets_at: seconds(periodEndMs('plan', nowMs, rules)) },
    trial_credit: limits.trialCreditNanoUsd === undefined ? null : { limit_usd: usd(toBigint(limits.trialCreditNanoUsd)), spent_usd: usd(spentOf(all)), reserved_usd: usd(toBigint(all?.reservedNanoUsd)) },
    spent_usd: usd(toBigint(shown.settledNanoUsd)),
    reserved_usd: usd(toBigint(shown.reservedNanoUsd)),
  });
}
