/** The simulator: a provider for trying the gateway out, which the catalog calls so. */
import type { ModelRecord } from './types.js';

export const SIMULATOR = 'simulator';

/** What chooses among the models is listed beside them, as if the gateway had made it. */
const GATEWAY = 'signalbox';

/** True when there are models, and the simulator has made each. */
export function isOnlySimulator(models: readonly Pick<ModelRecord, 'owned_by'>[]): boolean {
  const makers = new Set(models.map(({ owned_by: maker }) => maker));
  makers.delete(GATEWAY);
  return makers.size === 1 && makers.has(SIMULATOR);
}

/** Providers at which an account may have a key of its own: the simulator needs none. */
export function providersWithKeys(providers: readonly string[]): readonly string[] {
  return providers.filter((provider) => provider !== SIMULATOR);
}
