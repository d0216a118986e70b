/** Composing a large request takes long; other requests get a turn of the event loop between the steps. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { together } from '@signalbox/runtime/turn';

/** Bytes of the fields above which a request is large; same as the body size from which edge parses in steps. */
const LARGE_BYTES = 131_072;

export function fieldBytes({ fields }: Pick<DispatchRequest__Output, 'fields'>): number {
  let bytes = 0;
  for (const { value } of fields) bytes += value.length;
  return bytes;
}

export function isLarge(request: Pick<DispatchRequest__Output, 'fields'>): boolean {
  return fieldBytes(request) > LARGE_BYTES;
}

/** Resolves after the other requests have had their turn. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => together(resolve));
}
