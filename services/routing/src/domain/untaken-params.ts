/** Of a request that nobody may answer since all its parameters are required: which of them stand in the way. */
import { fieldOfParam } from '@signalbox/kernel/param-names';
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isDropped, isReachable } from '@signalbox/router-core/filters';
import type { RouteRequest } from '@signalbox/router-core/request';

/** Fields that some endpoint of the models named does not take; empty for `auto`, whose endpoints lack all sorts of them. */
export function untakenParams(catalog: Catalog, { model, models, needs, provider, byokProviders }: RouteRequest): string[] {
  if (!provider.requireParameters) return [];
  const endpoints = [model, ...models].flatMap((name) => findModel(catalog, name)?.endpoints ?? []).filter((endpoint) => isReachable(endpoint, byokProviders));
  return [...new Set(needs.params.filter((name) => endpoints.some((endpoint) => isDropped(name, endpoint, byokProviders))).map(fieldOfParam))];
}
