import { expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { predictFile } from './predict.js';

interface Line {
  readonly score: number;
  readonly q: Readonly<Record<string, number>>;
}

function judged(prompts: readonly string[]): Line[] {
  const directory = mkdtempSync(join(tmpdir(), 'predict-'));
  try {
    const [from, to] = [join(directory, 'in.jsonl'), join(directory, 'out.jsonl')];
    writeFileSync(from, prompts.map((prompt, i) => JSON.stringify({ id: String(i), models: ['gpt-4-1106-preview', 'mixtral-8x7b-instruct'], prompt })).join('\n'));
    predictFile(from, to);
    return readFileSync(to, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Line);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('prompts judged alike have scores in no order, by less than any judgement differs, and the same prompt the same', () => {
  const prompts = Array.from({ length: 40 }, (_, i) => `Tell me a story about a ${'very '.repeat(i)}old fox.`);
  const lines = judged([...prompts, prompts[0] ?? '']);
  const gains = lines.map(({ q }) => (q['gpt-4-1106-preview'] ?? 0) - (q['mixtral-8x7b-instruct'] ?? 0));
  lines.forEach(({ score }, i) => expect(Math.abs(score - (gains[i] ?? 0))).toBeLessThan(2e-6));
  const scores = lines.slice(0, prompts.length).map(({ score }) => score);
  expect(new Set(scores).size).toBe(prompts.length);
  const rising = scores.slice(1).filter((score, i) => score > (scores[i] ?? 0)).length;
  expect(rising > 8 && rising < 31).toBe(true);
  expect(lines.at(-1)?.score).toBe(lines[0]?.score);
});

test('a line that is no question is told with its number, and a name that was never measured is told', () => {
  const directory = mkdtempSync(join(tmpdir(), 'predict-'));
  try {
    const [from, to] = [join(directory, 'in.jsonl'), join(directory, 'out.jsonl')];
    const line = JSON.stringify({ id: 'a', models: ['gpt-4-1106-preview', 'gpt-4-1106-preveiw'], prompt: 'Hello' });
    for (const wrong of ['{"id": "b"}', 'not JSON']) {
      writeFileSync(from, `${line}\n${wrong}\n`);
      expect(() => predictFile(from, to)).toThrow(`Line 2 of ${from} is not {id, models, prompt}.`);
    }
    writeFileSync(from, line);
    expect(predictFile(from, to)).toEqual({ prompts: 1, unmeasured: ['gpt-4-1106-preveiw'] });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
