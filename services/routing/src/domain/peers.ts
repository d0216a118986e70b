/** Which endpoints serve the same model, or are asked with the same credentials, by the catalog in force. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { CatalogHolder } from './catalog-holder.js';

/** All endpoints that serve the endpoint's model on the operator's credentials, perhaps without itself; undefined for an endpoint that the catalog does not have. */
export type PeersOf = (endpointId: string) => readonly string[] | undefined;

/** Endpoints that are asked with the same credentials of the operator's. */
export interface Credentials {
  /** Those of the provider of this endpoint; undefined for an endpoint that the catalog does not have. */
  readonly siblingsOf: PeersOf;
  readonly endpointsOf: (provider: string) => readonly string[];
}

type Index = ReadonlyMap<string, readonly string[]>;

export function createPeers(holder: Pick<CatalogHolder, 'current'>): PeersOf {
  const index = indexed(holder, indexPeers);
  return (endpointId) => index()?.get(endpointId);
}

/** What is said of all of the operator's credentials at a provider holds for each of these. */
export function createSiblings(holder: Pick<CatalogHolder, 'current'>): Credentials {
  const byProvider = indexed(holder, indexProviders);
  const providers = indexed(holder, ({ endpoints }) => new Map(endpoints.map(({ id, provider }) => [id, [provider]])));
  const endpointsOf = (provider: string): readonly string[] => byProvider()?.get(provider) ?? [];
  return { siblingsOf: (endpointId) => providers()?.get(endpointId)?.flatMap(endpointsOf), endpointsOf };
}

/** Made anew when the catalog has changed. */
function indexed(holder: Pick<CatalogHolder, 'current'>, make: (catalog: Catalog) => Index): () => Index | undefined {
  let known: { readonly catalog: Catalog; readonly index: Index } | undefined;
  return () => {
    const catalog = holder.current()?.catalog;
    if (catalog === undefined) return undefined;
    if (known?.catalog !== catalog) known = { catalog, index: make(catalog) };
    return known.index;
  };
}

function indexPeers({ models }: Catalog): Index {
  const peers = new Map<string, readonly string[]>();
  for (const { endpoints } of models) {
    const serving = endpoints.filter((endpoint) => endpoint.isServable && endpoint.hasManagedCredential).map(({ id }) => id);
    for (const { id } of endpoints) peers.set(id, serving);
  }
  return peers;
}

function indexProviders({ endpoints }: Catalog): Index {
  const byProvider = new Map<string, string[]>();
  for (const { id, provider, isServable, hasManagedCredential } of endpoints) {
    if (!isServable || !hasManagedCredential) continue;
    const ids = byProvider.get(provider);
    if (ids === undefined) byProvider.set(provider, [id]);
    else ids.push(id);
  }
  return byProvider;
}
