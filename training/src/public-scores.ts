/** What published scores say of a model's ability: a prior for models with few or no outcomes (`training/data/public-scores.json`). */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { additiveAbilities, logit, type CellMean } from './abilities.js';

const FILE = fileURLToPath(new URL('../data/public-scores.json', import.meta.url));
/** Models with a score and with outcomes that a source needs. */
const MODELS_MIN = 6;
/** Models by which a source's slope is held at 0: a few that happen to agree prove little. */
const SLOPE_HOLD = 2;
/** Variance in log-odds that no source gets below. */
const VARIANCE_MIN = 0.04;
/**
 * A model's lead differs from one data set to the next by as much as the chance of 45 to 180 prompts (where sets share
 * models): beyond that, more prompts of the same set say no more of its ability in general.
 */
const SAMPLES_OF_A_SET_MAX = 40;
/** As few are enough to say how hard a set is: sets differ by far more than models do. */
const LEVEL_HOLD = 2;
/** Rounds of: what outcomes say of the scores, what scores say of the outcomes. */
const ROUNDS = 3;

/** Scores of one model by source, in the source's own unit. */
export type PublicScores = ReadonlyMap<string, Readonly<Record<string, number>>>;

interface ScoreFile {
  /** `share` scores lie in (0, 1) and count as log-odds; `rating` scores count as they are. */
  readonly sources: Readonly<Record<string, { readonly unit: 'share' | 'rating' }>>;
  readonly models: Readonly<Record<string, Readonly<Record<string, { readonly score: number }>>>>;
}

/** Throws when the file is missing. */
export function loadPublicScores(path = FILE): PublicScores {
  const { sources, models } = JSON.parse(readFileSync(path, 'utf8')) as ScoreFile;
  return new Map(Object.entries(models).map(([name, scores]) => [name, Object.fromEntries(Object.entries(scores).map(([source, { score }]) => [source, sources[source]?.unit === 'share' ? logit(score) : score]))]));
}

/** The scores without one source: a benchmark that is left out takes its published scores with it. */
export function withoutSource(scores: PublicScores, source: string): PublicScores {
  return new Map([...scores].map(([name, own]) => [name, Object.fromEntries(Object.entries(own).filter(([key]) => key !== source))]));
}

interface Line {
  readonly meanScore: number;
  readonly meanAbility: number;
  readonly slope: number;
  readonly variance: number;
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Its slope is that within data sets: how hard each is tells nothing of models. */
function lineOf(scoreOf: (model: string) => number | undefined, cells: readonly CellMean[], abilities: ReadonlyMap<string, number>): Line | undefined {
  const scored = [...abilities].flatMap(([name, ability]) => {
    const score = scoreOf(name);
    return score === undefined ? [] : [{ score, ability }];
  });
  if (scored.length < MODELS_MIN) return undefined;
  const pairs = [...new Set(cells.map(({ group }) => group))].flatMap((group) => {
    const own = cells.flatMap((cell) => {
      const score = cell.group === group ? scoreOf(cell.model) : undefined;
      return score === undefined ? [] : [{ score, logOdds: logit(cell.mean) }];
    });
    const [meanScore, meanLogOdds] = [meanOf(own.map(({ score }) => score)), meanOf(own.map(({ logOdds }) => logOdds))];
    return own.map(({ score, logOdds }) => [score - meanScore, logOdds - meanLogOdds] as const);
  });
  const slope = pairs.reduce((sum, [x, y]) => sum + x * y, 0) / (pairs.reduce((sum, [x]) => sum + x * x, 0) * (1 + SLOPE_HOLD / scored.length));
  if (!(slope > 0)) return undefined;
  const variance = Math.max(VARIANCE_MIN, meanOf(pairs.map(([x, y]) => (y - slope * x) ** 2)));
  return { meanScore: meanOf(scored.map(({ score }) => score)), meanAbility: meanOf(scored.map(({ ability }) => ability)), slope, variance };
}

/** Log-odds that the scores lead to expect, by a line for each source; sources that fit the outcomes better count for more. */
export function expectedAbilities(scores: PublicScores, cells: readonly CellMean[], abilities: ReadonlyMap<string, number>): Map<string, number> {
  const sources = new Set([...scores.values()].flatMap((own) => Object.keys(own)));
  const lines = [...sources].flatMap((source) => {
    const line = lineOf((model) => scores.get(model)?.[source], cells, abilities);
    return line === undefined ? [] : [{ source, line }];
  });
  return new Map([...scores].flatMap(([name, own]): [string, number][] => {
    let sum = 0;
    let weight = 0;
    for (const { source, line } of lines) {
      const score = own[source];
      if (score === undefined) continue;
      sum += (line.meanAbility + line.slope * (score - line.meanScore)) / line.variance;
      weight += 1 / line.variance;
    }
    return weight === 0 ? [] : [[name, sum / weight]];
  }));
}

/** Ability over all data sets of every model that has outcomes or scores, in log-odds on one scale. */
export function generalAbilities(cells: readonly CellMean[], scores: PublicScores): Map<string, number> {
  const capped = cells.map((cell) => ({ ...cell, samples: Math.min(SAMPLES_OF_A_SET_MAX, cell.samples) }));
  let measured = additiveAbilities(capped, undefined, LEVEL_HOLD).ability;
  let expected = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    expected = expectedAbilities(scores, capped, measured);
    measured = additiveAbilities(capped, expected, LEVEL_HOLD).ability;
  }
  return new Map([...expected, ...measured]);
}
