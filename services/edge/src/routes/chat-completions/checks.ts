/** Checks of single values in a client's body. A failed check throws Invalid, which the reader of the body catches. */
import { isStorableText } from '@signalbox/kernel/storable-text';
import { apiError, type ApiError } from '../../wire/errors.js';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Carries an API error out of nested checks. */
export class Invalid extends Error {
  override readonly name = 'Invalid';
  readonly error: ApiError;

  constructor(error: ApiError) {
    super(error.message);
    this.error = error;
  }
}

export function missing(param: string): Invalid {
  return new Invalid(apiError('missing_required_parameter', { param, message: `Missing required parameter: '${param}'.` }));
}

export function wrongType(param: string, expected: string): Invalid {
  return new Invalid(apiError('invalid_type', { param, message: `Invalid type for '${param}': expected ${expected}.` }));
}

export function wrongValue(param: string, expected: string): Invalid {
  return new Invalid(apiError('invalid_value', { param, message: `Invalid value for '${param}': expected ${expected}.` }));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null counts as absent everywhere. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Whether the object has a null under one of the names. */
export function isNullAt(object: unknown, names: readonly string[]): boolean {
  return isObject(object) && names.some((name) => own(object, name) === null);
}

/** The value without null members, also in nested objects down to `levels`; arrays stay unchanged. */
export function withoutNulls(value: unknown, levels: number): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null).map(([name, member]) => [name, levels > 0 ? withoutNulls(member, levels - 1) : member]));
}

/** The own property, or undefined: never one of Object.prototype. */
export function own(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

export function asObject(value: unknown, param: string): JsonObject {
  if (!isObject(value)) throw wrongType(param, 'an object');
  return value;
}

export function asArray(value: unknown, param: string, max?: number): readonly unknown[] {
  if (!Array.isArray(value)) throw wrongType(param, 'an array');
  if (max !== undefined && value.length > max) throw wrongValue(param, `at most ${max} items`);
  return value;
}

export function asString(value: unknown, param: string, bounds: { readonly min?: number; readonly max?: number } = {}): string {
  if (typeof value !== 'string') throw wrongType(param, 'a string');
  if (value.length < (bounds.min ?? 0)) throw wrongValue(param, 'a string that is not empty');
  if (bounds.max !== undefined && value.length > bounds.max) throw wrongValue(param, `at most ${bounds.max} characters`);
  return value;
}

/** A name that is stored. Characters that cannot be stored are refused: after their removal it could equal another name. */
export function asName(value: unknown, param: string, bounds: { readonly min?: number; readonly max?: number } = {}): string {
  const text = asString(value, param, bounds);
  if (!isStorableText(text)) throw wrongValue(param, 'text without NUL characters and half surrogate pairs');
  return text;
}

export function asStrings(value: unknown, param: string, max: number): readonly string[] {
  return asArray(value, param, max).map((item, index) => asName(item, `${param}.[${index}]`, { min: 1, max: 256 }));
}

export function asBoolean(value: unknown, param: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(param, 'a boolean');
  return value;
}

/** A number like 1e999, which is parsed as infinity, is always out of range. */
export function asNumber(value: unknown, param: string, min: number, max: number): number {
  if (typeof value !== 'number') throw wrongType(param, 'a number');
  if (!Number.isFinite(value) || value < min || value > max) throw wrongValue(param, max === Number.MAX_VALUE ? `a number of at least ${min}` : `a number from ${min} to ${max}`);
  return value;
}

export function asInteger(value: unknown, param: string, min: number, max: number): number {
  if (typeof value !== 'number') throw wrongType(param, 'an integer');
  if (Number.isFinite(value) && !Number.isInteger(value)) throw wrongType(param, 'an integer');
  if (!(value >= min && value <= max)) throw wrongValue(param, `an integer from ${min} to ${max}`);
  return value;
}

const WRITTEN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** The digits of an integer that JSON may write as 1e2, 100.0 or -0 too. `value`: what `text` parses to, within 64 bits. */
export function plainInteger(value: number, text: string): string {
  if (Number.isSafeInteger(value)) return String(value);
  const [, sign = '', whole = '', part = '', exponent = '0'] = WRITTEN.exec(text) ?? [];
  const shift = Number(exponent) - part.length;
  const digits = shift >= 0 ? `${whole}${part}${'0'.repeat(shift)}` : `${whole}${part}`.slice(0, shift);
  return sign + digits.replace(/^0+/, '');
}

export function asOneOf<const Choice extends string>(value: unknown, param: string, choices: readonly Choice[]): Choice {
  if (typeof value !== 'string') throw wrongType(param, 'a string');
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw wrongValue(param, `one of ${choices.map((choice) => `'${choice}'`).join(', ')}`);
  return found;
}

/** A required value: null counts as missing. */
export function required(value: unknown, param: string): unknown {
  if (isAbsent(value)) throw missing(param);
  return value;
}
