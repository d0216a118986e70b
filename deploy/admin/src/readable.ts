/** Formats answers for people. Names in them are chosen by clients, so they must not contain characters that control a terminal. */
import { formatUsd } from '@signalbox/kernel/money';

/** Years 2001 and 2286: a number between them is a time in seconds; one between a thousand times them, in milliseconds. */
const UNIX_SECONDS_MIN = 1_000_000_000;
const UNIX_SECONDS_MAX = 9_999_999_999;
const TIME = /^(?:at|created)$|_at$/;

/** Characters that move the cursor, break a line or change the writing direction. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Escapes such characters in JSON text without changing its meaning; those below U+0020 are escaped already. */
export function harmless(json: string): string {
  return json.replace(/[\x7f-\x9f\u2028\u2029]|\p{Bidi_Control}/gu, escaped);
}

/** Text without characters that move the cursor, break a line or change the writing direction. */
export function harmlessText(value: unknown): string {
  return String(value).replace(STEERING, escaped);
}

/** The same for a text with several lines. */
export const harmlessLines = (text: string): string => text.split('\n').map(harmlessText).join('\n');

/** Members in nano-dollars. */
const NANO_USD = /_nano_usd$/;
/** Members in dollars, which as numbers would be printed with exponents below a millionth. */
const USD = /_usd$/;
const NANO_PER_USD = 1e9;
/** Largest number of dollars that is exact to one nano-dollar. */
const EXACT_USD_MAX = Number.MAX_SAFE_INTEGER / NANO_PER_USD;

/** Shows nano-dollars as dollars, our timestamps as dates, and milliseconds without fractions; anything else unchanged. */
function shown(name: string, value: unknown): unknown {
  if (NANO_USD.test(name) && typeof value === 'string' && /^-?\d+$/.test(value)) return formatUsd(BigInt(value));
  if (typeof value !== 'number') return value;
  if (USD.test(name) && Math.abs(value) <= EXACT_USD_MAX) return value.toFixed(9);
  const unitMs = [1_000, 1].find((unit) => value * unit >= UNIX_SECONDS_MIN * 1_000 && value * unit <= UNIX_SECONDS_MAX * 1_000);
  if (TIME.test(name) && Number.isInteger(value) && unitMs !== undefined) return new Date(value * unitMs).toISOString().replace('.000Z', 'Z');
  return /_ms(_|$)/.test(name) ? Math.round(value) : value;
}

/** One line per member, nested ones indented. */
export function readable(value: unknown, indent = ''): string {
  if (Array.isArray(value)) return value.length === 0 ? ' none' : value.map((entry: unknown) => (typeof entry === 'object' ? `\n${indent}-${readable(entry, `${indent}  `)}` : `\n${indent}- ${harmlessText(entry)}`)).join('');
  if (typeof value === 'object' && value !== null) return Object.entries(value).map(([name, member]) => `\n${indent}${name.replace(NANO_USD, '_usd')}:${readable(shown(name, member), `${indent}  `)}`).join('');
  return value === null ? ' -' : ` ${harmlessText(value)}`;
}
