/** `npm run routing:eval -- predict IN --out OUT`: what the shipped artefact says of prompts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { PLAIN_SETTING } from '@signalbox/router-core/clusters';
import { createFeatureExtractor } from '@signalbox/router-core/features';
import { fractionOf } from '@signalbox/router-core/rank';
import { createPanelJudge, promptTokensOf } from './judge.js';
import { loadModels } from './outcomes.js';
import { readArtefact } from './shipped.js';

interface Question {
  readonly id: string;
  readonly models: readonly string[];
  readonly prompt: string;
}

/** Rounds of the first lines that are not measured: the code is warm when the first decision counts. */
const WARM_UP_LINES = 500;
const SIGNIFICANT = 6;
/** Equal scores are told apart by less than any that differ for a reason, in no order: a file may come in one. */
const TIE_MAX = 1e-9;

function isQuestion(value: unknown): value is Question {
  if (typeof value !== 'object' || value === null) return false;
  const { id, models, prompt } = value as Partial<Record<keyof Question, unknown>>;
  return typeof id === 'string' && typeof prompt === 'string' && Array.isArray(models) && models.length > 0 && models.every((name) => typeof name === 'string');
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

export interface Predicted {
  readonly prompts: number;
  /** Names that the artefact has no measurements for, so that their figures are those of any such model. */
  readonly unmeasured: readonly string[];
}

/** Reads a line each `{id, models, prompt}`, writes a line each `{id, score, q, c, us}`. Throws on a line of another shape. */
export function predictFile(from: string, to: string): Predicted {
  const questions = readFileSync(from, 'utf8').split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const value = jsonOf(line);
    if (!isQuestion(value)) throw new Error(`Line ${String(i + 1)} of ${from} is not {id, models, prompt}.`);
    return [value];
  });
  const artefact = readArtefact();
  const prices = loadModels();
  const extract = createFeatureExtractor();
  const judges = new Map<string, ReturnType<typeof createPanelJudge>>();
  const judge = ({ models, prompt }: Question): ReturnType<ReturnType<typeof createPanelJudge>> => {
    const key = models.join('\n');
    let panel = judges.get(key);
    if (panel === undefined) {
      panel = createPanelJudge(artefact, prices, models);
      judges.set(key, panel);
    }
    return panel(extract(prompt, PLAIN_SETTING), promptTokensOf(prompt));
  };
  questions.slice(0, WARM_UP_LINES).forEach(judge);
  const round = (value: number): number => Number(value.toPrecision(SIGNIFICANT));
  const lines = questions.map((question) => {
    const startedMs = performance.now();
    const { score, quality, cost } = judge(question);
    const us = (performance.now() - startedMs) * 1_000;
    const byModel = (values: readonly number[]): Record<string, number> => Object.fromEntries(question.models.map((name, i) => [name, round(values[i] ?? 0)]));
    return JSON.stringify({ id: question.id, score: score + TIE_MAX * fractionOf(question.prompt, 0), q: byModel(quality), c: byModel(cost), us: round(us) });
  });
  writeFileSync(to, lines.map((line) => `${line}\n`).join(''));
  const measured = new Set(artefact.header.models.map(({ name }) => name));
  return { prompts: lines.length, unmeasured: [...new Set(questions.flatMap(({ models }) => models))].filter((name) => !measured.has(name)) };
}
