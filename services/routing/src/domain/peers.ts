/** Groups endpoints of the catalog in force by model and by credentials. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { CatalogHolder } from './catalog-holder.js';

/** All endpoints that serve the endpoint's model with the operator's credentials, which may not include the endpoint itself; undefined if the catalog does not have the endpoint. */
export type PeersOf = (endpointId: string) => readonly string[] | undefined;

/** Endpoints that are called with the same operator credentials. */
export interface Credentials {
  /** All endpoints of this endpoint's provider; undefined if the catalog does not have the endpoint. */
  readonly siblingsOf: PeersOf;
  readonly endpointsOf: (provider: string) => readonly string[];
}

type Index = ReadonlyMap<string, readonly string[]>;

export function createPeers(holder: Pick<CatalogHolder, 'current'>): PeersOf {
  const index = indexed(holder, indexPeers);
  return (endpointId) => index()?.get(endpointId);
}

/** A report about all of the operator's credentials at a provider applies to each of these endpoints. */
export function createSiblings(holder: Pick<CatalogHolder, 'current'>): Credentials {
  const byProvider = indexed(holder, indexProviders);
  const providers = indexed(holder, ({ endpoints }) => new Map(endpoints.map(({ id, provider }) => [id, [provider]])));
  const endpointsOf = (provider: string): readonly string[] => byProvider()?.get(provider) ?? [];
  return { siblingsOf: (endpointId) => providers()?.get(endpointId)?.flatMap(endpointsOf), endpointsOf };
}

/** Rebuilds the index when the catalog has changed. */
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
