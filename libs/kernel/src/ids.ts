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
const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** 26-character ULID of the instant `nowMs` and the first 10 of `random`. */
export function encodeUlid(nowMs: number, random: Uint8Array): string {
  let time = '';
  let rest = nowMs;
  for (let i = 0; i < 10; i += 1) {
    time = ALPHABET.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let tail = '';
  let bits = 0;
  let value = 0;
  for (let i = 0; i < 10; i += 1) {
    value = (value << 8) | (random[i] ?? 0);
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      tail += ALPHABET.charAt((value >> bits) & 31);
    }
    value &= (1 << bits) - 1;
  }
  return time + tail;
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
    const random = pool.subarray(offset, offset + 10);
    offset += 10;
    return (PREFIXES[kind] + encodeUlid(clock.nowMs(), random)) as IdTypes[Kind];
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
