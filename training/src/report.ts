/** Prints figures as a table, beside the targets that they are held against. */
import type { SetFigures } from './validate.js';

const percent = (value: number): string => (Number.isFinite(value) ? `${(value * 100).toFixed(1)}%` : '-');
const figure = (value: number): string => value.toFixed(3);

const HEAD = ['set', 'prompts', 'APGR', '95% interval', 'by score', 'CPT50', 'CPT80', 'AIQlog', 'hull of singles', 'router - hull', '95% interval', 'best single', 'save@98', 'of hull', 'save@95', 'of hull'];

/** A table of one split. A random router has APGR 0.5, CPT50 50 % and CPT80 80 %. */
export function tableOf(sets: readonly SetFigures[]): string {
  const rows = sets.map(({ name, prompts, pair, apgr, apgrOfScore, many, advantage }) => [
    name, String(prompts), figure(pair.apgr), `${figure(apgr.low)}..${figure(apgr.high)}`, figure(apgrOfScore), percent(pair.cpt50), percent(pair.cpt80),
    many.router.aiqLog.toFixed(4), many.singles.aiqLog.toFixed(4), (many.router.aiqLog - many.singles.aiqLog).toFixed(4), `${advantage.low.toFixed(4)}..${advantage.high.toFixed(4)}`,
    figure(many.bestSingle), percent(many.router.save98), percent(many.singles.save98), percent(many.router.save95), percent(many.singles.save95),
  ]);
  const random = ['random', '', '0.500', '', '0.500', '50.0%', '80.0%', '', '', '', '', '', '', '', '', ''];
  const table = [HEAD, random, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')).join('\n');
}

/** Figures to keep in the artefact. */
export function metricsOf({ prompts, pair, apgr, many }: SetFigures): Record<string, number> {
  return {
    prompts, apgr: pair.apgr, apgrLow: apgr.low, apgrHigh: apgr.high, cpt50: pair.cpt50, cpt80: pair.cpt80,
    aiqLog: many.router.aiqLog, aiqLogOfSingles: many.singles.aiqLog, save98: many.router.save98, save95: many.router.save95,
  };
}
