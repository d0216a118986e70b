/** Outcomes: what each model made of each prompt. Read from `training/data` (its README names sources and licences). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

const DATA_DIR = fileURLToPath(new URL('../data/', import.meta.url));
/** Where a source kept no answers, RouteLLM's assumption (its appendix D). */
const OUTPUT_TOKENS_UNKNOWN = 264;

export interface DatasetNames {
  readonly models: readonly string[];
  readonly pair: { readonly strong: string; readonly weak: string };
}

/** USD per 1M tokens: figures for comparing routers offline, never for billing. */
export interface ListPrice {
  readonly input: number;
  readonly output: number;
}

export interface ModelsFile {
  readonly datasets: Readonly<Record<string, DatasetNames>>;
  readonly prices: Readonly<Record<string, ListPrice>>;
}

export interface Outcome {
  readonly id: string;
  readonly dataset: string;
  /** Subject: for analysis, never seen by the router. */
  readonly subject: string;
  readonly prompt: string;
  /** The question without its answers, normalised: rows that share it stay on one side of a split. */
  readonly stem: string;
  readonly inputTokens: number;
  /** By position in the data set's models, 0 or 1; null = not measured. */
  readonly quality: readonly (number | null)[];
  /** By position in the data set's models. */
  readonly outputTokens: readonly number[];
  /** Whether `outputTokens` was counted rather than assumed. */
  readonly hasCountedOutput: boolean;
}

export interface Outcomes {
  /** SHA-256 of all files, published scores included. */
  readonly hash: string;
  readonly models: ModelsFile;
  readonly rows: readonly Outcome[];
}

/** Two questions with the same letters and digits before their answers are one. */
export function stemOf(prompt: string): string {
  const answers = prompt.search(/\nA\. /);
  return (answers > 0 ? prompt.slice(0, answers) : prompt).replace(/\nAnswer:\s*$/, '').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}

interface Line {
  readonly id: string;
  readonly dom: string;
  readonly prompt: string;
  readonly in_tok: number;
  readonly q: readonly (number | null)[];
  readonly out_tok?: readonly number[];
}

/** Names and prices of the models. */
export function loadModels(directory = DATA_DIR): ModelsFile {
  return JSON.parse(readFileSync(`${directory}/models.json`, 'utf8')) as ModelsFile;
}

/** Reads all data sets named in models.json. Throws when a file is missing. */
export function loadOutcomes(directory = DATA_DIR): Outcomes {
  const hash = createHash('sha256');
  const modelsText = readFileSync(`${directory}/models.json`, 'utf8');
  hash.update(modelsText);
  hash.update(readFileSync(`${directory}/public-scores.json`, 'utf8'));
  const models = loadModels(directory);
  const rows: Outcome[] = [];
  for (const dataset of Object.keys(models.datasets)) {
    const text = gunzipSync(readFileSync(`${directory}/${dataset}.jsonl.gz`)).toString('utf8');
    hash.update(text);
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const row = JSON.parse(line) as Line;
      rows.push({
        id: row.id,
        dataset,
        subject: row.dom,
        prompt: row.prompt,
        stem: stemOf(row.prompt),
        inputTokens: row.in_tok,
        quality: row.q,
        outputTokens: row.out_tok ?? row.q.map(() => OUTPUT_TOKENS_UNKNOWN),
        hasCountedOutput: row.out_tok !== undefined,
      });
    }
  }
  return { hash: hash.digest('hex'), models, rows };
}

/** The fold of a question: the same for all its rows. */
export function foldOf(stem: string, folds: number, salt: string): number {
  return createHash('sha256').update(salt).update(stem).digest().readUInt32LE(0) % folds;
}
