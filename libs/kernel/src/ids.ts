/** Ids: a readable prefix and a ULID (48 bits of time, 80 random bits, Crockford base32). */
import type { Clock, RandomBytes } from './clock.js';

declare const idBrand: unique symbol;
type Id<Kind extends string> = string & { readonly [idBrand]: Kind };

export type RequestId = Id<'request'>;
export type AccountId = Id<'account'>;
export type KeyId = Id<'key'>;
export type WriterId = Id<'writer'>;
export type DecisionId = Id<'decision'>;
/** Of an HTTP call that is not a chat completion. */
export type CallId = Id<'call'>;

const PREFIXES = { request: 'chatcmpl-', account: 'acct_', key: 'key_', writer: 'wrt_', decision: 'dec_', call: 'req_' } as const;
export type IdKind = keyof typeof PREFIXES;
interface IdTypes {
  request: RequestId;
  account: AccountId;
  key: KeyId;
  writer: WriterId;
  decision: DecisionId;
  call: CallId;
}

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Two characters for each value of ten bits: five lookups a ULID instead of ten, and no loop over bits. */
const PAIRS = Array.from({ length: 1_024 }, (_, bits) => ALPHABET.charAt(bits >> 5) + ALPHABET.charAt(bits & 31));
const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

const byteAt = (bytes: Uint8Array, at: number): number => bytes[at] ?? 0;
const pair = (bits: number): string => PAIRS[bits & 1_023] ?? '';

/** 40 bits as eight characters. */
function fiveBytes(bytes: Uint8Array, at: number): string {
  const first = (byteAt(bytes, at) << 12) | (byteAt(bytes, at + 1) << 4) | (byteAt(bytes, at + 2) >> 4);
  const second = ((byteAt(bytes, at + 2) & 15) << 16) | (byteAt(bytes, at + 3) << 8) | byteAt(bytes, at + 4);
  return pair(first >> 10) + pair(first) + pair(second >> 10) + pair(second);
}

/** 26-character ULID of the instant `nowMs` and the ten bytes of `random` from `offset` on. */
export function encodeUlid(nowMs: number, random: Uint8Array, offset = 0): string {
  const high = Math.floor(nowMs / 2 ** 20);
  return pair(high >> 20) + pair(high >> 10) + pair(high) + pair(nowMs % 2 ** 20 >> 10) + pair(nowMs % 2 ** 20) + fiveBytes(random, offset) + fiveBytes(random, offset + 5);
}

export type IdSource = <Kind extends IdKind>(kind: Kind) => IdTypes[Kind];

const POOL_BYTES = 2_560;

/** Makes ids. Random bytes are drawn in pools of 2,560 since one call to the system for each id costs more than the id. */
export function createIdSource(clock: Clock, randomBytes: RandomBytes): IdSource {
  let pool: Uint8Array = new Uint8Array(0);
  let offset = 0;
  return <Kind extends IdKind>(kind: Kind): IdTypes[Kind] => {
    if (offset + 10 > pool.length) {
      pool = randomBytes(POOL_BYTES);
      offset = 0;
    }
    offset += 10;
    return (PREFIXES[kind] + encodeUlid(clock.nowMs(), pool, offset - 10)) as IdTypes[Kind];
  };
}

/** The id when `text` is a well-formed id of that kind, else undefined. */
export function parseId<Kind extends IdKind>(kind: Kind, text: string): IdTypes[Kind] | undefined {
  const prefix = PREFIXES[kind];
  return text.startsWith(prefix) && ULID_PATTERN.test(text.slice(prefix.length)) ? (text as IdTypes[Kind]) : undefined;
}

/** Milliseconds since the epoch at which an id was made. */
export function idTimeMs(id: string): number {
  const ulid = id.slice(-26);
  let time = 0;
  for (let i = 0; i < 10; i += 1) time = time * 32 + ALPHABET.indexOf(ulid.charAt(i));
  return time;
}
