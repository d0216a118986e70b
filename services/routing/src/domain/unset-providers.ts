/** Finds providers that could serve a request if there were a credential for them: for a model that nothing serves here, and for providers that a request insists on. */
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { isProviderAllowed, isReachable, modelListFilter } from '@signalbox/router-core/filters';
import { isAuto, type RouteRequest } from '@signalbox/router-core/request';
import type { ListQuery } from './model-list.js';

/** Provider ids, in the catalog's order; empty for `auto`, and for a model that the catalog does not have or the key may not use. */
export function unsetProviders(catalog: Catalog, request: ListQuery): string[] {
  const name = request.model;
  const model = isAuto(name) ? undefined : findModel(catalog, name);
  if (model === undefined || model.isRetired || !modelListFilter(catalog, request, false)(model)) return [];
  const unset = model.endpoints.filter((endpoint) => endpoint.isServable && !isReachable(endpoint, request.byokProviders) && isProviderAllowed(endpoint.provider, request));
  return [...new Set(unset.map(({ provider }) => provider))];
}

export interface Wishes {
  /** Providers that serve a requested model and lack only a credential. */
  readonly unset: string[];
  /** Providers that do not serve any requested model, or no longer. */
  readonly absent: string[];
}

/** What is missing at the providers that the request insists on. Ids, in the request's order; providers that are not in `known` are in neither list. */
export function unmetWishes(catalog: Catalog, request: RouteRequest, known: ReadonlySet<string>): Wishes {
  const { only, order, allowFallbacks } = request.provider;
  const wished = [...new Set(only.length > 0 ? only : allowFallbacks ? [] : order)].filter((provider) => known.has(provider) && isProviderAllowed(provider, request));
  if (wished.length === 0) return { unset: [], absent: [] };
  const names = [request.model, ...request.models];
  const isAllowed = { auto: modelListFilter(catalog, request, true), named: modelListFilter(catalog, request, false) };
  const asked = new Set(names.flatMap((name) => (isAuto(name) ? catalog.models.filter(isAllowed.auto) : [findModel(catalog, name)].filter((model) => model !== undefined && isAllowed.named(model)))));
  const endpoints = [...asked].flatMap((model) => (model === undefined || model.isRetired ? [] : model.endpoints.filter(({ isServable }) => isServable)));
  const at = (provider: string) => endpoints.filter((endpoint) => endpoint.provider === provider);
  return {
    unset: wished.filter((provider) => at(provider).length > 0 && !at(provider).some((endpoint) => isReachable(endpoint, request.byokProviders))),
    // If no requested model is left, the providers are not the reason.
    absent: endpoints.length === 0 ? [] : wished.filter((provider) => at(provider).length === 0),
  };
}
