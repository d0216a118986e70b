/** Models that a server of the operator's holds and the catalog has no endpoint for: nobody can ask for them. */
import type { Catalog } from '@signalbox/router-core/catalog';

/** As `provider/model`, in the provider's own names and the order in which they were told. */
export function unlistedOffers({ endpoints }: Catalog, offers: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const listed = new Set(endpoints.map(({ provider, providerModelId }) => `${provider}/${providerModelId}`));
  return [...offers].flatMap(([provider, models]) => [...models].filter((model) => model !== '').map((model) => `${provider}/${model}`)).filter((name) => !listed.has(name));
}
