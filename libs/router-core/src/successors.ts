/** Suggests replacements for a retired model. */
import type { Catalog, Model } from './catalog.js';
import { isProviderAllowed, isReachable, modelListFilter } from './filters.js';
import type { RouteRequest } from './request.js';

const SUCCESSORS_MAX = 3;

/** Models of the same maker that are served and that the caller may use, nearest in ability first; at most three ids. */
export function successorsOf(retired: Model, catalog: Catalog, terms: Pick<RouteRequest, 'allowModels' | 'denyModels' | 'allowProviders' | 'denyProviders' | 'byokProviders'>): string[] {
  const isAllowed = modelListFilter(catalog, terms, false);
  return catalog.models
    .filter((model) => model.ownedBy === retired.ownedBy && !model.isRetired && isAllowed(model) && model.endpoints.some((endpoint) => isReachable(endpoint, terms.byokProviders) && isProviderAllowed(endpoint.provider, terms)))
    .sort((left, right) => Math.abs(left.ability - retired.ability) - Math.abs(right.ability - retired.ability) || left.index - right.index)
    .slice(0, SUCCESSORS_MAX)
    .map((model) => model.id);
}
