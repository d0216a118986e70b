/**
 * The one dialer for addresses that a client supplies: it resolves a name once, refuses it when any of its addresses
 * is not public, and connects to the very addresses it looked at.
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
/** Of one name, all servers and tries together: sooner than a fetch is called late, whose reason would be the client's. */
const LOOK_UP_MS = 4_000;
/** What is told of names that are wrong or have no address; anything else is told of servers that do not answer. */
const NO_SUCH_NAME: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
/** Of one name; tried in turn until one answers. */
const ADDRESSES_TRIED_MAX = 3;
const URL_CHARS_MAX = 8_192;
const PORTS_DEFAULT = [80, 443];

/** All addresses of a name, IPv4 and IPv6, as text. Answers none when it has none, or rejects with a code of `node:dns`. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface DialerOptions {
  readonly allow?: AllowList;
  /** Ports that a URL may name: 80 and 443 by default. Hosts of the allow list have their own. */
  readonly ports?: readonly number[];
  /** For tests. By default the name servers are asked, and for hosts of the allow list the system (its hosts file included). */
  readonly resolve?: Resolve;
  /** For tests: in place of the system's name servers. */
  readonly nameServers?: readonly string[];
  readonly clock?: Clock;
}

export type Checked = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly refusal: Refusal };

export interface Dialer {
  /** Everything that the text alone can tell; no name is looked up. A URL that passes may still be refused when it is dialed. */
  check(text: string): Checked;
  /** undici's `connect` option of a Client, Pool or Agent: every connection is checked anew. Refusals arrive as RefusedError. */
  readonly connect: Connector;
}

function portOf(url: { readonly port: string; readonly protocol: string }): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}

/** `[::1]` of a URL, or `::1`, as bare text. */
function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** Asks the name servers themselves: unlike getaddrinfo it holds no thread while a stranger's server is slow, and reads no hosts file. */
async function askNameServers(hostname: string, clock: Clock, servers?: readonly string[]): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  const late = clock.setTimer(LOOK_UP_MS, () => resolver.cancel(), { unref: true });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  late.cancel();
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const failed = answers.find((answer) => answer.status === 'rejected' && !isNoSuchName(answer.reason));
  // Half an answer is one: what it holds is looked at, and nothing else is connected to.
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
    // The parser drops tabs and newlines, turns backslashes round and trims: what it had to mend is refused.
    if (text.length > URL_CHARS_MAX || /[\u0000- \\\u007f]/.test(text) || !URL.canParse(text)) return refuse('bad-url');
    const url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return refuse('scheme');
    if (url.username !== '' || url.password !== '' || url.hostname === '') return refuse('bad-url');
    const port = portOf(url);
    const isNamed = allow.hasHost(url.hostname, port);
    if (!isNamed && !ports.includes(port)) return refuse('port');
    const address = parseAddress(bare(url.hostname));
    if (address === undefined) return { ok: true, url };
    // 0x7f.1, 2130706433, 127.1, 0177.0.0.1 and percent-encoded or full-width digits all become an IPv4 address.
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
    // One address inside spoils the name: mixed answers are how a name is made to change its meaning.
    if (!addresses.every((address) => permits(address, isNamed))) throw new RefusedError('address');
    return addresses.slice(0, ADDRESSES_TRIED_MAX);
  };

  const dial = buildConnector({ timeout: CONNECT_MS });
  const connect: Connector = (options, callback) => {
    const hostname = bare(options.hostname);
    // Certificates are for the name, connections to the address.
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
