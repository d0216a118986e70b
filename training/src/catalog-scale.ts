/** How the catalog's abilities translate into log-odds: a line through the models that both know. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { abilitiesOf, type Scores } from '@signalbox/router-core/ability';

const CATALOG = fileURLToPath(new URL('../../services/routing/catalog/models.json', import.meta.url));
/** Log-odds between ability 0 and 1 where too few models are shared to tell. */
const SLOPE_PRIOR = 5;
/** Shared models by which the slope is held at the prior. */
const SLOPE_HOLD = 3;

interface CatalogRow {
  readonly id: string;
  readonly simulated_ability?: number;
  readonly priors?: { readonly quality?: { readonly artificial_analysis?: { readonly intelligence_index?: number | null } | null; readonly lmarena_text_elo?: { readonly value: number } | null } | null } | null;
}

function scoresOf({ priors }: CatalogRow): Scores {
  const index = priors?.quality?.artificial_analysis?.intelligence_index;
  const elo = priors?.quality?.lmarena_text_elo?.value;
  return { ...(typeof index === 'number' ? { artificial_analysis: index } : {}), ...(typeof elo === 'number' ? { lmarena: elo } : {}) };
}

/** `offset + slope × ability`, from abilities in log-odds by model name. */
export function catalogScale(measured: ReadonlyMap<string, number>): { readonly slope: number; readonly offset: number } {
  const { models } = JSON.parse(readFileSync(CATALOG, 'utf8')) as { readonly models: readonly CatalogRow[] };
  const abilities = abilitiesOf(models.map(scoresOf), 'artificial_analysis');
  const shared = models.flatMap(({ id }, i) => {
    const logOdds = measured.get(id.slice(id.indexOf('/') + 1));
    return logOdds === undefined ? [] : [{ x: abilities[i] ?? 0, y: logOdds }];
  });
  const meanX = shared.reduce((sum, { x }) => sum + x, 0) / Math.max(1, shared.length);
  const meanY = shared.reduce((sum, { y }) => sum + y, 0) / Math.max(1, shared.length);
  let product = 0;
  let square = 0;
  for (const { x, y } of shared) {
    product += (x - meanX) * (y - meanY);
    square += (x - meanX) ** 2;
  }
  const hold = (SLOPE_HOLD * square) / Math.max(1, shared.length) + 1e-3;
  const slope = (product + hold * SLOPE_PRIOR) / (square + hold);
  return { slope, offset: meanY - slope * meanX };
}
