/** Figures that providers tell as token counts. */

/** One request never reads or writes a billion tokens: such a figure is no token count. */
const TOKENS_MAX = 1_000_000_000;

/** undefined for anything that is no count. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX ? value : undefined;
}
