/** A call on the server's side, whatever its transport: deadline, abort signal, and how it ends. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Span, Tracer } from '@signalbox/runtime/span';
import type { CallInfo } from './call.js';
import type { Served } from './served-methods.js';

/** A CallInfo whose AbortSignal is created on demand: most unary handlers never use it. */
export abstract class ServedCall implements CallInfo {
  private controller: AbortController | undefined;
  private reason: Fault | undefined;
  private timer: Timer | undefined;
  private listener: ((reason: Fault) => void) | undefined;
  private ownSpan: Span | undefined;

  /** `deadlineAtMs` of the monotonic clock; Infinity = none. */
  constructor(
    readonly requestId: string,
    private readonly givenTraceparent: string,
    private readonly clock: Clock,
    private readonly deadlineAtMs: number,
  ) {}

  get traceparent(): string {
    return this.ownSpan?.traceparent ?? this.givenTraceparent;
  }

  get span(): Span | undefined {
    return this.ownSpan;
  }

  /** Call before the handler runs. A call without a trace is not recorded. */
  beginSpan(tracer: Tracer, { name, attributes }: Served['span']): void {
    if (this.givenTraceparent === '') return;
    this.ownSpan = tracer.start({ name, kind: 'server', requestId: this.requestId, parent: this.givenTraceparent, attributes });
  }

  /** Call when the handler has finished, which may be after the caller left. */
  endSpan(fault?: Fault): void {
    this.ownSpan?.end((fault ?? this.reason)?.code);
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.reason !== undefined) this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  onAbort(listener: (reason: Fault) => void): void {
    this.listener = listener;
    if (this.reason !== undefined) listener(this.reason);
  }

  remainingMs(): number {
    return Math.max(0, this.deadlineAtMs - this.clock.monotonicMs());
  }

  /** Starts the deadline's timer. */
  arm(): void {
    if (this.deadlineAtMs === Infinity || this.reason !== undefined) return;
    this.timer = this.clock.setTimer(
      this.remainingMs(),
      () => {
        const fault = new Fault('deadline_exceeded', 'the deadline passed at the server');
        this.abort(fault);
        this.deadlinePassed(fault);
      },
      { unref: true },
    );
  }

  abort(fault: Fault): void {
    this.timer?.cancel();
    if (this.reason !== undefined) return;
    this.reason = fault;
    this.controller?.abort(fault);
    this.listener?.(fault);
  }

  /** Called once when the deadline passes before `settle`. */
  protected abstract deadlinePassed(fault: Fault): void;

  /** The answer is sent: the deadline no longer matters. */
  settle(): void {
    this.timer?.cancel();
  }
}
