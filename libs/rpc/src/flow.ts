/** Credit-based flow control of one call, on the sending and the receiving side. */
import { Fault } from '@signalbox/kernel/fault';
import { CREDIT_BYTES, CREDIT_STEP_BYTES, ITEM, itemsOf, LinkItem, MESSAGE_BYTES_MAX, NO_BYTES, PART_BYTES } from './link-item.js';
import type { Outbox } from './outbox.js';

/** The sending half: items are sent while there is credit, and queue here without. The last item sent may exceed the credit. */
export class CreditedSender {
  private credit = CREDIT_BYTES;
  /** Created when an item first has to wait, as most calls never need it. */
  private pending: LinkItem[] | undefined = undefined;
  private head = 0;
  /** Payload bytes that wait for credit. */
  pendingBytes = 0;

  constructor(private readonly outbox: Outbox) {}

  send(item: LinkItem): void {
    if (this.pending === undefined && (this.credit > 0 || item.payload.length === 0)) {
      this.credit -= item.payload.length;
      this.outbox.body(item);
    } else {
      this.pending ??= [];
      this.pending.push(item);
      this.pendingBytes += item.payload.length;
    }
  }

  /** True when the next item passes at once. */
  isOpen(): boolean {
    return this.credit > 0 && this.pending === undefined;
  }

  grant(bytes: number): void {
    this.credit += bytes;
    if (this.pending === undefined) return;
    for (;;) {
      const item = this.pending[this.head];
      if (item === undefined || (this.credit <= 0 && item.payload.length > 0)) break;
      this.head += 1;
      this.pendingBytes -= item.payload.length;
      this.credit -= item.payload.length;
      this.outbox.body(item);
    }
    if (this.head === this.pending.length) {
      this.pending = undefined;
      this.head = 0;
    }
  }

  /** Drops the queued items. */
  discard(): void {
    this.pending = undefined;
    this.head = 0;
    this.pendingBytes = 0;
  }
}

/**
 * Payload bytes that a handler has written since it was told to wait, including `bytes` now. A message that begins with
 * credit left is accepted whole, however large; what is written after it counts. Throws a Fault `overloaded` if more than
 * 256 KB had been counted before.
 */
export function overrunWith(before: number, bytes: number, hasCredit: boolean): number {
  if (hasCredit) return 0;
  if (before > CREDIT_BYTES) throw new Fault('overloaded', 'a stream was written far beyond its credit');
  return before + bytes;
}

/** Sends a payload with `first` as its first item, split into parts if it is large. */
export function sendAll(sender: CreditedSender, first: LinkItem, lastKind: number, payload: Buffer): void {
  if (payload.length > PART_BYTES) {
    for (const item of itemsOf(first, lastKind, payload)) sender.send(item);
    return;
  }
  first.payload = payload;
  if (first.kind !== ITEM.open) first.kind = lastKind;
  sender.send(first);
}

/** The receiving half: joins the parts of a message and returns credit. */
export class CreditedReceiver {
  private parts: Buffer[] | undefined = undefined;
  private partBytes = 0;
  private owed = 0;
  private isPaused = false;

  constructor(
    private readonly outbox: Outbox,
    private readonly call: number,
  ) {}

  /** Returns the whole message if this was its last part. Throws a Fault `bad_message` above 64 MB. */
  receive(payload: Buffer, more: boolean): Buffer | undefined {
    this.owed += payload.length;
    if (this.owed >= CREDIT_STEP_BYTES) this.settle();
    if (!more && this.partBytes === 0) return payload;
    this.partBytes += payload.length;
    if (this.partBytes > MESSAGE_BYTES_MAX) {
      this.parts = undefined;
      throw new Fault('bad_message', 'a message is larger than 64 MB');
    }
    this.parts ??= [];
    this.parts.push(payload);
    if (more) return undefined;
    const whole = Buffer.concat(this.parts, this.partBytes);
    this.parts = undefined;
    this.partBytes = 0;
    return whole;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    if (this.owed >= CREDIT_STEP_BYTES) this.settle();
  }

  private settle(): void {
    if (this.isPaused) return;
    const item = new LinkItem(this.call, ITEM.credit);
    item.creditBytes = this.owed;
    item.payload = NO_BYTES;
    this.owed = 0;
    this.outbox.control(item);
  }
}
