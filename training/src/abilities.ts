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
/** Samples by which an ability is held near what was expected of it. */
const ABILITY_HOLD = 20;
const LEVEL_HOLD = 20;
const SHARE_MIN = 0.02;

export function logit(share: number): number {
  const bounded = Math.min(1 - SHARE_MIN, Math.max(SHARE_MIN, share));
  return Math.log(bounded / (1 - bounded));
}

/** The mean log-odds of all cells, by their samples. */
function middleOf(cells: readonly CellMean[]): number {
  return cells.reduce((sum, cell) => sum + cell.samples * logit(cell.mean), 0) / Math.max(1, cells.reduce((sum, cell) => sum + cell.samples, 0));
}

/**
 * Splits means into ability of the model minus level of the group, weighing cells by their samples. `expected` is what else
 * says of a model's ability; without it, that is the middle. `levelHold`: samples by which a level is held near 0.
 */
export function additiveAbilities(cells: readonly CellMean[], expected: ReadonlyMap<string, number> = new Map(), levelHold = LEVEL_HOLD): Additive {
  const middle = middleOf(cells);
  const ability = new Map(cells.map(({ model }) => [model, expected.get(model) ?? middle]));
  const level = new Map(cells.map((cell) => [cell.group, 0]));
  const setLevels = (): void => {
    for (const group of level.keys()) {
      const own = cells.filter((cell) => cell.group === group);
      const sum = own.reduce((acc, cell) => acc + cell.samples * ((ability.get(cell.model) ?? middle) - logit(cell.mean)), 0);
      level.set(group, sum / own.reduce((acc, cell) => acc + cell.samples, levelHold));
    }
  };
  // Groups that share no model are tied together by what is expected alone: it sets the levels before outcomes set abilities.
  if (expected.size > 0) setLevels();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const model of ability.keys()) {
      const own = cells.filter((cell) => cell.model === model);
      const sum = own.reduce((acc, cell) => acc + cell.samples * (logit(cell.mean) + (level.get(cell.group) ?? 0)), ABILITY_HOLD * (expected.get(model) ?? middle));
      ability.set(model, sum / own.reduce((acc, cell) => acc + cell.samples, ABILITY_HOLD));
    }
    setLevels();
  }
  return { ability, level };
}
