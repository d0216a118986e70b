/** Whether what the text says of need holds in a kind of task that training never saw: each kind measured plays that part once. */
import type { Cluster } from '@signalbox/router-core/clusters';
import { calibrate, type Observation } from './calibrate.js';
import { multiply, ridge, type SparseRows } from './matrix.js';
import type { ModelsFile } from './outcomes.js';
import type { Prompt } from './prompts.js';
import { measuredOf, type RowTargets } from './targets.js';

/** All prompts, whatever their kind. */
export interface Measured {
  readonly prompts: readonly Prompt[];
  readonly models: ModelsFile;
  /** The prompts' features, by row. */
  readonly matrix: SparseRows;
  readonly rows: readonly Pick<RowTargets, 'need'>[];
  readonly standing: ReadonlyMap<string, number>;
  /** Of the regression that learns need. */
  readonly penalty: number;
}

/**
 * Factor of general need where nothing was measured: the least that any of `clusters` gained from what the others taught.
 * 0 where one of them gained nothing, or where there are no two.
 */
export function needElsewhere(clusters: readonly Cluster[], measured: Measured): number {
  return clusters.length < 2 ? 0 : Math.min(...clusters.map((cluster) => needFromOthers(cluster, measured)));
}

/** Factor, never below 0, of need learnt without the cluster and its questions. */
function needFromOthers(cluster: Cluster, { prompts, models, matrix, rows, standing, penalty }: Measured): number {
  const stems = new Set(prompts.flatMap((prompt) => (prompt.cluster === cluster ? [prompt.outcome.stem] : [])));
  const weights = Float64Array.from(rows, ({ need }, row) => (need === undefined || stems.has(prompts[row]?.outcome.stem ?? '') ? 0 : 1));
  const needs = multiply(matrix, ridge(matrix, Float64Array.from(rows, ({ need = 0 }) => need), weights, 1, [penalty]), 1);
  // An ability for each model and data set: only what the text says within a data set counts.
  const cells = new Map<string, number>();
  const observations = prompts.flatMap((prompt, row): Observation[] => {
    if (prompt.cluster !== cluster) return [];
    const outcomes = measuredOf(prompt, models);
    return outcomes.map(([name, outcome]): Observation => {
      const key = `${prompt.outcome.dataset}|${name}`;
      const model = cells.get(key) ?? cells.size;
      cells.set(key, model);
      return { model, outcome, weight: 1 / Math.sqrt(outcomes.length), factors: [(standing.get(name) ?? 0) * (needs[row] ?? 0)] };
    });
  });
  return calibrate(observations, [...cells].map(() => 0), 1).factors[0] ?? 0;
}
