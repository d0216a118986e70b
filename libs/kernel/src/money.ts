/** Money as whole nano-dollars: see docs/adr/0003-money-unit.md. */

declare const nanoUsd: unique symbol;
declare const nanoUsdPerMillionTokens: unique symbol;

/** 1 = 0.000000001 USD. May be negative only for savings and adjustments. */
export type NanoUsd = bigint & { readonly [nanoUsd]: true };
/** Price of 1,000,000 tokens, in nano-dollars. Never negative. */
export type NanoUsdPerMillionTokens = bigint & { readonly [nanoUsdPerMillionTokens]: true };

const TOKENS_PER_PRICE_UNIT = 1_000_000n;
const NANO_PER_USD = 1_000_000_000n;
/** Redis Lua holds numbers as doubles: larger amounts would lose nano-dollars. */
export const CAP_NANO_USD_MAX = 9_000_000_000_000_000n;

export const ZERO_NANO_USD = 0n as NanoUsd;

export function asNanoUsd(value: bigint | string): NanoUsd {
  return BigInt(value) as NanoUsd;
}

export function asPrice(value: bigint | string): NanoUsdPerMillionTokens {
  const price = BigInt(value);
  if (price < 0n) throw new RangeError('A price must not be negative.');
  return price as NanoUsdPerMillionTokens;
}

/** Cost of one attempt: Σ tokens × price of all its buckets, rounded once, half up, to a whole nano-dollar. */
export function attemptCost(tokensTimesPrices: bigint): NanoUsd {
  return ((tokensTimesPrices + TOKENS_PER_PRICE_UNIT / 2n) / TOKENS_PER_PRICE_UNIT) as NanoUsd;
}

/** Upper bound of a cost for a reservation, from the same sum: rounds up, never half up. */
export function reservationCost(tokensTimesPrices: bigint): NanoUsd {
  return ((tokensTimesPrices + TOKENS_PER_PRICE_UNIT - 1n) / TOKENS_PER_PRICE_UNIT) as NanoUsd;
}

/** Exactly nine decimals and no exponent, for headers: `0.000014550`. */
export function formatUsd(amount: bigint): string {
  const sign = amount < 0n ? '-' : '';
  const digits = (amount < 0n ? -amount : amount).toString().padStart(10, '0');
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

/** The shortest JSON number literal of the same value, to be inserted into JSON text: `0.00001455`. */
export function formatUsdJson(amount: bigint): string {
  const text = formatUsd(amount);
  let end = text.length;
  while (text.charCodeAt(end - 1) === 48) end -= 1;
  if (text.charCodeAt(end - 1) === 46) end -= 1;
  return text.slice(0, end);
}

/** A price in dollars per token, exact, without an exponent: `0.00000015`. */
export function formatUsdPerToken(price: bigint): string {
  const digits = price.toString().padStart(16, '0');
  const fraction = digits.slice(-15).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -15) : `${digits.slice(0, -15)}.${fraction}`;
}

/** Parses a decimal amount of dollars (`"12.5"`) to nano-dollars. Throws RangeError on anything finer or malformed. */
export function parseUsd(text: string): NanoUsd {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text);
  if (match === null) throw new RangeError('Expected a decimal amount of US dollars with at most nine decimals.');
  const [, sign = '', whole = '0', fraction = ''] = match;
  const nano = BigInt(whole) * NANO_PER_USD + BigInt(fraction.padEnd(9, '0'));
  return (sign === '-' ? -nano : nano) as NanoUsd;
}

/** Splits decimal text, with or without an exponent, into its digits and the power of ten, in nano-dollars, of the last digit. */
function digitsOf(text: string): { readonly digits: string; readonly scale: number } {
  const [mantissa = '0', exponent = '0'] = text.split('e');
  const [whole = '0', fraction = ''] = mantissa.replace('-', '').split('.');
  return { digits: whole + fraction, scale: 9 + Number(exponent) - fraction.length };
}

/** An amount of zero or more, with bounds that keep it a short integer, since the text comes from outside. */
const AMOUNT = /^\d{1,60}(\.\d{1,60})?(e[+-]?\d{1,3})?$/i;

/**
 * Converts decimal dollars of zero or more, with or without an exponent (`"12.5"`, `"1.2345678901e-7"`), to whole
 * nano-dollars, rounded once, half up. Throws RangeError on anything else.
 */
export function roundedUsd(text: string): NanoUsd {
  if (!AMOUNT.test(text)) throw new RangeError('Expected a decimal amount of US dollars.');
  const { digits, scale } = digitsOf(text.toLowerCase());
  if (scale >= 0) return (BigInt(digits) * 10n ** BigInt(scale)) as NanoUsd;
  const unit = 10n ** BigInt(-scale);
  return ((BigInt(digits) + unit / 2n) / unit) as NanoUsd;
}

/**
 * Converts dollars reported by a provider to whole nano-dollars, rounded once, half up. Uses the number's shortest decimal
 * text, which equals the original text if that has 15 digits or fewer; every amount below a million dollars in whole
 * nano-dollars does. Throws RangeError if it is not finite or below zero.
 */
export function roundedNano(value: number): NanoUsd {
  if (!Number.isFinite(value) || value < 0) throw new RangeError('Expected a finite amount of zero or more.');
  return roundedUsd(String(value));
}

/**
 * Dollars from a catalog's or client's JSON number to nano-dollars, by its shortest decimal text.
 * Throws RangeError when it is not finite or finer than a nano-dollar.
 */
export function usdNumberToNano(value: number): NanoUsd {
  if (!Number.isFinite(value)) throw new RangeError('Expected a finite amount.');
  const text = String(value);
  if (!text.includes('e')) return parseUsd(text);
  const { digits, scale } = digitsOf(text);
  if (scale < 0 && !/^0*$/.test(digits.slice(scale))) throw new RangeError('Finer than a nano-dollar.');
  const nano = scale >= 0 ? BigInt(digits) * 10n ** BigInt(scale) : BigInt(digits.slice(0, scale) || '0');
  return (value < 0 ? -nano : nano) as NanoUsd;
}
