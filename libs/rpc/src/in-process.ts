/** Calls between services of one process: no sockets and no encoding, but the same handlers and the same outcomes as over the network (ADR 10). */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import type { Tracer } from '@signalbox/runtime/span';
import type { AnyStreamHandler, Emitter, Handlers } from './call.js';
import type { Method } from './channel.js';
import type { CallCarrier, ClientCall } from './client-call.js';
import { detailToFault, faultToDetail } from './fault-status.js';
import { overrunWith } from './flow.js';
import { CREDIT_BYTES, LIVE_CALLS_MAX } from './link-item.js';
import { LiveCalls } from './live-calls.js';
import { ServedCall } from './served-call.js';
import { servedMethods, type Served } from './served-methods.js';

export interface InProcessOptions {
  readonly methods: ReadonlyMap<string, Method>;
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly log: Log;
  readonly tracer?: Tracer | undefined;
}

const CALL_ID_MAX = 0xffffffff;
const SETTLED = Promise.resolve();

/** Like `queueMicrotask`, but without the async resource that Node creates for each. The callback must not throw. */
function soon(callback: () => void): void {
  void SETTLED.then(callback);
}

/** Bytes of the binary fields in a message, which count against the credit of a paused stream. */
function bodyBytes(message: object): number {
  let bytes = 0;
  for (const value of Object.values(message) as unknown[]) {
    if (Buffer.isBuffer(value)) bytes += value.length;
    else if (typeof value === 'object' && value !== null) bytes += bodyBytes(value);
  }
  return bytes;
}

/** A fault as its receiver sees it over any transport: code, text and hint; for a bug, only the code. */
function carried(fault: Fault): Fault {
  return detailToFault(faultToDetail(fault));
}

/**
 * Both ends of one call. Neither end is called from within the other: requests, messages, ends and aborts are delivered
 * as microtasks. So if the caller cancels because of a message, the handler that sent it first returns from `write`.
 */
class InProcessCall extends ServedCall implements Emitter<object>, CallCarrier {
  /** Messages to be delivered by the next microtask. */
  private outgoing: object[] | undefined;
  private isFlushing = false;
  private isBegun = false;
  private isAnswered = false;
  private isOver = false;
  private isPaused: boolean;
  private pausedBytes = 0;
  private overrunBytes = 0;
  private fault: Fault | undefined;
  private waiters: { resolve: () => void; reject: (fault: Fault) => void }[] | undefined;

  constructor(
    private readonly server: InProcessServer,
    readonly id: number,
    readonly owner: object,
    private readonly served: Served,
    private readonly client: ClientCall,
    private readonly request: object,
    clock: Clock,
  ) {
    super(client.requestId, client.traceparent, clock, client.deadlineAtMs);
    this.isPaused = client.isPaused;
  }

  /** Never throws: what a handler throws becomes the call's fault. */
  run({ log, tracer }: InProcessOptions): void {
    if (this.isOver) return;
    this.isBegun = true;
    const { unary, stream, span } = this.served;
    if (tracer !== undefined) this.beginSpan(tracer, span);
    if (stream !== undefined) {
      void this.runStream(stream, log);
      return;
    }
    let answered: object | Promise<object>;
    try {
      answered = unary?.(this.request, this) as object | Promise<object>;
    } catch (error) {
      this.threw(error, log);
      return;
    }
    if (!(answered instanceof Promise)) this.respond(answered, log);
    else {
      answered.then(
        (response) => this.respond(response, log),
        (error: unknown) => this.threw(error, log),
      );
    }
  }

  private async runStream(stream: AnyStreamHandler, log: Log): Promise<void> {
    try {
      await stream(this.request, this, this);
      this.endSpan();
      this.answer(undefined);
    } catch (error) {
      this.threw(error, log);
    }
  }

  private respond(answered: object, log: Log): void {
    try {
      const response = this.served.method.responseCopy(answered);
      if (!this.isOver) this.outgoing = [response];
      this.endSpan();
      this.answer(undefined);
    } catch (error) {
      this.threw(error, log);
    }
  }

  private threw(error: unknown, log: Log): void {
    if (!(error instanceof Fault)) log.error('a handler threw an error that is not a Fault', { method: this.served.name }, error);
    this.endSpan(toFault(error));
    this.answer(carried(toFault(error)));
  }

  write(message: object): boolean {
    if (this.isOver) throw this.fault ?? new Fault('cancelled', 'the call is over');
    const copy = this.served.method.responseCopy(message);
    if (this.isPaused) {
      const bytes = bodyBytes(copy);
      this.overrunBytes = overrunWith(this.overrunBytes, bytes, this.pausedBytes < CREDIT_BYTES);
      this.pausedBytes += bytes;
    }
    if (this.outgoing === undefined) this.outgoing = [copy];
    else this.outgoing.push(copy);
    if (!this.isFlushing) {
      this.isFlushing = true;
      soon(() => this.flush());
    }
    return this.isWritable();
  }

  drained(): Promise<void> {
    if (this.isOver) return Promise.reject(this.fault ?? new Fault('cancelled', 'the call is over'));
    if (this.isWritable()) return Promise.resolve();
    const waiting = new Promise<void>((resolve, reject) => {
      this.waiters ??= [];
      this.waiters.push({ resolve, reject });
    });
    // A handler that raced it and moved on must not bring the process down.
    waiting.catch(() => undefined);
    return waiting;
  }

  abandon(_call: ClientCall, fault: Fault): void {
    const reason = fault.code === 'deadline_exceeded' || fault.code === 'client_left' ? fault : new Fault('cancelled', 'the caller cancelled');
    if (this.isBegun || this.served.stream !== undefined) soon(() => this.cut(reason));
    else this.cut(reason);
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.pausedBytes = 0;
    const waiters = this.waiters;
    this.waiters = undefined;
    for (const waiter of waiters ?? []) waiter.resolve();
  }

  /** Ends the call for its handler only; its caller knows already, or `sever` tells it. */
  cut(reason: Fault): void {
    if (this.isOver) return;
    this.close(reason);
    this.abort(reason);
  }

  /** Ends the call on both sides. */
  sever(reason: Fault): void {
    this.cut(reason);
    this.client.carrier = undefined;
    this.client.settle(reason);
  }

  /** Unused: the caller watches the deadline, and its timer ends the call. */
  protected deadlinePassed(): void {}

  private answer(fault: Fault | undefined): void {
    if (this.isOver) return;
    this.close(fault);
    this.settle();
    this.isAnswered = true;
    if (!this.isFlushing) this.flush();
  }

  private close(fault: Fault | undefined): void {
    this.isOver = true;
    this.fault = fault;
    this.server.forget(this);
    const waiters = this.waiters;
    if (waiters === undefined) return;
    this.waiters = undefined;
    for (const waiter of waiters) waiter.reject(fault ?? new Fault('cancelled', 'the call is over'));
  }

  private isWritable(): boolean {
    return !this.isPaused || this.pausedBytes < CREDIT_BYTES;
  }

  private flush(): void {
    this.isFlushing = false;
    const { outgoing } = this;
    this.outgoing = undefined;
    if (outgoing !== undefined) for (const message of outgoing) this.client.deliverMessage(message);
    if (!this.isAnswered) return;
    this.client.carrier = undefined;
    this.client.settle(this.fault);
  }
}

export class InProcessServer {
  private readonly served: ReadonlyMap<string, Served>;
  private readonly calls = new LiveCalls<InProcessCall>();
  private starting: InProcessCall[] = [];
  private nextId = 1;
  private isClosed = false;
  private whenIdle: (() => void) | undefined;

  constructor(private readonly options: InProcessOptions) {
    this.served = servedMethods(options.methods, options.handlers);
  }

  /** Starts a call with its request, which the caller must not change any more; `owner` identifies the client for `cutCallsOf`. */
  start(call: ClientCall, request: object, owner: object): void {
    const served = this.served.get(call.name);
    if (this.isClosed) call.settle(new Fault('peer_unavailable', 'the peer stopped'));
    else if (served === undefined) call.settle(new Fault('unknown_method', 'no such method'));
    else if (this.calls.size >= LIVE_CALLS_MAX) call.settle(new Fault('overloaded', 'too many live calls to a peer'));
    else {
      while (this.calls.get(this.nextId) !== undefined) this.advance();
      const started = new InProcessCall(this, this.nextId, owner, served, call, request, this.options.clock);
      this.advance();
      call.carrier = started;
      this.calls.add(started);
      if (this.starting.push(started) === 1) soon(this.runStarting);
    }
  }

  /** Accepts no new calls; resolves when the running ones are over. */
  drain(): Promise<void> {
    this.isClosed = true;
    if (this.calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => (this.whenIdle = resolve));
  }

  /** Ends the calls that still run: their callers get `link_lost`. */
  cut(): void {
    this.isClosed = true;
    for (const call of this.calls.takeAll()) call.sever(new Fault('link_lost', 'the peer stopped during the call'));
    this.whenIdle?.();
  }

  /** A client was closed: ends its calls on both sides. */
  cutCallsOf(owner: object): void {
    for (const call of this.calls.all()) if (call.owner === owner) call.sever(new Fault('link_lost', 'the client is closed'));
  }

  /** For use by `InProcessCall` only. */
  forget(call: InProcessCall): void {
    this.calls.remove(call.id);
    if (this.calls.size === 0) this.whenIdle?.();
  }

  private readonly runStarting = (): void => {
    const starting = this.starting;
    this.starting = [];
    for (const call of starting) void call.run(this.options);
  };

  private advance(): void {
    this.nextId = this.nextId === CALL_ID_MAX ? 1 : this.nextId + 1;
  }
}
