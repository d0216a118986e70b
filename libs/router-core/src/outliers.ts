/**
 * Outliers: endpoints that fail far more often, or are far slower, than other endpoints of the same model. They are ejected
 * for 30 s times the number of ejections in a row, never more than half of a model's, and return by themselves (docs/adr/0023).
 */

/** Fewest calls, or samples of a time, for a verdict about an endpoint. */
const SAMPLES_MIN = 20;
/** 95 % bounds of a normal distribution. */
const Z = 1.96;
/** Smallest gap between the lower bound of an endpoint's failure share and the upper bound of its peers'. */
const FAILURE_GAP_MIN = 0.1;
const LATENCY_RATIO_MIN = 3;
const LATENCY_GAP_MS_MIN = 1_000;
const EJECTION_MS = 30_000;
/** Longest ejection is five minutes, since statistics do not reach back further. */
const TIMES_MAX = 10;
const EJECTED_SHARE_MAX = 0.5;

export type OutlierReason = 'failures' | 'latency';

export interface Quantile {
  readonly samples: number;
  /** Undefined without samples. */
  readonly value: number | undefined;
}

/** Statistics of one endpoint since its last ejection ended. */
export interface EndpointEvidence {
  readonly endpointId: string;
  readonly calls: number;
  readonly failures: number;
  /** P75 of milliseconds to the first token of a stream. */
  readonly firstTokenMsP75: Quantile;
  /** P75 of milliseconds to the end of an answer that was not streamed. */
  readonly totalMsP75: Quantile;
  /** P50 of tokens per second. */
  readonly throughputTpsP50: Quantile;
}

export interface Outlier {
  readonly endpointId: string;
  readonly reason: OutlierReason;
}

interface Judged extends Outlier {
  /** How far it is from its peers; comparable within a reason. */
  readonly distance: number;
}

/** Wilson interval of the true failure share, valid for small numbers of calls. */
export function failureShareBounds(failures: number, calls: number): readonly [low: number, high: number] {
  const share = failures / calls;
  const centre = share + (Z * Z) / (2 * calls);
  const half = Z * Math.sqrt((share * (1 - share)) / calls + (Z * Z) / (4 * calls * calls));
  const scale = 1 + (Z * Z) / calls;
  return [Math.max(0, (centre - half) / scale), Math.min(1, (centre + half) / scale)];
}

/** The lower median: of two values the smaller, so that a second bad endpoint among three does not hide the first. */
function lowerMedian(values: readonly number[]): number | undefined {
  return [...values].sort((left, right) => left - right)[Math.floor((values.length - 1) / 2)];
}

function knownValue({ samples, value }: Quantile): number | undefined {
  return samples >= SAMPLES_MIN ? value : undefined;
}

function failureGap(own: EndpointEvidence, peers: readonly EndpointEvidence[]): number | undefined {
  const usual = lowerMedian(peers.flatMap(({ calls, failures }) => (calls >= SAMPLES_MIN ? [failureShareBounds(failures, calls)[1]] : [])));
  return own.calls < SAMPLES_MIN || usual === undefined ? undefined : failureShareBounds(own.failures, own.calls)[0] - usual;
}

/** The endpoint's value divided by its peers' median; undefined if one is unknown, or if they differ by less than `gapMin`. */
function ratioOf(own: EndpointEvidence, peers: readonly EndpointEvidence[], pick: (evidence: EndpointEvidence) => Quantile, gapMin: number): number | undefined {
  const value = knownValue(pick(own));
  const usual = lowerMedian(peers.flatMap((peer) => knownValue(pick(peer)) ?? []));
  return value === undefined || usual === undefined || value - usual < gapMin ? undefined : value / usual;
}

function latencyRatio(own: EndpointEvidence, peers: readonly EndpointEvidence[]): number {
  const first = ratioOf(own, peers, ({ firstTokenMsP75 }) => firstTokenMsP75, LATENCY_GAP_MS_MIN) ?? 0;
  const total = ratioOf(own, peers, ({ totalMsP75 }) => totalMsP75, LATENCY_GAP_MS_MIN) ?? 0;
  // Long answers take long at any endpoint, so the time of whole answers counts only if the endpoint is also slow per token.
  const speed = ratioOf(own, peers, ({ throughputTpsP50 }) => throughputTpsP50, -Infinity) ?? 1;
  return Math.max(first, speed * LATENCY_RATIO_MIN <= 1 ? total : 0);
}

function judgeOne(own: EndpointEvidence, peers: readonly EndpointEvidence[]): Judged | undefined {
  const { endpointId } = own;
  const gap = failureGap(own, peers);
  if (gap !== undefined && gap >= FAILURE_GAP_MIN) return { endpointId, reason: 'failures', distance: gap };
  const ratio = latencyRatio(own, peers);
  return ratio >= LATENCY_RATIO_MIN ? { endpointId, reason: 'latency', distance: ratio } : undefined;
}

/** The outliers among endpoints of one model, worst first, failing ones before slow ones. Each is compared with the others in `evidence`. */
export function findOutliers(evidence: readonly EndpointEvidence[]): readonly Outlier[] {
  const rank = ({ reason }: Judged): number => (reason === 'failures' ? 0 : 1);
  return evidence
    .flatMap((own) => judgeOne(own, evidence.filter((peer) => peer !== own)) ?? [])
    .sort((left, right) => rank(left) - rank(right) || right.distance - left.distance || (left.endpointId < right.endpointId ? -1 : 1))
    .map(({ endpointId, reason }) => ({ endpointId, reason }));
}

interface Ejection {
  readonly reason: OutlierReason;
  readonly untilMs: number;
  /** Ejections in a row; 0 once the endpoint has been normal again. */
  readonly timesInARow: number;
}

/** All instants are milliseconds of one monotonic clock. */
export interface Ejections {
  /**
   * Ejects outliers among the endpoints of one model, but at most half of `endpointIds` (all that serve the model).
   * `evidence` may cover only some of them, and must contain only calls after `endOf`.
   */
  judge(endpointIds: readonly string[], evidence: readonly EndpointEvidence[], nowMs: number): void;
  /** Why the endpoint is ejected now; undefined = it is not. */
  reasonOf(endpointId: string, nowMs: number): OutlierReason | undefined;
  /** When its last ejection ended or will end; undefined = never ejected. Older observations do not count. */
  endOf(endpointId: string): number | undefined;
}

export function createEjections(): Ejections {
  const ejections = new Map<string, Ejection>(); // kept: by endpoint.
  const isOut = (endpointId: string, nowMs: number): boolean => nowMs < (ejections.get(endpointId)?.untilMs ?? -Infinity);
  return {
    judge: (endpointIds, evidence, nowMs) => {
      const present = evidence.filter(({ endpointId }) => !isOut(endpointId, nowMs));
      const outliers = findOutliers(present);
      for (const { endpointId, calls, firstTokenMsP75, totalMsP75 } of present) {
        const last = ejections.get(endpointId);
        if (last === undefined || outliers.some((outlier) => outlier.endpointId === endpointId)) continue;
        const isTold = last.reason === 'failures' || firstTokenMsP75.samples >= SAMPLES_MIN || totalMsP75.samples >= SAMPLES_MIN;
        // Reset the count only after enough calls since the ejection, with times if it was ejected for latency.
        if (calls >= SAMPLES_MIN && isTold) ejections.set(endpointId, { ...last, timesInARow: 0 });
      }
      let room = Math.floor(endpointIds.length * EJECTED_SHARE_MAX) - endpointIds.filter((id) => isOut(id, nowMs)).length;
      for (const { endpointId, reason } of outliers) {
        if (room <= 0) return;
        room -= 1;
        const timesInARow = Math.min(TIMES_MAX, (ejections.get(endpointId)?.timesInARow ?? 0) + 1);
        ejections.set(endpointId, { reason, timesInARow, untilMs: nowMs + EJECTION_MS * timesInARow });
      }
    },
    reasonOf: (endpointId, nowMs) => (isOut(endpointId, nowMs) ? ejections.get(endpointId)?.reason : undefined),
    endOf: (endpointId) => ejections.get(endpointId)?.untilMs,
  };
}
