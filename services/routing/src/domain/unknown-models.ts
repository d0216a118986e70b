/** Finds fallback models that are not served here. They are skipped, and without this the client would not be told. */
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isReachable } from '@signalbox/router-core/filters';
import { isAuto, type RouteRequest } from '@signalbox/router-core/request';

/** Such as `models.[1]`, or `model` if others answer in its place. Empty if the request names only one model. */
export function unknownModels(catalog: Catalog, { model, models, byokProviders }: RouteRequest): string[] {
  if (models.length === 0) return [];
  const isServed = (name: string): boolean => name === '' || isAuto(name) || findModel(catalog, name)?.endpoints.some((endpoint) => isReachable(endpoint, byokProviders)) === true;
  return [...(isServed(model) ? [] : ['model']), ...models.flatMap((name, index) => (isServed(name) ? [] : [`models.[${String(index)}]`]))];
}
