/** Of the models to fall back to, those that nobody here serves: they are passed over, and nobody else would say so. */
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isReachable } from '@signalbox/router-core/filters';
import { isAuto, type RouteRequest } from '@signalbox/router-core/request';

/** Such as `models.[1]`, and `model` where others answer in its place. Empty where one model alone is asked for. */
export function unknownModels(catalog: Catalog, { model, models, byokProviders }: RouteRequest): string[] {
  if (models.length === 0) return [];
  const isServed = (name: string): boolean => name === '' || isAuto(name) || findModel(catalog, name)?.endpoints.some((endpoint) => isReachable(endpoint, byokProviders)) === true;
  return [...(isServed(model) ? [] : ['model']), ...models.flatMap((name, index) => (isServed(name) ? [] : [`models.[${String(index)}]`]))];
}
