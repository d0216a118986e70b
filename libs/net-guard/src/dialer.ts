/**
 * The only dialer for addresses supplied by clients: resolves a name once, refuses it if any of its addresses is not
 * public, and connects only to the addresses that it has checked.
 */
import { lookup, Resolver } from 'node:dns/promises';
import type { Clock } from '@signalbox/kernel/clock';
import { systemClock } from '@signalbox/runtime/clock';
import { buildConnector, type Connector } from '@signalbox/runtime/http-client';
import { parseAddress } from './address.js';
import { createAllowList, type AllowList } from './allow-list.js';
import { refusal, RefusedError, type Refusal } from './refusal.js';

const CONNECT_MS = 3_000;
const RESOLVE_MS = 2_000;
const RESOLVE_TRIES = 2;
/** Time limit for resolving one name, over all servers and attempts. Shorter than the time limit of a fetch, which would be reported as the client's fault. */
const LOOK_UP_MS = 4_000;
/** Error codes for names that are invalid or have no address; all others mean that name servers failed. */
const NO_SUCH_NAME: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
/** Most addresses of one name that are tried, one after the other. */
const ADDRESSES_TRIED_MAX = 3;
const URL_CHARS_MAX = 8_192;
const PORTS_DEFAULT = [80, 443];

/** All addresses of a name, IPv4 and IPv6, as text. Resolves to an empty list or rejects with a code of `node:dns` if there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface DialerOptions {
  readonly allow?: AllowList;
  /** Ports that a URL may use: 80 and 443 by default. Hosts of the allow list have their own. */
  readonly ports?: readonly number[];
  /** For tests. By default names are resolved by the name servers; hosts of the allow list by the system, including its hosts file. */
  readonly resolve?: Resolve;
  /** For tests: replaces the system's name servers. */
  readonly nameServers?: readonly string[];
  readonly clock?: Clock;
}

export type Checked = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly refusal: Refusal };

export interface Dialer {
  /** Checks the URL's text without resolving its name. A URL that passes may still be refused when it is dialed. */
  check(text: string): Checked;
  /** For undici's `connect` option of a Client, Pool or Agent: checks every connection. Refusals arrive as RefusedError. */
  readonly connect: Connector;
}

function portOf(url: { readonly port: string; readonly protocol: string }): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}

/** Removes the brackets of an IPv6 address in a URL. */
function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** Queries the name servers directly: unlike getaddrinfo, this does not block a thread while someone's name server is slow, and it ignores the hosts file. */
async function askNameServers(hostname: string, clock: Clock, servers?: readonly string[]): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  const late = clock.setTimer(LOOK_UP_MS, () => resolver.cancel(), { unref: true });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  late.cancel();
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const failed = answers.find((answer) => answer.status === 'rejected' && !isNoSuchName(answer.reason));
  // One of the two answers is enough: only addresses in it are checked and connected to.
  if (addresses.length === 0 && failed?.status === 'rejected') throw failed.reason;
  return addresses;
}

const isNoSuchName = (error: unknown): boolean => NO_SUCH_NAME.has((error as { readonly code?: unknown } | undefined)?.code);

async function askSystem(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

export function createDialer({ allow = createAllowList(), ports = PORTS_DEFAULT, resolve, nameServers, clock = systemClock }: DialerOptions = {}): Dialer {
  const permits = (address: string, isNamed: boolean): boolean => {
    const bytes = parseAddress(address);
    return bytes !== undefined && allow.permits(bytes, isNamed);
  };

  const check = (text: string): Checked => {
    const refuse = (reason: Refusal['reason']): Checked => ({ ok: false, refusal: refusal(reason) });
    // The URL parser drops tabs and newlines, replaces backslashes and trims. Refuse texts that it would change.
    if (text.length > URL_CHARS_MAX || /[\u0000- \\\u007f]/.test(text) || !URL.canParse(text)) return refuse('bad-url');
    const url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return refuse('scheme');
    if (url.username !== '' || url.password !== '' || url.hostname === '') return refuse('bad-url');
    const port = portOf(url);
    const isNamed = allow.hasHost(url.hostname, port);
    if (!isNamed && !ports.includes(port)) return refuse('port');
    const address = parseAddress(bare(url.hostname));
    if (address === undefined) return { ok: true, url };
    // 0x7f.1, 2130706433, 127.1, 0177.0.0.1 and percent-encoded or full-width digits would all become an IPv4 address.
    if (address.length === 4 && !new RegExp(`^https?://${url.hostname.replaceAll('.', '\\.')}(?=[:/?#]|$)`, 'i').test(text)) return refuse('bad-url');
    return permits(bare(url.hostname), isNamed) ? { ok: true, url } : refuse('address');
  };

  /** Addresses to try, in order. Throws RefusedError. */
  const addressesOf = async (hostname: string, port: number): Promise<readonly string[]> => {
    const isNamed = allow.hasHost(hostname.includes(':') ? `[${hostname}]` : hostname, port);
    if (!isNamed && !ports.includes(port)) throw new RefusedError('port');
    let addresses: readonly string[] = [hostname];
    if (parseAddress(hostname) === undefined) {
      try {
        addresses = await (resolve ?? (isNamed ? askSystem : (name: string) => askNameServers(name, clock, nameServers)))(hostname);
      } catch (error) {
        if (!isNoSuchName(error)) throw new RefusedError('look-up-failed');
        addresses = [];
      }
    }
    if (addresses.length === 0) throw new RefusedError('unresolved');
    // Refuse the name if any address is not permitted: mixed answers are used for DNS rebinding.
    if (!addresses.every((address) => permits(address, isNamed))) throw new RefusedError('address');
    return addresses.slice(0, ADDRESSES_TRIED_MAX);
  };

  const dial = buildConnector({ timeout: CONNECT_MS });
  const connect: Connector = (options, callback) => {
    const hostname = bare(options.hostname);
    // The certificate must match the name, although the connection goes to the address.
    const servername = options.servername ?? (parseAddress(hostname) === undefined ? hostname : undefined);
    const tryNext = (left: readonly string[]): void => {
      const [address, ...rest] = left;
      if (address === undefined) {
        callback(new RefusedError('unreachable'), null);
        return;
      }
      dial({ ...options, hostname: address, ...(servername === undefined ? {} : { servername }) }, (...[error, socket]) => {
        if (error === null) callback(null, socket);
        else tryNext(rest);
      });
    };
    if (options.protocol !== 'http:' && options.protocol !== 'https:') {
      callback(new RefusedError('scheme'), null);
      return;
    }
    addressesOf(hostname, portOf(options)).then(tryNext, (error: unknown) => callback(error instanceof Error ? error : new RefusedError('unreachable'), null));
  };

  return { check, connect };
}
