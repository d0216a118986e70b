/**
 * Outliers: endpoints that fail or lag far more than other endpoints of the same model. They are left out for 30 s times
 * the number of times in a row, never more than half of a model's, and come back by themselves (docs/adr/0023).
 */

/** Calls, or samples of a time, below which nothing is said of an endpoint. */
const SAMPLES_MIN = 20;
/** Of a normal distribution: bounds that the true share passes once in twenty. */
const Z = 1.96;
/** Between the share that an endpoint fails at least and the one that its peers fail at most. */
const FAILURE_GAP_MIN = 0.1;
const LATENCY_RATIO_MIN = 3;
const LATENCY_GAP_MS_MIN = 1_000;
const EJECTION_MS = 30_000;
/** Longer than five minutes says nothing: that is how deep statistics are. */
const TIMES_MAX = 10;
const EJECTED_SHARE_MAX = 0.5;

export type OutlierReason = 'failures' | 'latency';

export interface Quantile {
  readonly samples: number;
  /** Undefined without samples. */
  readonly value: number | undefined;
}

/** What is known of one endpoint since it last came back. */
export interface EndpointEvidence {
  readonly endpointId: string;
  readonly calls: number;
  readonly failures: number;
  /** P75 in milliseconds to the first token of streams. */
  readonly firstTokenMsP75: Quantile;
  /** P75 in milliseconds to the end of answers that were not streamed. */
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

/** Both ends of Wilson's interval: where the true share of failures lies, however few calls there were. */
export function failureShareBounds(failures: number, calls: number): readonly [low: number, high: number] {
  const share = failures / calls;
  const centre = share + (Z * Z) / (2 * calls);
  const half = Z * Math.sqrt((share * (1 - share)) / calls + (Z * Z) / (4 * calls * calls));
  const scale = 1 + (Z * Z) / calls;
  return [Math.max(0, (centre - half) / scale), Math.min(1, (centre + half) / scale)];
}

/** The middle one, of two the smaller: two bad peers of three do not hide each other. */
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

/** The endpoint's own value over that of its peers; undefined when one is unknown, or the two lie closer than `gapMin`. */
function ratioOf(own: EndpointEvidence, peers: readonly EndpointEvidence[], pick: (evidence: EndpointEvidence) => Quantile, gapMin: number): number | undefined {
  const value = knownValue(pick(own));
  const usual = lowerMedian(peers.flatMap((peer) => knownValue(pick(peer)) ?? []));
  return value === undefined || usual === undefined || value - usual < gapMin ? undefined : value / usual;
}

function latencyRatio(own: EndpointEvidence, peers: readonly EndpointEvidence[]): number {
  const first = ratioOf(own, peers, ({ firstTokenMsP75 }) => firstTokenMsP75, LATENCY_GAP_MS_MIN) ?? 0;
  const total = ratioOf(own, peers, ({ totalMsP75 }) => totalMsP75, LATENCY_GAP_MS_MIN) ?? 0;
  // Long answers take long at any endpoint: whole ones count only where they are written slowly too.
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

/** The outliers among endpoints of one model, the worst first: failing ones before slow ones. Each is compared with the others given. */
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
  /** 0 once it has done well. */
  readonly timesInARow: number;
}

/** All instants on one steady clock, in milliseconds. */
export interface Ejections {
  /**
   * Judges the endpoints of one model and leaves outliers out, as long as that keeps half of `endpointIds` (all that serve
   * the model). `evidence` is of some of those, and only of what came after `endOf`.
   */
  judge(endpointIds: readonly string[], evidence: readonly EndpointEvidence[], nowMs: number): void;
  /** Why the endpoint is left out now; undefined = it is not. */
  reasonOf(endpointId: string, nowMs: number): OutlierReason | undefined;
  /** When it came back, or will; undefined = it was never left out. What is older says nothing of it. */
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
        // What it did before it was left out still says nothing.
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
