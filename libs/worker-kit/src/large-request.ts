/** Requests that take the event loop's time to put together: others have their turn between the steps. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { together } from '@signalbox/runtime/turn';

/** Bytes of its fields, as of the bodies that edge reads in steps. */
const LARGE_BYTES = 131_072;

export function fieldBytes({ fields }: Pick<DispatchRequest__Output, 'fields'>): number {
  let bytes = 0;
  for (const { value } of fields) bytes += value.length;
  return bytes;
}

export function isLarge(request: Pick<DispatchRequest__Output, 'fields'>): boolean {
  return fieldBytes(request) > LARGE_BYTES;
}

export function othersTurn(): Promise<void> {
  return new Promise((resolve) => together(resolve));
}
