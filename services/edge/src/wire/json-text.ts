/** JSON encoding for values that may contain amounts of money, since `JSON.stringify` throws on bigint. */
import { formatUsdJson } from '@signalbox/kernel/money';

/** A bigint is an amount in nano-USD and is written as the exact number of dollars. */
export type JsonValue = string | number | boolean | null | bigint | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** JSON text of a value of our own (not a client's, since it recurses without a bound). Non-finite numbers become null. */
export function renderJson(value: JsonValue): string {
  if (typeof value === 'bigint') return formatUsdJson(value);
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly JsonValue[]).map(renderJson).join(',')}]`;
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${renderJson(item)}`).join(',')}}`;
}
