/** The caller's side of a neighbour service: over the Link, over plain gRPC, or within this process. */
import type { ServiceArea } from '@signalbox/contracts/load';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient, StreamCall } from './call.js';
import { DEFAULT_KEEPALIVE, linkPath, methodsOf, type Keepalive, type Method } from './channel.js';
import { ClientCall, type CallSink } from './client-call.js';
import { Deadlines } from './deadlines.js';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import type { Tracer } from '@signalbox/runtime/span';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { InProcessServer } from './in-process.js';
import { MESSAGE_BYTES_MAX, NO_BYTES } from './link-item.js';
import { LinkPool } from './link-pool.js';
import type { RpcObserver } from './metrics.js';
import { PlainClient } from './plain-client.js';

export interface RpcClientOptions {
  readonly area: ServiceArea;
  /** Each is `host:port`; calls are spread over them. */
  readonly addresses: readonly string[];
  readonly door: 'link' | 'unary';
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  /** 1..2^31−1; for calls that name no deadline. */
  readonly defaultDeadlineMs: number;
  /** Links per address, 2 by default; no effect with `unary`. */
  readonly links?: number;
  /** Default: ping after 10 s, give up after 5 s more. */
  readonly keepalive?: Keepalive;
  /** Servers of this process: a neighbour found here is called in memory, any other over the transport in `door`. */
  readonly doors?: ProcessDoors | undefined;
  /** Counts this client's calls, labelled with `peer`, or with the area if absent. */
  readonly observer?: RpcObserver | undefined;
  readonly peer?: string | undefined;
  /** Finds the parent span of a call that names no traceparent. */
  readonly tracer?: Tracer | undefined;
  /** With certificates, a peer must present one that names its host. */
  readonly tls?: RpcTls;
}

const DEADLINE_MS_MAX = 2 ** 31 - 1;

/** Settles the promise of a unary call with its single message. */
class OneAnswer implements CallSink {
  private response: object | undefined = undefined;

  constructor(
    private readonly resolve: (response: object) => void,
    private readonly reject: (fault: Fault) => void,
    private readonly countFault: () => void,
  ) {}

  onMessage(message: object): void {
    this.response = message;
  }

  onEnd(fault: Fault | undefined): void {
    if (fault !== undefined) {
      this.countFault();
      this.reject(fault);
    } else if (this.response === undefined) this.reject(new Fault('bad_message', 'the peer ended the call without an answer'));
    else this.resolve(this.response);
  }
}

/**
 * Connects lazily (on the first call or `isConnected`) and reconnects for ever. Calls end with Faults only:
 * `peer_unavailable` (never sent, safe to repeat), `link_lost` (sent, outcome unknown), `deadline_exceeded`,
 * `cancelled`, `overloaded`, `bad_message`, `unknown_method`, or whatever the handler threw.
 */
export function createRpcClient(options: RpcClientOptions): RpcClient {
  const { area, addresses, clock, randomBytes, door, tracer, tls } = options;
  const methods = methodsOf(area);
  const keepalive = options.keepalive ?? DEFAULT_KEEPALIVE;
  const owner = {};
  const deadlines = new Deadlines(clock);
  const peerHere = (): InProcessServer | undefined => {
    if (options.doors === undefined) return undefined;
    for (const address of addresses) {
      const peer = options.doors.get(address);
      if (peer instanceof InProcessServer) return peer;
    }
    return undefined;
  };
  const carrier = door === 'link' ? new LinkPool({ addresses, path: linkPath(area), links: options.links ?? 2, clock, randomBytes, keepalive, tls }) : new PlainClient({ addresses, clock, keepalive, tls });

  let calls = 0;
  let faults = 0;
  options.observer?.watch(options.peer ?? area, () => ({ calls, faults, ...(peerHere() === undefined ? carrier.stats() : { links: 0, linksReady: 0, waiting: 0, linksLost: 0 }) }));

  const countFault = (): void => {
    faults += 1;
  };

  const methodNamed = (name: string, isStream: boolean): Method => {
    const method = methods.get(name);
    if (method === undefined || method.responseStream !== isStream) throw new Fault('unknown_method', `no such RPC: ${name}`);
    return method;
  };

  const begin = (name: string, method: Method, request: object, sink: CallSink, callOptions: CallOptions | undefined): ClientCall => {
    calls += 1;
    const asked = callOptions?.deadlineMs ?? 0;
    const silenceMs = door === 'unary' ? 2 * (callOptions?.silenceMs ?? DEADLINE_MS_MAX) : DEADLINE_MS_MAX;
    const deadlineMs = Math.min(asked > 0 ? asked : options.defaultDeadlineMs, silenceMs, DEADLINE_MS_MAX);
    const traceparent = callOptions?.traceparent ?? (tracer === undefined ? '' : tracer.traceparentOf(callOptions?.requestId ?? ''));
    const peer = peerHere();
    if (peer !== undefined) {
      // Copied now: the caller may change its message afterwards.
      const copy = method.requestCopy(request);
      const call = new ClientCall(clock, deadlines, name, method, NO_BYTES, sink, callOptions, traceparent, deadlineMs);
      if (callOptions?.signal?.aborted === true) call.cancel();
      else peer.start(call, copy, owner);
      return call;
    }
    const bytes = method.requestSerialize(request);
    if (bytes.length > MESSAGE_BYTES_MAX) throw new Fault('bad_message', 'a message is larger than 64 MB');
    const call = new ClientCall(clock, deadlines, name, method, bytes, sink, callOptions, traceparent, deadlineMs);
    if (callOptions?.signal?.aborted === true) call.cancel();
    else carrier.start(call);
    return call;
  };

  return {
    unary: <Request extends object, Response>(name: string, request: Request, callOptions?: CallOptions) =>
      new Promise<Response>((resolve, reject) => {
        begin(name, methodNamed(name, false), request, new OneAnswer(resolve as (response: object) => void, reject, countFault), callOptions);
      }),
    stream: (name, request, listener, callOptions): StreamCall => {
      const method = methodNamed(name, true);
      const call = begin(
        name,
        method,
        request,
        {
          // The contract's types are checked where the call is written.
          onMessage: (message) => listener.onMessage(message as Parameters<typeof listener.onMessage>[0]),
          onEnd: (fault) => {
            if (fault !== undefined) countFault();
            listener.onEnd(fault);
          },
        },
        callOptions,
      );
      return {
        cancel: (why) => call.cancel(why),
        pause: () => {
          call.isPaused = true;
          call.carrier?.pause(call);
        },
        resume: () => {
          call.isPaused = false;
          call.carrier?.resume(call);
        },
        peer: () => call.peer,
        hasOthers: () => carrier instanceof LinkPool && carrier.hasOthers(call.peer),
      };
    },
    isConnected: () => peerHere() !== undefined || carrier.isConnected(),
    close: () => {
      peerHere()?.cutCallsOf(owner);
      carrier.close();
      deadlines.close();
      return Promise.resolve();
    },
  };
}
