/** Ids: a readable prefix and a ULID (48 bits of time, 80 random bits, Crockford base32). */
import type { Clock, RandomBytes } from './clock.js';

declare const idBrand: unique symbol;
type Id<Kind extends string> = string & { readonly [idBrand]: Kind };

export type RequestId = Id<'request'>;
export type AccountId = Id<'account'>;
export type KeyId = Id<'key'>;
export type WriterId = Id<'writer'>;
export type DecisionId = Id<'decision'>;
/** Id of an HTTP call that is not a chat completion. */
export type CallId = Id<'call'>;
/** Id of an advance, a hold that serves many requests. */
export type AdvanceId = Id<'advance'>;
/** Id of an account's own credential at a provider: identifies it without revealing it. */
export type CredentialId = Id<'credential'>;

const PREFIXES = { request: 'chatcmpl-', account: 'acct_', key: 'key_', writer: 'wrt_', decision: 'dec_', call: 'req_', credential: 'cred_', advance: 'adv_' } as const;
export type IdKind = keyof typeof PREFIXES;
interface IdTypes {
  request: RequestId;
  account: AccountId;
  key: KeyId;
  writer: WriterId;
  decision: DecisionId;
  call: CallId;
  credential: CredentialId;
  advance: AdvanceId;
}

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Code units of the alphabet: one cache line. */
const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

const code = (bits: number): number => CODES[bits & 31] ?? 0;

/** 40 bits, given as two halves, as eight characters. */
function eight(high: number, low: number): string {
  return String.fromCharCode(code(high >> 15), code(high >> 10), code(high >> 5), code(high), code(low >> 15), code(low >> 10), code(low >> 5), code(low));
}

/** The first 20 of the 40 bits from `at` on. */
function highHalf(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 12) | ((bytes[at + 1] ?? 0) << 4) | ((bytes[at + 2] ?? 0) >> 4);
}

function lowHalf(bytes: Uint8Array, at: number): number {
  return (((bytes[at + 2] ?? 0) & 15) << 16) | ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
}

/** 26-character ULID of the instant `nowMs` and the ten bytes of `random` from `offset` on. */
export function encodeUlid(nowMs: number, random: Uint8Array, offset = 0): string {
  const top = Math.floor(nowMs / 2 ** 40);
  const time = String.fromCharCode(code(top >> 5), code(top)) + eight(Math.floor(nowMs / 2 ** 20) & 0xfffff, nowMs % 2 ** 20);
  return time + eight(highHalf(random, offset), lowHalf(random, offset)) + eight(highHalf(random, offset + 5), lowHalf(random, offset + 5));
}

export type IdSource = <Kind extends IdKind>(kind: Kind) => IdTypes[Kind];

const POOL_BYTES = 2_560;

/** Creates ids. Random bytes are drawn in pools of 2,560, since a system call for each id would cost more than the id. */
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

/** Returns `text` if it is a well-formed id of that kind, else undefined. */
export function parseId<Kind extends IdKind>(kind: Kind, text: string): IdTypes[Kind] | undefined {
  const prefix = PREFIXES[kind];
  return text.startsWith(prefix) && ULID_PATTERN.test(text.slice(prefix.length)) ? (text as IdTypes[Kind]) : undefined;
}

/** Creation time of an id, in milliseconds since the Unix epoch. */
export function idTimeMs(id: string): number {
  const ulid = id.slice(-26);
  let time = 0;
  for (let i = 0; i < 10; i += 1) time = time * 32 + ALPHABET.indexOf(ulid.charAt(i));
  return time;
}
