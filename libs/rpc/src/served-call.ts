/** What both doors share of a call in work: its deadline, its abort signal, and how it ends. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { CallInfo } from './call.js';

/** A CallInfo whose signal is made on demand: most unary handlers never look at it. */
export abstract class ServedCall implements CallInfo {
  private controller: AbortController | undefined;
  private reason: Fault | undefined;
  private readonly deadlineAtMs: number;
  private timer: Timer | undefined;
  private listener: ((reason: Fault) => void) | undefined;

  /** `deadlineMs` Infinity = none. */
  constructor(
    readonly requestId: string,
    readonly traceparent: string,
    private readonly clock: Clock,
    deadlineMs: number,
  ) {
    this.deadlineAtMs = clock.monotonicMs() + deadlineMs;
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

  /** The answer is out: the deadline no longer matters. */
  settle(): void {
    this.timer?.cancel();
  }
}
