/** Of a model that the catalog has and nobody here serves: who would, if there were a credential. */
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isProviderAllowed, isReachable, modelListFilter } from '@signalbox/router-core/filters';
import { isAuto } from '@signalbox/router-core/request';
import type { ListQuery } from './model-list.js';

/** Ids of providers, in the catalog's order; empty for `auto`, and for a model that the catalog does not know or the key may not use. */
export function unsetProviders(catalog: Catalog, request: ListQuery): string[] {
  const name = request.model;
  const model = isAuto(name) ? undefined : findModel(catalog, name);
  if (model === undefined || model.isRetired || !modelListFilter(catalog, request, false)(model)) return [];
  const unset = model.endpoints.filter((endpoint) => endpoint.isServable && !isReachable(endpoint, request.byokProviders) && isProviderAllowed(endpoint.provider, request));
  return [...new Set(unset.map(({ provider }) => provider))];
}
