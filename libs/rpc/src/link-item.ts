/** One item of a Link batch (proto/link/v1/link.proto), and the bounds of the Link. */

export const ITEM = { open: 1, message: 2, end: 3, fault: 4, cancel: 5, credit: 6, goaway: 7, ping: 8, pong: 9 } as const;

/** Payload bytes that one side may send for a call before the other returns credit. */
export const CREDIT_BYTES = 256 * 1024;
/** Credit is returned in steps of a quarter, so a busy stream costs four credit items per window. */
export const CREDIT_STEP_BYTES = CREDIT_BYTES / 4;
/** A batch is closed at this size, so that a control item waits for one batch at most. */
export const BATCH_BYTES = 64 * 1024;
export const BATCH_ITEMS = 128;
/** Larger payloads are split into parts of this size: one part and its frame fit into a batch. */
export const PART_BYTES = 48 * 1024;
/** A larger message is refused with a Fault `bad_message`. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Further calls are refused with a Fault `overloaded`. */
export const LIVE_CALLS_MAX = 10_000;

/** `code` and `message` as in common.v1.FaultDetail; 0 = no hint. */
export interface FaultDetail {
  readonly code: string;
  readonly message: string;
  readonly retryAfterMs: number;
}

export const NO_BYTES: Buffer = Buffer.alloc(0);

/** A class rather than a literal, so that all items share one hidden class: the codec is fast only then. */
export class LinkItem {
  method = '';
  deadlineMs = 0;
  requestId = '';
  traceparent = '';
  payload: Buffer = NO_BYTES;
  more = false;
  creditBytes = 0;
  /** Set on a FAULT, and on a CANCEL that gives its reason. */
  fault: FaultDetail | undefined = undefined;
  /** Set by the codec while it writes a batch. */
  encodedBytes = 0;
  /** State of an outgoing item; only the outbox sets `sent`. */
  progress: 'queued' | 'sent' | 'dropped' = 'queued';

  /** `call` is 0 for items of the link itself; `kind` is one of ITEM, or an unknown number from a newer peer. */
  constructor(
    public call: number,
    public kind: number,
  ) {}
}

/** Splits a payload into items of at most PART_BYTES. `first` becomes the first item; the last gets kind `lastKind`, unless it is an OPEN itself. */
export function itemsOf(first: LinkItem, lastKind: number, payload: Buffer): LinkItem[] {
  if (payload.length <= PART_BYTES) {
    first.payload = payload;
    if (first.kind !== ITEM.open) first.kind = lastKind;
    return [first];
  }
  const items: LinkItem[] = [];
  for (let offset = 0; offset < payload.length; offset += PART_BYTES) {
    const item = offset === 0 ? first : new LinkItem(first.call, ITEM.message);
    item.payload = payload.subarray(offset, offset + PART_BYTES);
    item.more = offset + PART_BYTES < payload.length;
    if (!item.more) item.kind = lastKind;
    items.push(item);
  }
  return items;
}
