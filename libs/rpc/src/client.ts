/** The caller's side of a neighbour, over the Link or over plain RPCs. */
import type { ServiceArea } from '@signalbox/contracts/load';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient, StreamCall } from './call.js';
import { DEFAULT_KEEPALIVE, linkPath, methodsOf, type Keepalive, type Method } from './channel.js';
import { ClientCall, type CallSink } from './client-call.js';
import { MESSAGE_BYTES_MAX } from './link-item.js';
import { LinkPool } from './link-pool.js';
import { PlainClient } from './plain-client.js';

export interface RpcClientOptions {
  readonly area: ServiceArea;
  /** `host:port` each; calls are spread over them. */
  readonly addresses: readonly string[];
  readonly door: 'link' | 'unary';
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  /** 1..2^31−1; for calls that name no deadline. */
  readonly defaultDeadlineMs: number;
  /** Links for each address, 2 by default; of no effect on the unary door. */
  readonly links?: number;
  /** 10 s and 5 s by default. */
  readonly keepalive?: Keepalive;
}

const DEADLINE_MS_MAX = 2 ** 31 - 1;

/**
 * Connects lazily (on the first call or `isConnected`) and reconnects for ever. Calls end with Faults only:
 * `peer_unavailable` (never sent, safe to repeat), `link_lost` (sent, outcome unknown), `deadline_exceeded`,
 * `cancelled`, `overloaded`, `bad_message`, `unknown_method`, or whatever the handler threw.
 */
export function createRpcClient(options: RpcClientOptions): RpcClient {
  const { area, addresses, clock, randomBytes, door } = options;
  const methods = methodsOf(area);
  const keepalive = options.keepalive ?? DEFAULT_KEEPALIVE;
  const carrier = door === 'link' ? new LinkPool({ addresses, path: linkPath(area), links: options.links ?? 2, clock, randomBytes, keepalive }) : new PlainClient({ addresses, clock, keepalive });

  const methodNamed = (name: string, isStream: boolean): Method => {
    const method = methods.get(name);
    if (method === undefined || method.responseStream !== isStream) throw new Fault('unknown_method', `no such RPC: ${name}`);
    return method;
  };

  const begin = (name: string, method: Method, request: object, sink: CallSink, callOptions: CallOptions | undefined): ClientCall => {
    const bytes = method.requestSerialize(request);
    if (bytes.length > MESSAGE_BYTES_MAX) throw new Fault('bad_message', 'a message is larger than 64 MB');
    const asked = callOptions?.deadlineMs ?? 0;
    const call = new ClientCall(clock, name, method, bytes, sink, callOptions, Math.min(asked > 0 ? asked : options.defaultDeadlineMs, DEADLINE_MS_MAX));
    if (callOptions?.signal?.aborted === true) call.cancel();
    else carrier.start(call);
    return call;
  };

  return {
    unary: <Request extends object, Response>(name: string, request: Request, callOptions?: CallOptions) =>
      new Promise<Response>((resolve, reject) => {
        const method = methodNamed(name, false);
        let response: { readonly value: object } | undefined;
        begin(
          name,
          method,
          request,
          {
            onBytes: (payload) => {
              response = { value: parseResponse(method, payload) };
            },
            onEnd: (fault) => {
              if (fault !== undefined) reject(fault);
              else if (response === undefined) reject(new Fault('bad_message', 'the peer answered nothing'));
              else resolve(response.value as Response);
            },
          },
          callOptions,
        );
      }),
    stream: (name, request, listener, callOptions): StreamCall => {
      const method = methodNamed(name, true);
      const call = begin(
        name,
        method,
        request,
        {
          // The contract's types are checked where the call is written.
          onBytes: (payload) => listener.onMessage(parseResponse(method, payload) as Parameters<typeof listener.onMessage>[0]),
          onEnd: (fault) => listener.onEnd(fault),
        },
        callOptions,
      );
      return {
        cancel: () => call.cancel(),
        pause: () => {
          call.isPaused = true;
          call.carrier?.pause(call);
        },
        resume: () => {
          call.isPaused = false;
          call.carrier?.resume(call);
        },
      };
    },
    isConnected: () => carrier.isConnected(),
    close: () => {
      carrier.close();
      return Promise.resolve();
    },
  };
}

function parseResponse(method: Method, payload: Buffer): object {
  try {
    return method.responseDeserialize(payload);
  } catch {
    throw new Fault('bad_message', 'the answer cannot be read');
  }
}
