/** Answers for people. Names in them are chosen by clients: nothing in them may steer a terminal. */
import { formatUsd } from '@signalbox/kernel/money';

/** Of 2001 and 2286: what a time in seconds lies between. */
const UNIX_SECONDS_MIN = 1_000_000_000;
const UNIX_SECONDS_MAX = 9_999_999_999;

/** What moves the cursor, breaks a line or turns the direction of writing. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON text that means the same; its control characters below U+0020 are escaped already. */
export function harmless(json: string): string {
  return json.replace(/[\x7f-\x9f\u2028\u2029]|\p{Bidi_Control}/gu, escaped);
}

/** Cannot move the cursor, break a line or turn the direction of writing. */
export function harmlessText(value: unknown): string {
  return String(value).replace(STEERING, escaped);
}

/** Nano-dollars under another name. */
const NANO_USD = /_nano_usd$/;

/** Dollars instead of nano-dollars, Unix seconds of our own as a time, and fractions of a millisecond left out; anything else as it is. */
function shown(name: string, value: unknown): unknown {
  if (NANO_USD.test(name) && typeof value === 'string' && /^-?\d+$/.test(value)) return formatUsd(BigInt(value));
  if (typeof value !== 'number') return value;
  if (/(?:^created|_at)$/.test(name) && Number.isInteger(value) && value >= UNIX_SECONDS_MIN && value <= UNIX_SECONDS_MAX) return new Date(value * 1_000).toISOString().replace('.000Z', 'Z');
  return /_ms(_|$)/.test(name) ? Math.round(value) : value;
}

/** One line a member, nested ones indented. */
export function readable(value: unknown, indent = ''): string {
  if (Array.isArray(value)) return value.length === 0 ? ' none' : value.map((entry: unknown) => (typeof entry === 'object' ? `\n${indent}-${readable(entry, `${indent}  `)}` : `\n${indent}- ${harmlessText(entry)}`)).join('');
  if (typeof value === 'object' && value !== null) return Object.entries(value).map(([name, member]) => `\n${indent}${name.replace(NANO_USD, '_usd')}:${readable(shown(name, member), `${indent}  `)}`).join('');
  return value === null ? ' -' : ` ${harmlessText(value)}`;
}
