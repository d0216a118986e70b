/** What is booked for requests whose worker's log is lost: only what quota was told about them. */
import { STAND_IN_ATTEMPT } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import type { NanoUsd } from '@signalbox/kernel/money';
import type { CheckedAttempt, CheckedOutcome } from './check.js';
import { NO_USAGE, type AttemptUsage } from './usage.js';

/** A request that was dispatched to a worker whose log was lost. */
export interface LostRequest {
  readonly accountId: string;
  readonly keyId: string;
  readonly requestId: string;
  /** The charge that the worker told quota before it was lost, ≥ 0. 0 if it told none, since then nothing is known to have been delivered. */
  readonly chargeNanoUsd: NanoUsd;
  /** Tokens, known in the same way as the charge. */
  readonly tokens: number;
  readonly byok: boolean;
  readonly periods: ChargePeriods;
}

/** Distinguishes these rows from those of orphans whose log was read. */
const WRITER_LOST_FLAG = 'writer_lost';
/** Only the log had the model and the price card. */
const UNKNOWN_USAGE: AttemptUsage = { ...NO_USAGE, model: 'unknown' };

/** The attempt and outcome that replace what the log would have contained. `provider` is the writer's. */
export function standInFor(lost: LostRequest, provider: string, nowMs: number): { readonly attempt: CheckedAttempt; readonly outcome: CheckedOutcome } {
  const { accountId, keyId, requestId, chargeNanoUsd, tokens, byok, periods } = lost;
  const { day, week, plan } = periods;
  return {
    attempt: {
      requestId, accountId, keyId, fact: { attempt: STAND_IN_ATTEMPT, retryOf: [], costNanoUsd: chargeNanoUsd, tokens, byok }, source: 'orphan', provider, flags: ['orphan', WRITER_LOST_FLAG], cardId: '', periods, endedAtMs: BigInt(nowMs),
      usage: UNKNOWN_USAGE, detail: JSON.stringify({ model: UNKNOWN_USAGE.model, byok: byok || undefined, delivered_unknown: true, day, week, plan }),
    },
    outcome: { requestId, accountId, fact: { attempt: STAND_IN_ATTEMPT, outcome: 'DELIVERED', toldByEdge: false } },
  };
}
