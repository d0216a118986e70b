/** The server's end of one link: opens calls, runs their handlers, sends their answers. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import type { Tracer } from '@signalbox/runtime/span';
import { together } from '@signalbox/runtime/turn';
import { totalmem } from 'node:os';
import type { Emitter, Handlers } from './call.js';
import type { Method } from './channel.js';
import { clientLeft, faultToDetail } from './fault-status.js';
import { CreditedReceiver, CreditedSender, overrunWith, sendAll } from './flow.js';
import { decodeBatch } from './link-codec.js';
import { ITEM, LinkItem, LIVE_CALLS_MAX, MESSAGE_BYTES_MAX, NO_BYTES } from './link-item.js';
import { LiveCalls } from './live-calls.js';
import { Outbox } from './outbox.js';
import { ServedCall } from './served-call.js';
import { servedMethods, type Served } from './served-methods.js';
import { callerRefused } from './tls.js';

export interface LinkServerOptions {
  readonly methods: ReadonlyMap<string, Method>;
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly log: Log;
  /** Passes a batch to the transport; false = not writable until `unblock`. */
  readonly write: (batch: readonly LinkItem[]) => boolean;
  /** Called when everything is sent and the client has closed its side. */
  readonly onFinished: () => void;
  readonly tracer?: Tracer | undefined;
  /** Shared by all links of the server. */
  readonly assembling: Assembling;
  /** Which methods the caller's certificate entitles it to; absent = all. */
  readonly mayCall?: ((method: string) => boolean) | undefined;
}

/** Memory held by partly received requests. Beyond `bytesMax`, the next part is answered with a Fault `overloaded`. */
export interface Assembling {
  bytes: number;
  readonly bytesMax: number;
}

const ASSEMBLING_BYTES_MAX = 256 * 1024 * 1024;
/** Share of the memory available to the process. */
const ASSEMBLING_SHARE = 1 / 4;

/** A quarter of `memoryBytes`, at most 256 MB, and at least room for one message of the largest size. */
export function createAssembling(memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)): Assembling {
  return { bytes: 0, bytesMax: Math.max(MESSAGE_BYTES_MAX, Math.min(ASSEMBLING_BYTES_MAX, Math.floor(memoryBytes * ASSEMBLING_SHARE))) };
}

/** One running call, as its handler sees it: its call info, and the emitter of its messages. */
class LinkCall extends ServedCall implements Emitter<object> {
  readonly receiver: CreditedReceiver;
  readonly sender: CreditedSender;
  isOver = false;
  /** The whole request has arrived; its handler starts in the same turn. */
  isComplete = false;
  /** Bytes received of a request that is not yet complete. */
  heldBytes = 0;
  private overrunBytes = 0;
  private waiters: { resolve: () => void; reject: (fault: Fault) => void }[] | undefined = undefined;
  private overFault: Fault | undefined = undefined;

  constructor(
    private readonly link: LinkServer,
    private readonly outbox: Outbox,
    readonly id: number,
    readonly served: Served,
    open: LinkItem,
    clock: Clock,
  ) {
    super(open.requestId, open.traceparent, clock, open.deadlineMs === 0 ? Infinity : clock.monotonicMs() + open.deadlineMs);
    this.receiver = new CreditedReceiver(outbox, id);
    this.sender = new CreditedSender(outbox);
  }

  write(message: object): boolean {
    if (this.isOver) throw this.overFault ?? new Fault('cancelled', 'the call is over');
    const payload = this.served.method.responseSerialize(message);
    if (payload.length > MESSAGE_BYTES_MAX) throw new Fault('bad_message', 'a message is larger than 64 MB');
    this.overrunBytes = overrunWith(this.overrunBytes, payload.length, this.sender.isOpen());
    sendAll(this.sender, new LinkItem(this.id, ITEM.message), ITEM.message, payload);
    return this.isWritable();
  }

  drained(): Promise<void> {
    if (this.isOver) return Promise.reject(this.overFault ?? new Fault('cancelled', 'the call is over'));
    if (this.isWritable()) return Promise.resolve();
    const waiting = new Promise<void>((resolve, reject) => {
      this.waiters ??= [];
      this.waiters.push({ resolve, reject });
      if (this.outbox.isCongested()) this.outbox.onUncongested(() => this.wake());
    });
    // A handler that raced it and moved on must not bring the process down.
    waiting.catch(() => undefined);
    return waiting;
  }

  grant(bytes: number): void {
    this.sender.grant(bytes);
    this.wake();
  }

  /** Ends the call for its handler; `fault` is undefined if it answered. */
  finish(fault: Fault | undefined): void {
    this.isOver = true;
    this.overFault = fault;
    if (fault === undefined) this.settle();
    else {
      this.abort(fault);
      this.sender.discard();
    }
    const waiters = this.waiters;
    if (waiters === undefined) return;
    this.waiters = undefined;
    for (const waiter of waiters) waiter.reject(fault ?? new Fault('cancelled', 'the call is over'));
  }

  protected deadlinePassed(fault: Fault): void {
    this.link.expire(this, fault);
  }

  private isWritable(): boolean {
    return this.sender.isOpen() && !this.outbox.isCongested();
  }

  private wake(): void {
    if (this.waiters === undefined) return;
    if (!this.isWritable()) {
      if (this.outbox.isCongested()) this.outbox.onUncongested(() => this.wake());
      return;
    }
    const waiters = this.waiters;
    this.waiters = undefined;
    for (const waiter of waiters) waiter.resolve();
  }
}

export class LinkServer {
  private readonly outbox: Outbox;
  private readonly served: ReadonlyMap<string, Served>;
  private readonly calls = new LiveCalls<LinkCall>();
  private unarmed: LinkCall[] = [];
  /** Complete requests, started only once the socket has been read empty. A process that was stalled thus sees cancellations before it starts the calls. */
  private starting: { readonly call: LinkCall; readonly bytes: Buffer }[] = [];
  /** Answered calls whose last items still wait for credit. */
  private readonly tails = new Map<number, LinkCall>(); // kept: only for answers larger than the credit of a call.
  private isEnding = false;
  private isFinished = false;

  constructor(private readonly options: LinkServerOptions) {
    this.outbox = new Outbox(options.write);
    this.served = servedMethods(options.methods, options.handlers);
  }

  unblock(): void {
    this.outbox.unblock();
    this.finishIfDone();
  }

  /** Throws a Fault `bad_message` if the batch cannot be read; the caller must then break the link. */
  receive(batch: Buffer): void {
    for (const item of decodeBatch(batch)) this.accept(item);
    if (this.unarmed.length > 0) setImmediate(this.armDeadlines);
  }

  /** Asks the client to open no new calls on this link. */
  goAway(): void {
    this.outbox.control(new LinkItem(0, ITEM.goaway));
  }

  /** The client sends no more: finishes once every call is answered. */
  end(): void {
    this.isEnding = true;
    this.finishIfDone();
  }

  /** The connection broke: every call is aborted. Safe to call twice. */
  abort(): void {
    this.isFinished = true;
    this.outbox.close();
    const fault = new Fault('link_lost', 'the connection of the caller broke');
    for (const call of this.calls.takeAll()) {
      this.releaseHeld(call);
      call.finish(fault);
    }
    this.tails.clear();
  }

  /** Starts a deadline timer for each call that was not answered within the turn; quick calls need none. */
  private readonly armDeadlines = (): void => {
    const unarmed = this.unarmed;
    this.unarmed = [];
    for (const call of unarmed) if (!call.isOver) call.arm();
  };

  private accept(item: LinkItem): void {
    if (item.kind === ITEM.open) {
      this.open(item);
      return;
    }
    if (item.kind === ITEM.ping) {
      this.outbox.control(new LinkItem(item.call, ITEM.pong));
      return;
    }
    const call = this.calls.get(item.call);
    if (item.kind === ITEM.credit) (call ?? this.tails.get(item.call))?.grant(item.creditBytes);
    if (item.kind === ITEM.cancel) this.cancel(item, call);
    if (call !== undefined && item.kind === ITEM.message && !call.isComplete) this.receivePart(call, item);
    const tail = this.tails.get(item.call);
    if (tail?.sender.pendingBytes === 0) {
      this.tails.delete(item.call);
      this.finishIfDone();
    }
  }

  private cancel({ call: id, fault }: LinkItem, call: LinkCall | undefined): void {
    this.tails.get(id)?.sender.discard();
    this.tails.delete(id);
    if (call === undefined) return;
    // Start the handler even though the call is cancelled: a streaming handler decides by the reason what to charge.
    if (call.served.stream !== undefined) this.begin(call);
    this.close(call);
    call.finish(fault?.code === 'client_left' ? clientLeft() : new Fault('cancelled', 'the caller cancelled'));
    this.finishIfDone();
  }

  private open(item: LinkItem): void {
    const served = this.served.get(item.method);
    if (served === undefined) {
      this.refuse(item.call, new Fault('unknown_method', 'no such method'));
      return;
    }
    if (this.options.mayCall?.(item.method) === false) {
      this.refuse(item.call, callerRefused());
      return;
    }
    if (this.calls.size >= LIVE_CALLS_MAX) {
      this.refuse(item.call, new Fault('overloaded', 'too many live calls on a link'));
      return;
    }
    if (this.calls.get(item.call) !== undefined) {
      this.refuse(item.call, new Fault('bad_message', 'the call is open already'));
      return;
    }
    const call = new LinkCall(this, this.outbox, item.call, served, item, this.options.clock);
    this.calls.add(call);
    if (item.deadlineMs > 0) this.unarmed.push(call);
    this.receivePart(call, item);
  }

  /** For use by `LinkCall` only: the deadline of `call` passed. */
  expire(call: LinkCall, fault: Fault): void {
    this.fail(call, fault);
  }

  private receivePart(call: LinkCall, item: LinkItem): void {
    try {
      const whole = call.receiver.receive(item.payload, item.more);
      if (whole === undefined) {
        call.heldBytes += item.payload.length;
        const { assembling } = this.options;
        assembling.bytes += item.payload.length;
        if (assembling.bytes > assembling.bytesMax) throw new Fault('overloaded', 'too many half-received requests');
        return;
      }
      this.releaseHeld(call);
      call.isComplete = true;
      if (this.starting.push({ call, bytes: whole }) === 1) together(this.runStarting);
    } catch (error) {
      this.fail(call, toFault(error));
    }
  }

  private releaseHeld(call: LinkCall): void {
    this.options.assembling.bytes -= call.heldBytes;
    call.heldBytes = 0;
  }

  private readonly runStarting = (): void => {
    const { starting } = this;
    this.starting = [];
    for (const { call, bytes } of starting) if (!call.isOver) void this.run(call, bytes);
  };

  /** Starts the call now if it is still in `starting`, ahead of the others there. */
  private begin(call: LinkCall): void {
    const at = this.starting.findIndex((waiting) => waiting.call === call);
    const [found] = at < 0 ? [] : this.starting.splice(at, 1);
    if (found !== undefined) void this.run(call, found.bytes);
  }

  /** Never rejects: what a handler throws becomes the call's fault. */
  private async run(call: LinkCall, bytes: Buffer): Promise<void> {
    const { tracer } = this.options;
    if (tracer !== undefined) call.beginSpan(tracer, call.served.span);
    try {
      const { method, unary, stream } = call.served;
      const request = parseRequest(method, bytes);
      if (stream !== undefined) {
        await stream(request, call, call);
        call.endSpan();
        if (!call.isOver) this.answer(call, new LinkItem(call.id, ITEM.end), ITEM.end, NO_BYTES);
        return;
      }
      const answered = unary?.(request, call) as object | Promise<object>;
      const response = answered instanceof Promise ? await answered : answered;
      call.endSpan();
      if (call.isOver) return;
      const payload = method.responseSerialize(response);
      if (payload.length > MESSAGE_BYTES_MAX) throw new Fault('bad_message', 'a message is larger than 64 MB');
      this.answer(call, new LinkItem(call.id, ITEM.message), ITEM.end, payload);
    } catch (error) {
      if (!(error instanceof Fault)) this.options.log.error('a handler threw an error that is not a Fault', { method: call.served.name }, error);
      call.endSpan(toFault(error));
      if (!call.isOver) this.failInOrder(call, toFault(error));
    }
  }

  private answer(call: LinkCall, first: LinkItem, lastKind: number, payload: Buffer): void {
    sendAll(call.sender, first, lastKind, payload);
    if (!call.sender.isOpen() && call.sender.pendingBytes > 0) this.tails.set(call.id, call);
    this.close(call);
    call.finish(undefined);
    this.finishIfDone();
  }

  /** Sends the fault after the messages that the handler wrote before it. */
  private failInOrder(call: LinkCall, fault: Fault): void {
    const item = new LinkItem(call.id, ITEM.fault);
    item.fault = faultToDetail(fault);
    this.answer(call, item, ITEM.fault, NO_BYTES);
  }

  /** Sends the fault ahead of all bodies, since the call is over whatever is still queued. */
  private fail(call: LinkCall, fault: Fault): void {
    if (call.isOver) return;
    this.close(call);
    call.finish(fault);
    this.refuse(call.id, fault);
    this.finishIfDone();
  }

  private refuse(id: number, fault: Fault): void {
    const item = new LinkItem(id, ITEM.fault);
    item.fault = faultToDetail(fault);
    this.outbox.control(item);
  }

  private close(call: LinkCall): void {
    this.releaseHeld(call);
    this.calls.remove(call.id);
  }

  private finishIfDone(): void {
    if (!this.isEnding || this.isFinished || this.calls.size > 0 || this.tails.size > 0) return;
    this.outbox.flush();
    if (!this.outbox.isEmpty()) return;
    this.isFinished = true;
    this.options.onFinished();
  }
}

function parseRequest(method: Method, bytes: Buffer): object {
  try {
    return method.requestDeserialize(bytes);
  } catch {
    throw new Fault('bad_message', 'the request cannot be read');
  }
}
