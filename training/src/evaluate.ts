/** `npm run routing:eval`: the figures of training, on questions, fields and benchmarks that the judging router never saw. */
import { parseArgs } from 'node:util';
import { loadOutcomes } from './outcomes.js';
import { predictFile } from './predict.js';
import { preparePrompts } from './prompts.js';
import { loadPublicScores } from './public-scores.js';
import { tableOf } from './report.js';
import { readArtefact } from './shipped.js';
import { BY_BENCHMARK, BY_FIELD, BY_QUESTION, judgeSplit, setFigures, type SetFigures, type Split } from './validate.js';

/** Fewer prompts than that say nothing by themselves. */
const PROMPTS_MIN = 150;
const SPLITS: Readonly<Record<string, Split>> = { question: BY_QUESTION, field: BY_FIELD, benchmark: BY_BENCHMARK };

/** `predict IN --out OUT`, or figures by `--split question|field|benchmark` (default: all three). */
export function evaluate(argv: readonly string[], say: (line: string) => void): void {
  const { values, positionals } = parseArgs({ args: [...argv], allowPositionals: true, options: { out: { type: 'string' }, split: { type: 'string' } } });
  const [command, from] = positionals;
  if (command === 'predict') {
    if (from === undefined || values.out === undefined) throw new Error('Usage: routing:eval -- predict <prompts.jsonl> --out <file>');
    const { prompts, unmeasured } = predictFile(from, values.out);
    say(`${String(prompts)} prompts judged`);
    if (unmeasured.length > 0) say(`Nothing was measured of ${unmeasured.join(', ')}: judged as any model of low ability at a middling price. Names are those of training/data/models.json.`);
    return;
  }
  if (command !== undefined) throw new Error(`Unknown command ${command}.`);
  const names = values.split === undefined ? Object.keys(SPLITS) : [values.split];
  const { hash, models, rows } = loadOutcomes();
  const prompts = preparePrompts(rows);
  const options = { dataHash: hash, publicScores: loadPublicScores(), catalogAbility: readArtefact().header.catalogAbility, metrics: {} };
  for (const name of names) {
    const split = SPLITS[name];
    if (split === undefined) throw new Error(`Unknown split ${name}.`);
    const judged = judgeSplit(prompts, models, split, options, (group) => say(`${split.name}: ${group}`));
    const sets = Object.keys(models.datasets).flatMap((dataset): SetFigures[] => {
      const own = judged.filter(({ prompt }) => prompt.outcome.dataset === dataset);
      if (own.length === 0) return [];
      const groups = split === BY_FIELD ? [...new Set(own.map(({ group }) => group))] : [];
      const parts = groups.map((group) => own.filter((entry) => entry.group === group)).filter((part) => part.length >= PROMPTS_MIN);
      return [setFigures(dataset, own, models), ...parts.map((part) => setFigures(`  ${dataset}: ${part[0]?.group ?? ''}`, part, models))];
    });
    say(`\n${split.name}\n${tableOf(sets)}\n`);
  }
}
