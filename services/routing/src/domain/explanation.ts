/** The short form of a decision, for a client that asks to see it in its answer. */
import type { DecisionRecord } from '@signalbox/router-core/record';

/** Plain JSON without any text of the prompt. */
export function explanationOf(record: DecisionRecord): object {
  const { snapshotId, artefactId, prediction, sentence, floor, reason, considered, rejected, reference, attempts } = record;
  return {
    snapshot_id: snapshotId,
    artefact_id: artefactId,
    cluster: prediction?.cluster ?? null,
    difficulty: prediction?.difficulty ?? null,
    sentence,
    reason,
    quality_floor: floor,
    candidates: considered.map(({ model, endpoint, quality, effectiveCost, latencyMsP75, successShare, tier, utility, propensity }) => ({
      model, endpoint, quality, expected_cost_usd: effectiveCost / 1e9, latency_ms_p75: latencyMsP75, p_ok: successShare, tier, utility, propensity,
    })),
    excluded: rejected,
    reference_model: reference,
    attempts,
  };
}
