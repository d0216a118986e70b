/** `npm run routing:train`: validates, trains on everything, writes the artefact that the routing service ships and its figures into the docs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { encodeArtefact } from '@signalbox/router-core/quality-artefact';
import { catalogScale } from './catalog-scale.js';
import { fit } from './fit.js';
import { loadOutcomes } from './outcomes.js';
import { preparePrompts } from './prompts.js';
import { generalAbilities, loadPublicScores } from './public-scores.js';
import { metricsOf, tableOf, withFigures } from './report.js';
import { ARTEFACT_PATH, DOCUMENT_PATH } from './shipped.js';
import { cellMeans } from './targets.js';
import { BY_QUESTION, judgeSplit, setFigures } from './validate.js';

/** `--no-validation` leaves out the cross-validation, whose figures the artefact carries. */
export function train(argv: readonly string[], say: (line: string) => void): void {
  const { hash, models, rows } = loadOutcomes();
  const prompts = preparePrompts(rows);
  const publicScores = loadPublicScores();
  const catalogAbility = catalogScale(generalAbilities(cellMeans(prompts, models), publicScores));
  const options = { dataHash: hash, publicScores, catalogAbility, metrics: {} };
  let metrics: Record<string, Record<string, number>> = {};
  if (!argv.includes('--no-validation')) {
    const judged = judgeSplit(prompts, models, BY_QUESTION, options, (group) => say(`validating, fold ${group}`));
    const sets = Object.keys(models.datasets).map((name) => setFigures(name, judged.filter(({ prompt }) => prompt.outcome.dataset === name), models));
    say(tableOf(sets));
    metrics = Object.fromEntries(sets.map((set) => [set.name, metricsOf(set)]));
  }
  say('training on all prompts');
  const bytes = encodeArtefact(fit(prompts, models, { ...options, metrics }));
  writeFileSync(ARTEFACT_PATH, bytes);
  if (!argv.includes('--no-validation')) writeFileSync(DOCUMENT_PATH, withFigures(readFileSync(DOCUMENT_PATH, 'utf8'), metrics));
  say(`wrote ${String(bytes.length)} bytes`);
}
