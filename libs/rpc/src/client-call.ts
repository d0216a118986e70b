/** A call on its caller's side, the same over every transport: deadline, abort signal, and exactly one end. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { CallOptions } from './call.js';
import type { Method } from './channel.js';
import type { Deadlines, Due } from './deadlines.js';
import { clientLeft } from './fault-status.js';
import type { Patient } from './listening.js';

export interface CallSink {
  onMessage(message: object): void;
  onEnd(fault: Fault | undefined): void;
}

/** The transport that carries a started call; notified if the call ends early. */
export interface CallCarrier {
  /** The caller's side ended the call with `fault`: notify the peer and forget the call. The peer learns the reason only if it is `client_left` or, within one process, `deadline_exceeded`. */
  abandon(call: ClientCall, fault: Fault): void;
  pause(call: ClientCall): void;
  resume(call: ClientCall): void;
}

export class ClientCall implements Due, Patient {
  isOver = false;
  isPaused = false;
  carrier: CallCarrier | undefined = undefined;
  /** Id of the call on its link; for the link's use only. */
  linkId = 0;
  /** The replica to which the call was last sent; for the carrier's use only. */
  peer: object | undefined = undefined;
  /** The only replica it may go to; undefined = any. */
  readonly onlyPeer: object | undefined;
  /** A replica that this call may use only over a connection newer than the call; undefined = none. */
  readonly besides: object | undefined;
  readonly requestId: string;
  readonly silenceMs: number;
  listenedBefore = 0;
  /** The peer was silent once already: the next silence ends the call. */
  isSpared = false;
  /** Monotonic milliseconds. */
  readonly begunAtMs: number;
  readonly deadlineAtMs: number;
  previousDue: Due | undefined = undefined;
  nextDue: Due | undefined = undefined;
  private readonly signal: AbortSignal | undefined;
  private readonly onAbort: (() => void) | undefined = undefined;

  /** `deadlineMs` ≤ 2^31−1. */
  constructor(
    private readonly clock: Clock,
    private readonly deadlines: Deadlines,
    readonly name: string,
    readonly method: Method,
    /** Empty for a call that stays in this process. */
    readonly request: Buffer,
    private readonly sink: CallSink,
    options: CallOptions | undefined,
    readonly traceparent: string,
    deadlineMs: number,
  ) {
    this.requestId = options?.requestId ?? '';
    this.onlyPeer = options?.peer;
    this.besides = options?.besides;
    this.silenceMs = options?.silenceMs ?? 0;
    this.begunAtMs = clock.monotonicMs();
    this.deadlineAtMs = this.begunAtMs + deadlineMs;
    deadlines.watch(this);
    this.signal = options?.signal;
    if (this.signal === undefined) return;
    this.onAbort = () => this.cancel();
    this.signal.addEventListener('abort', this.onAbort, { once: true });
  }

  remainingMs(): number {
    return Math.max(0, this.deadlineAtMs - this.clock.monotonicMs());
  }

  deliver(payload: Buffer): void {
    if (this.isOver) return;
    let message: object;
    try {
      message = this.method.responseDeserialize(payload);
    } catch {
      this.fail(new Fault('bad_message', 'the answer cannot be read'));
      return;
    }
    this.deliverMessage(message);
  }

  /** A bug in the listener ends only this call. */
  deliverMessage(message: object): void {
    if (this.isOver) return;
    try {
      this.sink.onMessage(message);
    } catch (error) {
      this.fail(error instanceof Fault ? error : new Fault('internal_error', 'a listener threw', { cause: error }));
    }
  }

  /** The peer or the carrier ended the call. Does nothing if it is over. */
  settle(fault: Fault | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    this.deadlines.forget(this);
    if (this.onAbort !== undefined) this.signal?.removeEventListener('abort', this.onAbort);
    this.sink.onEnd(fault);
  }

  /** The caller's side ended the call with `fault`; the peer is told `told`. */
  fail(fault: Fault, told = fault): void {
    if (this.isOver) return;
    this.carrier?.abandon(this, told);
    this.settle(fault);
  }

  deadlinePassed(): void {
    this.fail(new Fault('deadline_exceeded', 'the deadline passed'));
  }

  /** Called by its carrier. */
  peerSilent(): void {
    this.fail(new Fault('deadline_exceeded', 'the peer is silent'));
  }

  cancel(why?: 'client_left'): void {
    const fault = new Fault('cancelled', 'the caller cancelled');
    this.fail(fault, why === undefined ? fault : clientLeft());
  }
}
