/** Figures that judge a router against none (definitions: training/README.md). */

const STEPS = 10;
const LOG_POINTS = 400;

export interface PairFigures {
  readonly apgr: number;
  /** Share of requests sent to the strong model at which half, and 80 %, of its advantage is had. */
  readonly cpt50: number;
  readonly cpt80: number;
}

/** Judges an order: the prompts with the highest score go to the strong model first, equal ones in no order: each counts as their mean. */
export function pairFigures(scores: readonly number[], strong: readonly number[], weak: readonly number[]): PairFigures {
  const order = scores.map((_, i) => i).sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0) || left - right);
  const gains = order.map((i) => (strong[i] ?? 0) - (weak[i] ?? 0));
  for (let from = 0, until = 0; from < order.length; from = until) {
    const score = scores[order[from] ?? 0];
    for (until = from + 1; until < order.length && scores[order[until] ?? 0] === score; ) until += 1;
    gains.fill(gains.slice(from, until).reduce((sum, gain) => sum + gain, 0) / (until - from), from, until);
  }
  const total = gains.reduce((sum, gain) => sum + gain, 0);
  const recovered: number[] = [];
  let sum = 0;
  let taken = 0;
  for (let step = 0; step <= STEPS; step += 1) {
    for (const until = Math.round((order.length * step) / STEPS); taken < until; taken += 1) sum += gains[taken] ?? 0;
    recovered.push(sum / total);
  }
  const area = recovered.slice(1).reduce((acc, value, i) => acc + (value + (recovered[i] ?? 0)) / 2 / STEPS, 0);
  const callsFor = (share: number): number => {
    const step = recovered.findIndex((value) => value >= share);
    if (step <= 0) return step < 0 ? 1 : 0;
    const before = recovered[step - 1] ?? 0;
    return (step - 1 + (share - before) / ((recovered[step] ?? 1) - before)) / STEPS;
  };
  return { apgr: area, cpt50: callsFor(0.5), cpt80: callsFor(0.8) };
}

interface Point {
  readonly cost: number;
  readonly quality: number;
}

/** Upper concave envelope that never falls. */
function hullOf(points: readonly Point[]): Point[] {
  const hull: Point[] = [];
  for (const point of [...points].sort((left, right) => left.cost - right.cost || right.quality - left.quality)) {
    if (point.quality <= (hull.at(-1)?.quality ?? -1)) continue;
    for (;;) {
      const last = hull.at(-1);
      const before = hull.at(-2);
      if (last === undefined || before === undefined) break;
      if ((last.quality - before.quality) * (point.cost - before.cost) > (point.quality - before.quality) * (last.cost - before.cost)) break;
      hull.pop();
    }
    hull.push(point);
  }
  return hull;
}

function qualityAt(hull: readonly Point[], cost: number): number {
  const after = hull.findIndex((point) => point.cost >= cost);
  if (after < 0) return hull.at(-1)?.quality ?? 0;
  const right = hull[after];
  const left = hull[after - 1];
  if (right === undefined || left === undefined) return hull[0]?.quality ?? 0;
  return left.quality + ((right.quality - left.quality) * (cost - left.cost)) / (right.cost - left.cost);
}

function costAt(hull: readonly Point[], quality: number): number {
  const after = hull.findIndex((point) => point.quality >= quality);
  if (after < 0) return Infinity;
  const right = hull[after];
  const left = hull[after - 1];
  if (right === undefined || left === undefined) return hull[0]?.cost ?? Infinity;
  return left.cost + ((right.cost - left.cost) * (quality - left.quality)) / (right.quality - left.quality);
}

/** Figures of a curve of cost and quality. */
export interface CurveFigures {
  /** Mean quality over the logarithm of cost, from the cheapest to the dearest single model. */
  readonly aiqLog: number;
  /** Cost saved at that share of the best single model's quality. */
  readonly save98: number;
  readonly save95: number;
}

export interface ManyFigures {
  readonly router: CurveFigures;
  /** The hull of the single models: no router at all. */
  readonly singles: CurveFigures;
  readonly bestSingle: number;
}

/** Outcomes of one data set: what was, and what the router expected; all rows × models. */
export interface Sweep {
  readonly quality: readonly (readonly number[])[];
  readonly cost: readonly (readonly number[])[];
  readonly expectedQuality: readonly (readonly number[])[];
  readonly expectedCost: readonly (readonly number[])[];
}

/** Quality given for a USD, from 0 to 1e7. */
const PRICES_OF_QUALITY: readonly number[] = [0, ...Array.from({ length: 91 }, (_, i) => 10 ** (-2 + i / 10))];

function meanOf(rows: readonly (readonly number[])[], model: number): number {
  return rows.reduce((sum, row) => sum + (row[model] ?? 0), 0) / rows.length;
}

/** argmax of quality − λ·cost for one row. */
function choose(quality: readonly number[], cost: readonly number[], lambda: number): number {
  let best = 0;
  let bestValue = -Infinity;
  for (let model = 0; model < quality.length; model += 1) {
    const value = (quality[model] ?? 0) - lambda * (cost[model] ?? 0);
    if (value > bestValue) {
      bestValue = value;
      best = model;
    }
  }
  return best;
}

/** Judges predicted quality and cost by what choosing with them would have brought. */
export function manyFigures({ quality, cost, expectedQuality, expectedCost }: Sweep): ManyFigures {
  const models = quality[0]?.length ?? 0;
  const singles = Array.from({ length: models }, (_, model) => ({ cost: meanOf(cost, model), quality: meanOf(quality, model) }));
  const cheapest = singles.reduce((best, point) => (point.cost < best.cost ? point : best));
  const dearest = singles.reduce((best, point) => (point.cost > best.cost ? point : best));
  const best = singles.reduce((top, point) => (point.quality > top.quality ? point : top));
  const routed = PRICES_OF_QUALITY.map((lambda): Point => {
    let sumCost = 0;
    let sumQuality = 0;
    quality.forEach((row, i) => {
      const model = choose(expectedQuality[i] ?? [], expectedCost[i] ?? [], lambda);
      sumQuality += row[model] ?? 0;
      sumCost += cost[i]?.[model] ?? 0;
    });
    return { cost: sumCost / quality.length, quality: sumQuality / quality.length };
  });
  const figures = (points: readonly Point[]): CurveFigures => {
    const hull = hullOf(points);
    let area = 0;
    for (let k = 0; k <= LOG_POINTS; k += 1) area += (qualityAt(hull, cheapest.cost * (dearest.cost / cheapest.cost) ** (k / LOG_POINTS)) * (k === 0 || k === LOG_POINTS ? 0.5 : 1)) / LOG_POINTS;
    const save = (share: number): number => 1 - costAt(hull, share * best.quality) / best.cost;
    return { aiqLog: area, save98: save(0.98), save95: save(0.95) };
  };
  return { router: figures([...routed, cheapest]), singles: figures(singles), bestSingle: best.quality };
}
