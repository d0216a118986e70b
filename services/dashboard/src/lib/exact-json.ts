/** JSON text with exact amounts: what is typed is sent digit by digit, and never passes through a float. */
export class Decimal {
  readonly text: string;

  /** A JSON number literal, as `decimalOf` gives one. */
  constructor(text: string) {
    this.text = text;
  }
}

/** Like JSON.stringify for plain values, with each Decimal as its digits. Undefined members are left out. */
export function exactJson(value: unknown): string {
  if (value instanceof Decimal) return value.text;
  if (Array.isArray(value)) return `[${value.map((entry: unknown) => exactJson(entry)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${exactJson(member)}`).join(',')}}`;
}
