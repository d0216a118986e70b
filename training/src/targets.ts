/** What the regressions learn: how hard a prompt is, and how each model departs from that. */
import { ABILITY_PER_STANDING } from '@signalbox/router-core/quality';
import { additiveAbilities, type Additive, type CellMean } from './abilities.js';
import type { ModelsFile } from './outcomes.js';
import type { Prompt } from './prompts.js';

/** Outcomes by which a question's own difficulty is held at the middle. */
const DIFFICULTY_HOLD = 1;
const VARIANCE_MIN = 0.04;

interface Cell {
  readonly mean: number;
  /** Variance of one outcome: how far a step of log-odds moves the mean. */
  readonly variance: number;
}

export interface RowTargets {
  /** Log-odds that the question, in whatever data set it stands, takes from every model beyond the data set's level. */
  readonly difficulty: number;
  /** Mean level of the data set within the scope. */
  readonly level: number;
  /** By model: outcome minus what ability and difficulty explain. */
  readonly residuals: ReadonlyMap<string, number>;
  /** What the strong model of the data set's pair gained over the weak one, beyond the mean; undefined = not measured. */
  readonly need: number | undefined;
}

export interface Scope {
  readonly additive: Additive;
  readonly rows: readonly RowTargets[];
  /** Mean variance of a model's outcomes. */
  readonly variances: ReadonlyMap<string, number>;
}

/** Outcomes of a prompt that were measured, by model. */
export function measuredOf({ outcome }: Prompt, models: ModelsFile): [string, number][] {
  const names = models.datasets[outcome.dataset]?.models ?? [];
  return names.flatMap((name, i): [string, number][] => {
    const value = outcome.quality[i];
    return value === null || value === undefined ? [] : [[name, value]];
  });
}

export function cellMeans(prompts: readonly Prompt[], models: ModelsFile): CellMean[] {
  const sums = new Map<string, { model: string; group: string; right: number; samples: number }>();
  for (const prompt of prompts) {
    for (const [model, value] of measuredOf(prompt, models)) {
      const key = `${model}|${prompt.outcome.dataset}`;
      const cell = sums.get(key) ?? { model, group: prompt.outcome.dataset, right: 0, samples: 0 };
      sums.set(key, cell);
      cell.right += value;
      cell.samples += 1;
    }
  }
  // One right and one wrong answer more: no cell is certain.
  return [...sums.values()].map(({ model, group, right, samples }) => ({ model, group, mean: (right + 1) / (samples + 2), samples }));
}

interface CellOutcome {
  readonly model: string;
  readonly value: number;
  readonly cell: Cell;
}

/** By question: data sets that share one say more of it together than a pair of models does alone. */
function difficultiesOf(prompts: readonly Prompt[], cellsOf: (prompt: Prompt) => readonly CellOutcome[]): Map<string, number> {
  const sums = new Map<string, { shortfall: number; variance: number; count: number }>();
  for (const prompt of prompts) {
    const sum = sums.get(prompt.outcome.stem) ?? { shortfall: 0, variance: 0, count: 0 };
    sums.set(prompt.outcome.stem, sum);
    for (const { value, cell } of cellsOf(prompt)) {
      sum.shortfall += cell.mean - value;
      sum.variance += cell.variance;
      sum.count += 1;
    }
  }
  return new Map([...sums].map(([stem, { shortfall, variance, count }]) => [stem, shortfall / (count + DIFFICULTY_HOLD) / (variance / Math.max(1, count) || 0.25)]));
}

/** Targets of the prompts of one scope: a cluster, or all. */
export function targetsOf(prompts: readonly Prompt[], models: ModelsFile): Scope {
  const means = cellMeans(prompts, models);
  const cells = new Map(means.map(({ model, group, mean }): [string, Cell] => [`${model}|${group}`, { mean, variance: Math.max(VARIANCE_MIN, mean * (1 - mean)) }]));
  const additive = additiveAbilities(means);
  const cellsOf = (prompt: Prompt): CellOutcome[] => measuredOf(prompt, models).map(([model, value]) => ({ model, value, cell: cells.get(`${model}|${prompt.outcome.dataset}`) ?? { mean: 0.5, variance: 0.25 } }));
  const difficulties = difficultiesOf(prompts, cellsOf);
  const rows = prompts.map((prompt): RowTargets => {
    const { dataset } = prompt.outcome;
    const outcomes = cellsOf(prompt);
    const difficulty = difficulties.get(prompt.outcome.stem) ?? 0;
    const pair = models.datasets[dataset]?.pair;
    const strong = outcomes.find(({ model }) => model === pair?.strong);
    const weak = outcomes.find(({ model }) => model === pair?.weak);
    return {
      difficulty,
      level: additive.level.get(dataset) ?? 0,
      residuals: new Map(outcomes.map(({ model, value, cell }) => [model, value - cell.mean + cell.variance * difficulty])),
      need: strong === undefined || weak === undefined ? undefined : strong.value - weak.value - (strong.cell.mean - weak.cell.mean),
    };
  });
  const variances = new Map<string, number>();
  for (const model of new Set(means.map((cell) => cell.model))) {
    const own = means.filter((cell) => cell.model === model);
    const samples = own.reduce((sum, cell) => sum + cell.samples, 0);
    variances.set(model, own.reduce((sum, cell) => sum + cell.samples * Math.max(VARIANCE_MIN, cell.mean * (1 - cell.mean)), 0) / samples);
  }
  return { additive, rows, variances };
}

/** Standing of every model by its ability over all data sets. */
export function standings(abilities: ReadonlyMap<string, number>): Map<string, number> {
  const values = [...abilities.values()];
  const middle = values.reduce((sum, value) => sum + value, 0) / values.length;
  return new Map([...abilities].map(([model, value]) => [model, Math.min(1, Math.max(-1, (value - middle) / ABILITY_PER_STANDING))]));
}
