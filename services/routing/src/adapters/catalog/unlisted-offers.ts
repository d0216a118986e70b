/** Models on an operator's own server for which the catalog has no endpoint, so that no client can use them. */
import type { Catalog } from '@signalbox/router-core/catalog';

/** As `provider/model`, with the provider's own names, in the order of the offers. */
export function unlistedOffers({ endpoints }: Catalog, offers: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const listed = new Set(endpoints.map(({ provider, providerModelId }) => `${provider}/${providerModelId}`));
  return [...offers].flatMap(([provider, models]) => [...models].filter((model) => model !== '').map((model) => `${provider}/${model}`)).filter((name) => !listed.has(name));
}
