/** Parses IP addresses, and classifies those that clients' URLs must not lead to. */
import { isIPv4, isIPv6 } from 'node:net';

/** Why an address is not on the public internet. */
export type SpecialRange =
  'unspecified' | 'loopback' | 'private' | 'cgnat' | 'link-local' | 'metadata' | 'multicast' | 'documentation' | 'benchmarking' | 'embedded-ipv4' | 'reserved';

/** 4 or 16 bytes, network order. */
export type AddressBytes = Uint8Array;

/** A range of addresses of one family. */
export interface Network {
  readonly base: AddressBytes;
  /** Prefix length. */
  readonly bits: number;
}

function bytesOfV6(text: string): AddressBytes {
  const lastColon = text.lastIndexOf(':');
  const tail = text.slice(lastColon + 1);
  // An embedded dotted IPv4 address replaces the last two groups.
  const dotted = tail.includes('.') ? tail.split('.').map(Number) : undefined;
  const [a = 0, b = 0, c = 0, d = 0] = dotted ?? [];
  const groupsText = dotted === undefined ? text : `${text.slice(0, lastColon + 1)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  const [head = '', rest] = groupsText.split('::');
  const groups = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const before = groups(head);
  const after = rest === undefined ? [] : groups(rest);
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

/** Bytes of a dotted-decimal IPv4 or an IPv6 address; undefined for anything else, including zone ids and unusual notations. */
export function parseAddress(text: string): AddressBytes | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.').map(Number));
  return isIPv6(text) && !text.includes('%') ? bytesOfV6(text) : undefined;
}

/** Parses `10.0.0.0/8` or a single address; undefined if it is neither, or has bits set beyond the prefix. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/');
  const base = parseAddress(address);
  if (base === undefined || more.length > 0 || (length !== undefined && !/^\d{1,3}$/.test(length))) return undefined;
  const width = base.length * 8;
  const bits = length === undefined ? width : Number(length);
  if (bits > width) return undefined;
  const network = { base, bits };
  for (let bit = bits; bit < width; bit += 1) if (((base[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0) return undefined;
  return network;
}

export function isInNetwork(address: AddressBytes, { base, bits }: Network): boolean {
  if (address.length !== base.length) return false;
  const whole = bits >> 3;
  for (let at = 0; at < whole; at += 1) if (address[at] !== base[at]) return false;
  const left = bits & 7;
  return left === 0 || ((address[whole] ?? 0) ^ (base[whole] ?? 0)) >> (8 - left) === 0;
}

/** Metadata services of cloud hosts, which return credentials or settings; some are in public ranges. */
const METADATA = [
  '169.254.169.254', // AWS, Azure, Google, DigitalOcean, Oracle, OpenStack.
  '169.254.170.2', // AWS ECS task credentials.
  '169.254.170.23', // AWS EKS pod identity.
  '100.100.100.200', // Alibaba.
  '192.0.0.192', // Oracle, old.
  '168.63.129.16', // Azure's host agent.
  'fd00:ec2::254', // AWS.
  'fd00:ec2::23', // AWS EKS pod identity.
  'fd20:ce::254', // Google.
] as const;

/** IANA's special-purpose registries; the first match names the range. */
const SPECIAL: readonly (readonly [string, SpecialRange])[] = [
  ...METADATA.map((address) => [address, 'metadata'] as const),
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'cgnat'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'reserved'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', 'embedded-ipv4'], // 6to4 relays.
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::/96', 'embedded-ipv4'], // IPv4-compatible.
  ['::ffff:0:0/96', 'embedded-ipv4'], // IPv4-mapped.
  ['::ffff:0:0:0/96', 'embedded-ipv4'], // IPv4-translated.
  ['64:ff9b::/96', 'embedded-ipv4'], // NAT64.
  ['64:ff9b:1::/48', 'embedded-ipv4'], // NAT64 of one's own network.
  ['2001::/32', 'embedded-ipv4'], // Teredo.
  ['2001:2::/48', 'benchmarking'],
  ['2001::/23', 'reserved'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', 'embedded-ipv4'], // 6to4.
  ['3fff::/20', 'documentation'],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'private'],
  ['ff00::/8', 'multicast'],
];

const SPECIAL_NETWORKS: readonly (readonly [Network, SpecialRange])[] = SPECIAL.map(([text, range]) => {
  const network = parseNetwork(text);
  if (network === undefined) throw new Error(`not a network: ${text}`);
  return [network, range] as const;
});

/** Publicly routed IPv6 unicast; everything outside is reserved. */
const GLOBAL_UNICAST: Network = { base: Uint8Array.of(0x20, ...new Array<number>(15).fill(0)), bits: 3 };

/** ISATAP embeds an IPv4 address after 0000:5efe or 0200:5efe, under any prefix. */
function isIsatap(address: AddressBytes): boolean {
  return address.length === 16 && ((address[8] ?? 0) & 0xfd) === 0 && address[9] === 0 && address[10] === 0x5e && address[11] === 0xfe;
}

/** Where the bytes of an IPv4 address stand in an IPv6 address of a network. */
interface Embedding {
  readonly network: Network;
  readonly places: readonly (readonly number[])[];
  /** With all bits inverted. */
  readonly isInverted?: boolean;
}

const LAST = [12, 13, 14, 15] as const;

function embedding(text: string, places: readonly (readonly number[])[], isInverted = false): Embedding {
  const network = parseNetwork(text);
  if (network === undefined) throw new Error(`not a network: ${text}`);
  return { network, places, isInverted };
}

const EMBEDDINGS: readonly Embedding[] = [
  // Teredo; 6to4; NAT64 of one's own network with prefixes of 48, 56, 64 and 96 bits (RFC 6052, section 2.2); all others, ISATAP too.
  embedding('2001::/32', [LAST], true),
  embedding('2002::/16', [[2, 3, 4, 5]]),
  embedding('64:ff9b:1::/48', [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], LAST]),
  embedding('::/0', [LAST]),
];

/** True if an IPv6 address that embeds an IPv4 address leads to a metadata service. */
function embedsMetadata(address: AddressBytes): boolean {
  const found = EMBEDDINGS.find(({ network }) => isInNetwork(address, network));
  return found?.places.some((places) => rangeAsWritten(Uint8Array.from(places, (place) => (address[place] ?? 0) ^ (found.isInverted === true ? 0xff : 0))) === 'metadata') === true;
}

/** The special range that contains the address; undefined for an ordinary public address. A metadata service is one in every form of its address. */
export function specialRangeOf(address: AddressBytes): SpecialRange | undefined {
  const range = rangeAsWritten(address);
  return range === 'embedded-ipv4' && embedsMetadata(address) ? 'metadata' : range;
}

function rangeAsWritten(address: AddressBytes): SpecialRange | undefined {
  for (const [network, range] of SPECIAL_NETWORKS) if (isInNetwork(address, network)) return range;
  if (address.length === 4) return undefined;
  if (!isInNetwork(address, GLOBAL_UNICAST)) return 'reserved';
  return isIsatap(address) ? 'embedded-ipv4' : undefined;
}
