/** Destinations besides the public internet that the operator permits for client-supplied URLs. */
import { isInNetwork, parseNetwork, specialRangeOf, type AddressBytes, type Network } from './address.js';

export interface AllowList {
  /** True if the list names the host with that port. `hostname` as in `URL.hostname`. */
  hasHost(hostname: string, port: number): boolean;
  /** True for a public address, one in a range that the operator named, or any address of a named host; never for metadata services. */
  permits(address: AddressBytes, isNamedHost: boolean): boolean;
}

const HOST = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;
const DEFAULT_PORTS = [80, 443];

/** Text of an invalid entry for an error message; only its length if it may contain a secret (such as a URL with a user) or several lines. */
const shownOf = (text: string): string => (/^[\w.:/[\]* -]{1,80}$/.test(text) ? text : `a text of ${String(text.length)} characters`);

/**
 * Entries: `10.1.0.0/16` (addresses, on the usual ports), `files.internal` (ports 80 and 443), `files.internal:8443`,
 * `127.0.0.1:9000`, `[fd00::1]:9000`. Throws an Error that names the entry which is none of these.
 */
export function createAllowList(entries: readonly string[] = []): AllowList {
  const networks: Network[] = [];
  const hosts = new Set<string>();
  for (const entry of entries) {
    const text = entry.trim().toLowerCase();
    const network = text.includes('/') ? parseNetwork(text) : undefined;
    const host = HOST.exec(text);
    if (network !== undefined) networks.push(network);
    else if (host !== null && Number(host[2] ?? 0) <= 65_535)
      for (const port of host[2] === undefined ? DEFAULT_PORTS : [Number(host[2])]) hosts.add(`${host[1] ?? ''}:${String(port)}`);
    else throw new Error(`neither a host, host:port nor a range of addresses: ${shownOf(text)}`);
  }
  return {
    hasHost: (hostname, port) => hosts.has(`${hostname}:${String(port)}`),
    permits: (address, isNamedHost) => {
      const range = specialRangeOf(address);
      return range === undefined || (range !== 'metadata' && (isNamedHost || networks.some((network) => isInNetwork(address, network))));
    },
  };
}
