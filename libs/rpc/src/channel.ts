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

// A message may reach its bound through the plain door, plus the frame.
const MESSAGE_OPTIONS: ChannelOptions = {
  'grpc.max_send_message_length': MESSAGE_BYTES_MAX + 1024,
  'grpc.max_receive_message_length': MESSAGE_BYTES_MAX + 1024,
  'grpc.default_compression_algorithm': compressionAlgorithms.identity,
};

/**
 * Bytes that a peer may send before what it sent is taken (RFC 9113, 5.2), of a connection and of the one stream that a
 * link is. The 65,535 of the protocol are less than one long prompt, which then waits for the reader several times on
 * its way; what a single call may send is the business of its credit (flow.ts).
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
    // Each link is a TCP connection of its own, and retries are decided here, not below.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.initial_reconnect_backoff_ms': 50,
    'grpc.max_reconnect_backoff_ms': 2_000,
    // One name with several addresses: links spread over them.
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ pick_first: { shuffleAddressList: true } }] }),
    'grpc.service_config_disable_resolution': 1,
  };
}

// Channelz stays on: without it, forceShutdown of grpc-js 1.14 knows no session and cuts nothing.
export function serverOptions(keepalive: Keepalive): ChannelOptions {
  return { ...MESSAGE_OPTIONS, 'grpc.keepalive_time_ms': keepalive.timeMs, 'grpc.keepalive_timeout_ms': keepalive.timeoutMs };
}

export type Method = Rpc;

/** Metadata of a link's answer: which of the processes behind an address it reached. */
export const INSTANCE = 'instance';

/** Passes batches as they are: link-codec.ts reads and writes them. */
export function asBytes(bytes: Buffer): Buffer {
  noteBody(bytes.length);
  return bytes;
}

/** The methods of an area but Link, by RPC name. */
export function methodsOf(area: ServiceArea): ReadonlyMap<string, Method> {
  return new Map(Object.entries(serviceContract(area).rpcs));
}

export function linkPath(area: ServiceArea): string {
  return serviceContract(area).link;
}
