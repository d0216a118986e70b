/** Prints figures as a table, beside the targets that they are held against. */
import type { QualityHeader } from '@signalbox/router-core/quality-artefact';
import type { SetFigures } from './validate.js';

const percent = (value: number): string => (Number.isFinite(value) ? `${(value * 100).toFixed(1)}%` : '-');
const figure = (value = NaN): string => (Number.isFinite(value) ? value.toFixed(3) : '-');

const HEAD = ['set', 'prompts', 'gap', 'APGR', '95% interval', 'by score', 'CPT50', 'CPT80', 'AIQlog', 'hull of singles', 'router - hull', '95% interval', 'best single', 'save@98', 'of hull', 'save@95', 'of hull'];

/** A table of one split. A random router has APGR 0.5, CPT50 50 % and CPT80 80 %. */
export function tableOf(sets: readonly SetFigures[]): string {
  const rows = sets.map(({ name, prompts, gap, pair, apgr, apgrOfScore, many, advantage }) => [
    name, String(prompts), figure(gap), figure(pair.apgr), `${figure(apgr.low)}..${figure(apgr.high)}`, figure(apgrOfScore), percent(pair.cpt50), percent(pair.cpt80),
    many.router.aiqLog.toFixed(4), many.singles.aiqLog.toFixed(4), (many.router.aiqLog - many.singles.aiqLog).toFixed(4), `${advantage.low.toFixed(4)}..${advantage.high.toFixed(4)}`,
    figure(many.bestSingle), percent(many.router.save98), percent(many.singles.save98), percent(many.router.save95), percent(many.singles.save95),
  ]);
  const random = ['random', '', '', '0.500', '', '0.500', '50.0%', '80.0%', '', '', '', '', '', '', '', '', ''];
  const table = [HEAD, random, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')).join('\n');
}

/** Figures to keep in the artefact. */
export function metricsOf({ prompts, pair, apgr, many, advantage }: SetFigures): Record<string, number> {
  return {
    prompts, apgr: pair.apgr, apgrLow: apgr.low, apgrHigh: apgr.high, cpt50: pair.cpt50, cpt80: pair.cpt80,
    aiqLog: many.router.aiqLog, aiqLogOfSingles: many.singles.aiqLog, advantageLow: advantage.low, advantageHigh: advantage.high,
    save98: many.router.save98, save95: many.router.save95, save98OfSingles: many.singles.save98, save95OfSingles: many.singles.save95,
  };
}

/** Required APGR by set. */
const TARGETS: Readonly<Record<string, number>> = { mmlu: 0.64, gsm8k: 0.58, 'mmlu-pro': 0.56 };

/** The metrics of an artefact as the table of docs/auto.md. */
function markdownOf(metrics: QualityHeader['metrics']): string {
  const whole = (value = NaN): string => (Number.isFinite(value) ? `${(value * 100).toFixed(0)} %` : '–');
  const signed = (value = NaN): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(4)}`;
  const rows = Object.entries(metrics).map(([set, of]) => [
    set, (of['prompts'] ?? NaN).toLocaleString('en-US'), `${figure(of['apgr'])} (${figure(of['apgrLow'])}–${figure(of['apgrHigh'])})`, TARGETS[set] === undefined ? '–' : String(TARGETS[set]), `${whole(of['cpt50'])} / ${whole(of['cpt80'])}`,
    `${signed((of['aiqLog'] ?? NaN) - (of['aiqLogOfSingles'] ?? NaN))} (${signed(of['advantageLow'])} to ${signed(of['advantageHigh'])})`,
    `${whole(of['save98'])}, ${whole(of['save98OfSingles'])}`, `${whole(of['save95'])}, ${whole(of['save95OfSingles'])}`,
  ]);
  const head = ['Set', 'Prompts', 'APGR (interval)', 'Target', 'CPT50 / CPT80', 'AIQlog, router − hull (interval)', 'save@98, hull’s', 'save@95, hull’s'];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const FIGURES = /(<!-- figures of the artefact[^>]*-->\n)[\s\S]*?(\n<!-- end of figures -->)/;

/** The document with the artefact's figures in their place. Throws when it has no place for them. */
export function withFigures(document: string, metrics: QualityHeader['metrics']): string {
  if (!FIGURES.test(document)) throw new Error('The document has no place for the figures.');
  return document.replace(FIGURES, (_whole, before: string, after: string) => before + markdownOf(metrics) + after);
}
