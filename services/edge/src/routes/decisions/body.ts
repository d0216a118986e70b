/** The API's form of a stored routing decision. */
import type { DecisionRow__Output } from '@signalbox/contracts/billing';

/** The part of routing's record that is shown. */
interface ShownRecord {
  readonly snapshotId: string;
  readonly artefactId: string | null;
  readonly request: { readonly model: string; readonly models: readonly string[]; readonly promptTokens: number; readonly mode: string; readonly costWeight?: number };
  readonly prediction: { readonly cluster: string; readonly difficulty: number; readonly familiarity: number } | null;
  readonly rejected: Readonly<Record<string, number>>;
  readonly considered: readonly { readonly model: string; readonly endpoint: string; readonly quality: number; readonly effectiveCost: number; readonly latencyMsP75: number | null; readonly successShare: number; readonly tier: number; readonly utility: number | null; readonly propensity: number }[];
  readonly floor: number | null;
  readonly reason: string | null;
  readonly attempts: readonly string[];
  readonly reference: string | null;
  readonly sentence: string;
}

export type KnownDecision = Pick<DecisionRow__Output, 'id' | 'requestId' | 'atMs' | 'recordJson'> & { readonly score?: number | undefined };

/** Expected costs are forecasts for comparing models; they are never billed. */
export function decisionBody({ id, requestId, atMs, recordJson, score }: KnownDecision): object {
  const record = JSON.parse(Buffer.from(recordJson).toString('utf8')) as ShownRecord;
  const { request, prediction } = record;
  return {
    id,
    object: 'decision',
    request_id: requestId,
    created_at: Math.floor(Number(atMs) / 1_000),
    why: record.sentence,
    asked: { model: request.model, models: request.models, prompt_tokens: request.promptTokens, mode: request.mode === '' ? null : request.mode, lambda: request.costWeight ?? null },
    snapshot_id: record.snapshotId,
    artefact_id: record.artefactId,
    cluster: prediction?.cluster ?? null,
    difficulty: prediction?.difficulty ?? null,
    familiarity: prediction?.familiarity ?? null,
    excluded: record.rejected,
    quality_floor: record.floor,
    candidates: record.considered.map((each) => ({
      model: each.model, endpoint: each.endpoint, quality: each.quality, expected_cost_usd: each.effectiveCost / 1e9, latency_ms_p75: each.latencyMsP75, p_ok: each.successShare, tier: each.tier, utility: each.utility, propensity: each.propensity,
    })),
    reason: record.reason,
    attempts: record.attempts,
    reference_model: record.reference,
    score: score ?? null,
  };
}
