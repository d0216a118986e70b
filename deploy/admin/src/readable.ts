/** Answers for people. Names in them are chosen by clients: nothing in them may steer a terminal. */
import { formatUsd } from '@signalbox/kernel/money';

/** Of 2001 and 2286: what a time in seconds lies between, and one in milliseconds a thousand times that. */
const UNIX_SECONDS_MIN = 1_000_000_000;
const UNIX_SECONDS_MAX = 9_999_999_999;
const TIME = /^(?:at|created)$|_at$/;

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

/** The same of a text that may have lines. */
export const harmlessLines = (text: string): string => text.split('\n').map(harmlessText).join('\n');

/** Nano-dollars under another name. */
const NANO_USD = /_nano_usd$/;
/** Dollars, which as numbers would show their exponents below a millionth. */
const USD = /_usd$/;
const NANO_PER_USD = 1e9;
/** Up to here a number tells one nano-dollar from the next. */
const EXACT_USD_MAX = Number.MAX_SAFE_INTEGER / NANO_PER_USD;

/** Dollars instead of nano-dollars, times of our own as such, and fractions of a millisecond left out; anything else as it is. */
function shown(name: string, value: unknown): unknown {
  if (NANO_USD.test(name) && typeof value === 'string' && /^-?\d+$/.test(value)) return formatUsd(BigInt(value));
  if (typeof value !== 'number') return value;
  if (USD.test(name) && Math.abs(value) <= EXACT_USD_MAX) return formatUsd(BigInt(Math.round(value * NANO_PER_USD)));
  const unitMs = [1_000, 1].find((unit) => value * unit >= UNIX_SECONDS_MIN * 1_000 && value * unit <= UNIX_SECONDS_MAX * 1_000);
  if (TIME.test(name) && Number.isInteger(value) && unitMs !== undefined) return new Date(value * unitMs).toISOString().replace('.000Z', 'Z');
  return /_ms(_|$)/.test(name) ? Math.round(value) : value;
}

/** One line a member, nested ones indented. */
export function readable(value: unknown, indent = ''): string {
  if (Array.isArray(value)) return value.length === 0 ? ' none' : value.map((entry: unknown) => (typeof entry === 'object' ? `\n${indent}-${readable(entry, `${indent}  `)}` : `\n${indent}- ${harmlessText(entry)}`)).join('');
  if (typeof value === 'object' && value !== null) return Object.entries(value).map(([name, member]) => `\n${indent}${name.replace(NANO_USD, '_usd')}:${readable(shown(name, member), `${indent}  `)}`).join('');
  return value === null ? ' -' : ` ${harmlessText(value)}`;
}
