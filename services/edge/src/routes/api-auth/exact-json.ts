/** JSON text with exact amounts: dollars are never converted to floating point. */
import { formatUsdJson } from '@signalbox/kernel/money';

/** A JSON number literal. */
class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Nano-USD (bigint or its decimal text) as exact dollars; null for an absent amount. For `exactJson` only. */
export function usd(nano: bigint | string | undefined): object | null {
  return nano === undefined ? null : new NumberText(formatUsdJson(BigInt(nano)));
}

/** As JSON.stringify, with the literals of `usd` inserted. Undefined members are left out. */
export function exactJson(value: unknown): string {
  if (value instanceof NumberText) return value.text;
  if (Array.isArray(value)) return `[${value.map((entry: unknown) => exactJson(entry)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${exactJson(member)}`).join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}
