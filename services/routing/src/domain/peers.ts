/** Which endpoints serve the same model, by the catalog in force. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { CatalogHolder } from './catalog-holder.js';

/** All endpoints that serve the endpoint's model on the operator's credentials, perhaps without itself; undefined for an endpoint that the catalog does not have. */
export type PeersOf = (endpointId: string) => readonly string[] | undefined;

export function createPeers(holder: Pick<CatalogHolder, 'current'>): PeersOf {
  return lookedUp(holder, indexPeers);
}

/** All endpoints that the operator's credentials at the endpoint's provider serve: what is said of all of those holds for each of these. */
export function createSiblings(holder: Pick<CatalogHolder, 'current'>): PeersOf {
  return lookedUp(holder, indexSiblings);
}

function lookedUp(holder: Pick<CatalogHolder, 'current'>, index: (catalog: Catalog) => ReadonlyMap<string, readonly string[]>): PeersOf {
  let known: { readonly catalog: Catalog; readonly peers: ReadonlyMap<string, readonly string[]> } | undefined;
  return (endpointId) => {
    const catalog = holder.current()?.catalog;
    if (catalog === undefined) return undefined;
    if (known?.catalog !== catalog) known = { catalog, peers: index(catalog) };
    return known.peers.get(endpointId);
  };
}

function indexPeers({ models }: Catalog): ReadonlyMap<string, readonly string[]> {
  const peers = new Map<string, readonly string[]>();
  for (const { endpoints } of models) {
    const serving = endpoints.filter((endpoint) => endpoint.isServable && endpoint.hasManagedCredential).map(({ id }) => id);
    for (const { id } of endpoints) peers.set(id, serving);
  }
  return peers;
}

function indexSiblings({ endpoints }: Catalog): ReadonlyMap<string, readonly string[]> {
  const byProvider = new Map<string, string[]>();
  const siblings = new Map<string, readonly string[]>();
  for (const { id, provider, isServable, hasManagedCredential } of endpoints) {
    const ids = byProvider.get(provider) ?? [];
    byProvider.set(provider, ids);
    if (isServable && hasManagedCredential) ids.push(id);
    siblings.set(id, ids);
  }
  return siblings;
}
