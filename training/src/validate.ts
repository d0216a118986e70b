/** Splits that show how a router does on what it was not trained on, and the figures with their intervals. */
import { encodeArtefact, parseArtefact, type QualityArtefact } from '@signalbox/router-core/quality-artefact';
import { fit, type TrainingOptions } from './fit.js';
import { costUsd, createPanelJudge, type Judgement } from './judge.js';
import { manyFigures, pairFigures, type ManyFigures, type PairFigures } from './metrics.js';
import { foldOf, type ModelsFile, type Outcome } from './outcomes.js';
import type { Prompt } from './prompts.js';
import { withoutSource } from './public-scores.js';

const FOLDS = 5;
const RESAMPLES = 200;
const TAIL = 0.025;

/** MMLU and MMLU-Pro name their subjects differently; these belong together. */
const FIELDS: readonly (readonly [string, readonly string[]])[] = [
  ['mathematics', ['abstract_algebra', 'college_mathematics', 'elementary_mathematics', 'high_school_mathematics', 'high_school_statistics', 'math']],
  ['physics', ['astronomy', 'college_physics', 'conceptual_physics', 'high_school_physics', 'physics', 'electrical_engineering', 'engineering']],
  ['chemistry', ['college_chemistry', 'high_school_chemistry', 'chemistry']],
  ['biology', ['college_biology', 'high_school_biology', 'biology']],
  ['computing', ['college_computer_science', 'computer_security', 'high_school_computer_science', 'machine_learning', 'computer science']],
  ['philosophy', ['formal_logic', 'logical_fallacies', 'moral_disputes', 'moral_scenarios', 'philosophy', 'world_religions']],
  ['history', ['high_school_european_history', 'high_school_us_history', 'high_school_world_history', 'prehistory', 'history']],
  ['economics', ['econometrics', 'high_school_macroeconomics', 'high_school_microeconomics', 'economics']],
  ['business', ['business_ethics', 'marketing', 'management', 'business']],
  ['psychology', ['high_school_psychology', 'professional_psychology', 'psychology']],
  ['health', ['anatomy', 'clinical_knowledge', 'college_medicine', 'human_aging', 'medical_genetics', 'nutrition', 'professional_medicine', 'virology', 'health']],
];
const FIELD_OF = new Map(FIELDS.flatMap(([field, subjects]) => subjects.map((subject) => [subject, field] as const)));

/** A way of leaving prompts out: each group is judged by a router trained without it and without its questions. */
export interface Split {
  readonly name: string;
  readonly groupOf: (outcome: Outcome) => string | undefined;
}

export const BY_QUESTION: Split = { name: 'by question', groupOf: ({ stem }) => String(foldOf(stem, FOLDS, 'validation')) };
export const BY_FIELD: Split = { name: 'field left out', groupOf: ({ dataset, subject }) => (dataset.startsWith('mmlu') ? (FIELD_OF.get(subject) ?? 'other') : undefined) };
export const BY_BENCHMARK: Split = { name: 'benchmark left out', groupOf: ({ dataset }) => ({ gsm8k: 'grade-school', 'z-gsm': 'grade-school' })[dataset] ?? dataset };

export interface Judged {
  readonly prompt: Prompt;
  readonly group: string;
  readonly judgement: Judgement;
}

/** The artefact as it would be served: packed and read again. */
export function trained(prompts: readonly Prompt[], models: ModelsFile, options: TrainingOptions): QualityArtefact {
  const parsed = parseArtefact(encodeArtefact(fit(prompts, models, options)));
  if (parsed.kind === 'refused') throw new Error(parsed.problem);
  return parsed.artefact;
}

/** Judges every prompt by a router that saw neither its group nor its question. `onGroup` hears of progress. */
export function judgeSplit(prompts: readonly Prompt[], models: ModelsFile, split: Split, options: TrainingOptions, onGroup: (group: string) => void): Judged[] {
  const groups = [...new Set(prompts.flatMap(({ outcome }) => split.groupOf(outcome) ?? []))].sort();
  return groups.flatMap((group) => {
    onGroup(group);
    const held = prompts.filter(({ outcome }) => split.groupOf(outcome) === group);
    // Other rows of the same questions go too: a benchmark must be new in its questions, not in its name.
    const stems = new Set(held.map(({ outcome }) => outcome.stem));
    const artefact = trained(prompts.filter(({ outcome }) => split.groupOf(outcome) !== group && !stems.has(outcome.stem)), models, { ...options, publicScores: withoutSource(options.publicScores, group) });
    return judgeAll(held, models, artefact).map((entry) => ({ ...entry, group }));
  });
}

function judgeAll(prompts: readonly Prompt[], models: ModelsFile, artefact: QualityArtefact): Omit<Judged, 'group'>[] {
  const judges = new Map(Object.entries(models.datasets).map(([name, { models: names }]) => [name, createPanelJudge(artefact, models, names)]));
  return prompts.flatMap((prompt) => {
    const judge = judges.get(prompt.outcome.dataset);
    return judge === undefined ? [] : [{ prompt, judgement: judge(prompt.features, prompt.outcome.inputTokens) }];
  });
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface SetFigures {
  readonly name: string;
  readonly prompts: number;
  /** What the strong model of the pair is ahead by: where that is little, its APGR is mostly chance. */
  readonly gap: number;
  /** Score by the difference of predicted quality between the data set's pair. */
  readonly pair: PairFigures;
  readonly apgr: Interval;
  /** By `score` over all models of the data set. */
  readonly apgrOfScore: number;
  readonly many: ManyFigures;
  /** Router minus hull of the single models. */
  readonly advantage: Interval;
}

/** Figures of the judged prompts of one data set, with intervals over resampled prompts. */
export function setFigures(name: string, judged: readonly Judged[], models: ModelsFile, resamples = RESAMPLES): SetFigures {
  const measured = judged.filter(({ prompt }) => prompt.outcome.quality.every((value) => value !== null));
  const dataset = models.datasets[measured[0]?.prompt.outcome.dataset ?? ''];
  if (dataset === undefined) throw new Error(`No outcomes of ${name}.`);
  const strong = dataset.models.indexOf(dataset.pair.strong);
  const weak = dataset.models.indexOf(dataset.pair.weak);
  const rows = measured.map(({ prompt: { outcome }, judgement }) => ({
    quality: outcome.quality.map((value) => value ?? 0),
    cost: dataset.models.map((model, i) => costUsd(models.prices[model] ?? { input: 0, output: 0 }, outcome.inputTokens, outcome.outputTokens[i] ?? 0)),
    judgement,
  }));
  type Row = (typeof rows)[number];
  const pairOf = (sample: readonly Row[], score: (row: Row) => number): PairFigures => pairFigures(sample.map(score), sample.map((row) => row.quality[strong] ?? 0), sample.map((row) => row.quality[weak] ?? 0));
  const manyOf = (sample: readonly Row[]): ManyFigures => manyFigures({ quality: sample.map((row) => row.quality), cost: sample.map((row) => row.cost), expectedQuality: sample.map((row) => row.judgement.quality), expectedCost: sample.map((row) => row.judgement.cost) });
  const gain = ({ judgement }: Row): number => (judgement.quality[strong] ?? 0) - (judgement.quality[weak] ?? 0);
  const areas: number[] = [];
  const advantages: number[] = [];
  let state = 1;
  for (let k = 0; k < resamples; k += 1) {
    const sample = rows.map(() => {
      // A fixed linear congruence: the same intervals at every run.
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return rows[Math.floor((state / 4_294_967_296) * rows.length)] as Row;
    });
    areas.push(pairOf(sample, gain).apgr);
    if (k % 5 === 0) {
      const { router, singles } = manyOf(sample);
      advantages.push(router.aiqLog - singles.aiqLog);
    }
  }
  const gap = rows.reduce((sum, { quality }) => sum + (quality[strong] ?? 0) - (quality[weak] ?? 0), 0) / rows.length;
  return { name, prompts: rows.length, gap, pair: pairOf(rows, gain), apgr: intervalOf(areas), apgrOfScore: pairOf(rows, ({ judgement }) => judgement.score).apgr, many: manyOf(rows), advantage: intervalOf(advantages) };
}

function intervalOf(values: readonly number[]): Interval {
  const sorted = [...values].sort((left, right) => left - right);
  return { low: sorted[Math.floor(sorted.length * TAIL)] ?? NaN, high: sorted[Math.ceil(sorted.length * (1 - TAIL)) - 1] ?? NaN };
}
