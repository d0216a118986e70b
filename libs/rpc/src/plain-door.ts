/** The plain RPCs of a service: takes grpc-js calls and runs the same handlers as the Link. */
import { type handleServerStreamingCall, type handleUnaryCall, type Metadata, type ServerUnaryCall, type ServerWritableStream } from '@grpc/grpc-js';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import type { Tracer } from '@signalbox/runtime/span';
import { together } from '@signalbox/runtime/turn';
import type { AnyStreamHandler, AnyUnaryHandler, Emitter } from './call.js';
import type { Method } from './channel.js';
import { faultToStatus } from './fault-status.js';
import { overrunWith } from './flow.js';
import { CREDIT_BYTES, MESSAGE_BYTES_MAX } from './link-item.js';
import { ServedCall } from './served-call.js';
import { spanOf } from './served-methods.js';
import { callerRefused } from './tls.js';

interface DoorOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly tracer?: Tracer | undefined;
  /** True if the certificate of the caller permits the method; absent = all are permitted. */
  readonly mayCall?: ((call: ServerSurfaceCall) => boolean) | undefined;
}

type ServerSurfaceCall = ServerUnaryCall<object, object> | ServerWritableStream<object, Buffer>;
type CallDeadline = ReturnType<ServerSurfaceCall['getDeadline']>;

function text(metadata: Metadata, key: string): string {
  const value = metadata.get(key)[0];
  return typeof value === 'string' ? value : '';
}

function remaining(deadline: CallDeadline, clock: Clock): number {
  const atMs = deadline instanceof Date ? deadline.getTime() : deadline;
  return atMs === Infinity ? Infinity : Math.max(0, atMs - clock.nowMs());
}

class PlainCall extends ServedCall {
  constructor(
    call: ServerSurfaceCall,
    clock: Clock,
    private readonly onDeadline: (fault: Fault) => void,
  ) {
    super(text(call.metadata, 'request-id'), text(call.metadata, 'traceparent'), clock, clock.monotonicMs() + remaining(call.getDeadline(), clock));
  }

  protected deadlinePassed(fault: Fault): void {
    this.onDeadline(fault);
  }
}

function serve(call: ServerSurfaceCall, method: Method, { clock, tracer }: DoorOptions, onDeadline: (fault: Fault) => void): ServedCall {
  const served = new PlainCall(call, clock, onDeadline);
  if (tracer !== undefined) served.beginSpan(tracer, spanOf(method));
  const onCancelled = (): void => {
    served.abort(served.remainingMs() <= 0 ? new Fault('deadline_exceeded', 'the deadline passed at the server') : new Fault('cancelled', 'the caller cancelled'));
  };
  (call as ServerUnaryCall<object, object>).on('cancelled', onCancelled);
  served.arm();
  return served;
}

function report(error: unknown, log: Log): Fault {
  if (!(error instanceof Fault)) log.error('a handler threw an error that is not a Fault', {}, error);
  return toFault(error);
}

/** Runs `work` if the caller may make the call, then ends the span and the call with its result or fault. Never rejects. */
async function conclude<Result>(served: ServedCall, isAllowed: boolean, work: () => Promise<Result>, finish: (fault: Fault | undefined, result?: Result) => void, log: Log): Promise<void> {
  try {
    if (!isAllowed) throw callerRefused();
    const result = await work();
    served.endSpan();
    finish(undefined, result);
  } catch (error) {
    const fault = report(error, log);
    served.endSpan(fault);
    finish(fault);
  }
}

export function plainUnary(handler: AnyUnaryHandler, method: Method, options: DoorOptions): handleUnaryCall<object, object> {
  return (call, callback) => {
    let isOver = false;
    const finish = (fault: Fault | undefined, response?: object): void => {
      if (isOver) return;
      isOver = true;
      served.settle();
      if (fault !== undefined) callback(faultToStatus(fault));
      else callback(null, response);
    };
    const served = serve(call, method, options, (fault) => finish(fault));
    const work = async (): Promise<object> => {
      // Wait until the socket is read empty: after a stall, the cancellation of this call may be in the same read.
      await new Promise<void>((resolve) => together(resolve));
      served.signal.throwIfAborted();
      return (await handler(call.request, served)) as object;
    };
    void conclude(served, options.mayCall?.(call) !== false, work, finish, options.log);
  };
}

/** `call.write` takes serialised messages: the registered method passes bytes through, so that they can be counted here. */
export function plainStream(handler: AnyStreamHandler, method: Method, options: DoorOptions): handleServerStreamingCall<object, Buffer> {
  return (call) => {
    let isOver = false;
    let pendingBytes = 0;
    let overrunBytes = 0;
    let waiters: { resolve: () => void; reject: (fault: Fault) => void }[] = [];
    const finish = (fault: Fault | undefined): void => {
      if (isOver) return;
      isOver = true;
      served.settle();
      for (const waiter of waiters) waiter.reject(fault ?? new Fault('cancelled', 'the call is over'));
      waiters = [];
      if (fault === undefined) call.end();
      else if (!call.cancelled) call.emit('error', { ...faultToStatus(fault), name: fault.name, message: fault.code });
    };
    const served = serve(call, method, options, finish);
    call.on('cancelled', () => finish(new Fault('cancelled', 'the caller cancelled')));
    const emit: Emitter<object> = {
      write: (message) => {
        if (isOver) throw new Fault('cancelled', 'the call is over');
        const payload = method.responseSerialize(message);
        if (payload.length > MESSAGE_BYTES_MAX) throw new Fault('bad_message', 'a message is larger than 64 MB');
        overrunBytes = overrunWith(overrunBytes, payload.length, pendingBytes < CREDIT_BYTES);
        pendingBytes += payload.length;
        call.write(payload, () => {
          pendingBytes -= payload.length;
          if (pendingBytes >= CREDIT_BYTES) return;
          const woken = waiters;
          waiters = [];
          for (const waiter of woken) waiter.resolve();
        });
        return pendingBytes < CREDIT_BYTES;
      },
      drained: () => {
        if (isOver) return Promise.reject(new Fault('cancelled', 'the call is over'));
        if (pendingBytes < CREDIT_BYTES) return Promise.resolve();
        const waiting = new Promise<void>((resolve, reject) => waiters.push({ resolve, reject }));
        // A handler that raced it and moved on must not bring the process down.
        waiting.catch(() => undefined);
        return waiting;
      },
    };
    void conclude(served, options.mayCall?.(call) !== false, () => handler(call.request, served, emit), finish, options.log);
  };
}
