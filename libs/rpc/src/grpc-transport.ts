/** Links as streams of the contract's `Link` RPC: for servers that know no frames, and through proxies that speak only HTTP/2. */
import { Client, Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { asBytes, clientOptions, INSTANCE, type Keepalive } from './channel.js';
import { faultToStatus } from './fault-status.js';
import { encodeBatch } from './link-codec.js';
import type { LinkListener, LinkTransport } from './link-transport.js';
import { clientCredentials } from './tls.js';

export interface GrpcDialOptions {
  readonly address: string;
  /** gRPC path of the area's Link. */
  readonly path: string;
  readonly keepalive: Keepalive;
  readonly tls: RpcTls;
  readonly listener: LinkListener;
  /** Called at most once, before any batch. */
  readonly onReady: (instance: string) => void;
}

/** Opens a link at a server. */
export function dialGrpc({ address, path, keepalive, tls, listener, onReady }: GrpcDialOptions): LinkTransport {
  const client = new Client(address, clientCredentials(tls), clientOptions(keepalive));
  const stream = client.makeBidiStreamRequest(path, asBytes, asBytes, new Metadata());
  let isClosed = false;
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    stream.cancel();
    client.close();
    listener.onClosed();
  };
  stream.on('metadata', (metadata: Metadata) => onReady(String(metadata.get(INSTANCE)[0] ?? '')));
  stream.on('data', (batch: Buffer) => listener.onBatch(batch));
  stream.on('drain', () => listener.onDrain());
  stream.on('error', close);
  stream.on('end', close);
  return { write: (items) => stream.write(encodeBatch(items)), end: () => stream.end(), close };
}

type ServedStream = ServerDuplexStream<Buffer, Buffer>;

/** The serving side of a stream. Tells the client that the link is up, and to which process. */
export function servedStream(stream: ServedStream, instance: string | undefined, listener: LinkListener): LinkTransport {
  let isClosed = false;
  const closed = (): void => {
    if (isClosed) return;
    isClosed = true;
    listener.onClosed();
  };
  stream.on('data', (batch: Buffer) => listener.onBatch(batch));
  stream.on('drain', () => listener.onDrain());
  stream.on('end', () => listener.onEnd());
  stream.on('cancelled', closed);
  stream.on('error', closed);
  stream.on('finish', closed);
  const metadata = new Metadata();
  if (instance !== undefined) metadata.set(INSTANCE, instance);
  stream.sendMetadata(metadata);
  const close = (): void => {
    if (!isClosed) stream.emit('error', { ...faultToStatus(new Fault('link_lost', 'the link is cut')), name: 'Fault', message: 'link_lost' });
  };
  return { write: (items) => stream.write(encodeBatch(items)), end: () => stream.end(), close };
}
