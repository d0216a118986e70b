/** Abilities of models and levels of data sets, as log-odds that add up. */

export interface CellMean {
  readonly model: string;
  readonly group: string;
  /** Share of right answers. */
  readonly mean: number;
  readonly samples: number;
}

export interface Additive {
  readonly ability: ReadonlyMap<string, number>;
  /** Log-odds that a group takes from every model. */
  readonly level: ReadonlyMap<string, number>;
}

const SWEEPS = 200;
/** Samples by which an ability, or a level, is held near the middle. */
const ABILITY_HOLD = 20;
const LEVEL_HOLD = 20;
const SHARE_MIN = 0.02;

export function logit(share: number): number {
  const bounded = Math.min(1 - SHARE_MIN, Math.max(SHARE_MIN, share));
  return Math.log(bounded / (1 - bounded));
}

/** Splits means into ability of the model minus level of the group, weighing cells by their samples. */
export function additiveAbilities(cells: readonly CellMean[]): Additive {
  const total = cells.reduce((sum, cell) => sum + cell.samples, 0);
  const middle = cells.reduce((sum, cell) => sum + cell.samples * logit(cell.mean), 0) / Math.max(1, total);
  const ability = new Map(cells.map((cell) => [cell.model, middle]));
  const level = new Map(cells.map((cell) => [cell.group, 0]));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const model of ability.keys()) {
      const own = cells.filter((cell) => cell.model === model);
      const sum = own.reduce((acc, cell) => acc + cell.samples * (logit(cell.mean) + (level.get(cell.group) ?? 0)), ABILITY_HOLD * middle);
      ability.set(model, sum / own.reduce((acc, cell) => acc + cell.samples, ABILITY_HOLD));
    }
    for (const group of level.keys()) {
      const own = cells.filter((cell) => cell.group === group);
      const sum = own.reduce((acc, cell) => acc + cell.samples * ((ability.get(cell.model) ?? middle) - logit(cell.mean)), 0);
      level.set(group, sum / own.reduce((acc, cell) => acc + cell.samples, LEVEL_HOLD));
    }
  }
  return { ability, level };
}
