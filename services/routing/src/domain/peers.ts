/** Which endpoints serve the same model, by the catalog in force. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { CatalogHolder } from './catalog-holder.js';

/** All endpoints that serve the endpoint's model on the operator's credentials, perhaps without itself; undefined for an endpoint that the catalog does not have. */
export type PeersOf = (endpointId: string) => readonly string[] | undefined;

export function createPeers(holder: Pick<CatalogHolder, 'current'>): PeersOf {
  let known: { readonly catalog: Catalog; readonly peers: ReadonlyMap<string, readonly string[]> } | undefined;
  return (endpointId) => {
    const catalog = holder.current()?.catalog;
    if (catalog === undefined) return undefined;
    if (known?.catalog !== catalog) known = { catalog, peers: indexPeers(catalog) };
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
