/** The outgoing side of a link: collects the items of an event-loop turn and writes them in few batches. */
import { afterTurn } from '@signalbox/runtime/turn';
import { BATCH_BYTES, BATCH_ITEMS, type LinkItem } from './link-item.js';

/** Above this many queued bytes, every emitter of the link must wait, whatever its own credit. */
const CONGESTED_BYTES = 8 * 1024 * 1024;
/** Rough size of an item besides its payload, for the cap on a batch. */
const ITEM_OVERHEAD_BYTES = 128;

export class Outbox {
  private controls: LinkItem[] = [];
  private bodies: LinkItem[] = [];
  private head = 0;
  private queuedBytes = 0;
  private isScheduled = false;
  private isBlocked = false;
  private isClosed = false;
  private waiting: (() => void)[] = [];

  /** `write` passes a batch to the transport; if it returns false, call `unblock` once the transport has room again. */
  constructor(private readonly write: (batch: readonly LinkItem[]) => boolean) {}

  /** Queues an item ahead of all bodies, even while the transport is blocked. */
  control(item: LinkItem): void {
    this.controls.push(item);
    this.schedule();
  }

  body(item: LinkItem): void {
    this.bodies.push(item);
    this.queuedBytes += item.payload.length;
    this.schedule();
  }

  /** Withdraws an item that was not sent yet. True if it will never be sent. */
  drop(item: LinkItem): boolean {
    if (item.progress === 'sent') return false;
    item.progress = 'dropped';
    return true;
  }

  /** Items are queued for the end of this turn, and they are not a full batch yet. */
  isGathering(): boolean {
    return this.isScheduled && !this.isBlocked && this.bodies.length - this.head < BATCH_ITEMS && this.queuedBytes < BATCH_BYTES;
  }

  isCongested(): boolean {
    return this.queuedBytes > CONGESTED_BYTES;
  }

  /** Calls `wake` once when the queue is no longer congested. */
  onUncongested(wake: () => void): void {
    this.waiting.push(wake);
  }

  unblock(): void {
    this.isBlocked = false;
    this.schedule();
  }

  /** Nothing is written any more. */
  close(): void {
    this.isClosed = true;
    this.controls = [];
    this.bodies = [];
    this.head = 0;
    this.queuedBytes = 0;
    this.wake();
  }

  isEmpty(): boolean {
    return this.controls.length === 0 && this.head === this.bodies.length;
  }

  private schedule(): void {
    if (this.isScheduled || this.isClosed) return;
    this.isScheduled = true;
    afterTurn(this.flush);
  }

  readonly flush = (): void => {
    this.isScheduled = false;
    while (!this.isClosed && (this.controls.length > 0 || (!this.isBlocked && this.head < this.bodies.length))) {
      const batch = this.takeBatch();
      if (batch.length === 0) continue;
      if (!this.write(batch)) this.isBlocked = true;
    }
    if (this.waiting.length > 0 && !this.isCongested()) this.wake();
  };

  private takeBatch(): LinkItem[] {
    const batch = this.controls.length <= BATCH_ITEMS ? this.controls : this.controls.slice(0, BATCH_ITEMS);
    this.controls = this.controls.length <= BATCH_ITEMS ? [] : this.controls.slice(BATCH_ITEMS);
    let bytes = batch.length * ITEM_OVERHEAD_BYTES;
    while (!this.isBlocked && batch.length < BATCH_ITEMS) {
      const item = this.bodies[this.head];
      if (item === undefined) break;
      const size = item.payload.length + ITEM_OVERHEAD_BYTES;
      if (batch.length > 0 && bytes + size > BATCH_BYTES) break;
      this.head += 1;
      this.queuedBytes -= item.payload.length;
      if (item.progress === 'dropped') continue;
      bytes += size;
      batch.push(item);
    }
    if (this.head === this.bodies.length) {
      this.bodies = [];
      this.head = 0;
    } else if (this.head > 4_096) {
      this.bodies = this.bodies.slice(this.head);
      this.head = 0;
    }
    for (const item of batch) item.progress = 'sent';
    return batch;
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const wake of waiting) wake();
  }
}
