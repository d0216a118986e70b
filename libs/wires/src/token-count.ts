/** Figures that providers tell as token counts. */
import { BUCKET_TOKENS_MAX } from '@signalbox/kernel/tokens';

/** undefined for anything that is no count. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= BUCKET_TOKENS_MAX ? value : undefined;
}
