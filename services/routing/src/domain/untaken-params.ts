/** For a request with `require_parameters` that no endpoint can serve: finds the parameters that are the reason. */
import { fieldOfParam } from '@signalbox/kernel/param-names';
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isDropped, isReachable } from '@signalbox/router-core/filters';
import type { RouteRequest } from '@signalbox/router-core/request';

/** Fields that some endpoint of the named models does not accept; empty for `auto`, whose many endpoints lack all kinds of fields. */
export function untakenParams(catalog: Catalog, { model, models, needs, provider, byokProviders }: RouteRequest): string[] {
  if (!provider.requireParameters) return [];
  const endpoints = [model, ...models].flatMap((name) => findModel(catalog, name)?.endpoints ?? []).filter((endpoint) => isReachable(endpoint, byokProviders));
  return [...new Set(needs.params.filter((name) => endpoints.some((endpoint) => isDropped(name, endpoint, byokProviders))).map(fieldOfParam))];
}
