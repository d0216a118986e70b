/** Options of every gRPC connection, in one place; credentials are in tls.ts. */
import { compressionAlgorithms, type ChannelOptions } from '@grpc/grpc-js';
import { serviceContract, type Rpc, type ServiceArea } from '@signalbox/contracts/load';
import { noteBody } from '@signalbox/runtime/young-heap';
import { MESSAGE_BYTES_MAX } from './link-item.js';

/** How fast a frozen connection is noticed. */
export interface Keepalive {
  readonly timeMs: number;
  readonly timeoutMs: number;
}

// 10 s + 5 s: below the 30 s idle cut of common load balancers, above a long pause of the collector.
export const DEFAULT_KEEPALIVE: Keepalive = { timeMs: 10_000, timeoutMs: 5_000 };

// Room for a message of the largest size over plain RPCs, plus its frame.
const MESSAGE_OPTIONS: ChannelOptions = {
  'grpc.max_send_message_length': MESSAGE_BYTES_MAX + 1024,
  'grpc.max_receive_message_length': MESSAGE_BYTES_MAX + 1024,
  'grpc.default_compression_algorithm': compressionAlgorithms.identity,
};

/**
 * HTTP/2 flow-control window (RFC 9113, 5.2), both of a connection and of the one stream that is a link: the bytes a peer
 * may send before we have read them. The protocol's default of 65,535 is less than one long prompt, which would have to
 * wait for the reader several times. What a single call may send is limited by its credit (flow.ts).
 */
export const WINDOW_BYTES = 1024 * 1024;

export function clientOptions(keepalive: Keepalive): ChannelOptions {
  return {
    ...MESSAGE_OPTIONS,
    'grpc-node.flow_control_window': WINDOW_BYTES,
    'grpc.keepalive_time_ms': keepalive.timeMs,
    'grpc.keepalive_timeout_ms': keepalive.timeoutMs,
    'grpc.keepalive_permit_without_calls': 1,
    'grpc.enable_channelz': 0,
    // Each link has its own TCP connection, and we decide about retries, not grpc-js.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.initial_reconnect_backoff_ms': 50,
    'grpc.max_reconnect_backoff_ms': 2_000,
    // If a name resolves to several addresses, spread the links over them.
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ pick_first: { shuffleAddressList: true } }] }),
    'grpc.service_config_disable_resolution': 1,
  };
}

// Channelz stays on: without it, forceShutdown of grpc-js 1.14 does not track sessions and closes none.
export function serverOptions(keepalive: Keepalive): ChannelOptions {
  return { ...MESSAGE_OPTIONS, 'grpc.keepalive_time_ms': keepalive.timeMs, 'grpc.keepalive_timeout_ms': keepalive.timeoutMs };
}

export type Method = Rpc;

/** Metadata key in a link's response: names the process that was reached, of several behind an address. */
export const INSTANCE = 'instance';

/** Passes batches as they are: link-codec.ts reads and writes them. */
export function asBytes(bytes: Buffer): Buffer {
  noteBody(bytes.length);
  return bytes;
}

/** The methods of an area except Link, by RPC name. */
export function methodsOf(area: ServiceArea): ReadonlyMap<string, Method> {
  return new Map(Object.entries(serviceContract(area).rpcs));
}

export function linkPath(area: ServiceArea): string {
  return serviceContract(area).link;
}
