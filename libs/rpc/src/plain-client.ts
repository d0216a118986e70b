/** Carries calls over plain RPCs: for tests, tools and peers that offer no Link. */
import { Client, Metadata, type ClientReadableStream } from '@grpc/grpc-js';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { asBytes, clientOptions, type Keepalive } from './channel.js';
import type { CallCarrier, ClientCall } from './client-call.js';
import { statusToFault } from './fault-status.js';
import { clientCredentials } from './tls.js';

export interface PlainClientOptions {
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly keepalive: Keepalive;
  readonly tls: RpcTls;
}

/** How long a call waits for a connection. */
const CONNECT_WAIT_MS = 1_000;
// ConnectivityState is a const enum of grpc-js, which isolated modules cannot read.
const READY = 2;

export class PlainClient implements CallCarrier {
  private readonly clients: readonly Client[];
  private readonly streams = new Map<ClientCall, ClientReadableStream<Buffer>>(); // kept: only tools and tests use plain RPCs, not requests of clients.
  private next = 0;

  constructor(private readonly options: PlainClientOptions) {
    this.clients = options.addresses.map((address) => new Client(address, clientCredentials(options.tls), clientOptions(options.keepalive)));
  }

  /** Connects on the first call of this or `start`. */
  isConnected(): boolean {
    return this.clients.some((client) => client.getChannel().getConnectivityState(true) === READY);
  }

  /** grpc-js manages plain connections itself, so lost ones are not counted. */
  stats(): { readonly links: number; readonly linksReady: number; readonly waiting: number; readonly linksLost: number } {
    return { links: this.clients.length, linksReady: this.clients.filter((client) => client.getChannel().getConnectivityState(false) === READY).length, waiting: 0, linksLost: 0 };
  }

  start(call: ClientCall): void {
    call.carrier = this;
    const client = this.clients.find((one) => one === call.onlyPeer) ?? this.pick();
    call.peer = client;
    if (client === undefined) {
      call.settle(new Fault('peer_unavailable', 'no address of the peer'));
      return;
    }
    if (client.getChannel().getConnectivityState(true) === READY) {
      this.send(client, call);
      return;
    }
    client.waitForReady(this.options.clock.nowMs() + Math.min(CONNECT_WAIT_MS, call.remainingMs()), (error) => {
      if (call.isOver) return;
      if (error === undefined) this.send(client, call);
      else call.settle(new Fault('peer_unavailable', 'no connection to the peer'));
    });
  }

  abandon(call: ClientCall): void {
    const stream = this.streams.get(call);
    this.streams.delete(call);
    stream?.cancel();
  }

  pause(call: ClientCall): void {
    this.streams.get(call)?.pause();
  }

  resume(call: ClientCall): void {
    this.streams.get(call)?.resume();
  }

  close(): void {
    for (const call of [...this.streams.keys()]) call.fail(new Fault('peer_unavailable', 'the client is closed'));
    for (const client of this.clients) client.close();
  }

  private pick(): Client | undefined {
    for (let i = 0; i < this.clients.length; i += 1) {
      this.next = (this.next + 1) % this.clients.length;
      if (this.clients[this.next]?.getChannel().getConnectivityState(true) === READY) break;
    }
    return this.clients[this.next];
  }

  /** On the wire, a unary answer is a stream of one message, so this serves both. */
  private send(client: Client, call: ClientCall): void {
    const metadata = new Metadata();
    if (call.requestId !== '') metadata.set('request-id', call.requestId);
    if (call.traceparent !== '') metadata.set('traceparent', call.traceparent);
    const stream = client.makeServerStreamRequest(call.method.path, asBytes, asBytes, call.request, metadata, { deadline: this.options.clock.nowMs() + call.remainingMs() });
    this.streams.set(call, stream);
    stream.on('data', (payload: Buffer) => call.deliver(payload));
    stream.on('end', () => {
      // After a bad status, `error` follows in the same turn with the details.
      setImmediate(() => this.finish(call, undefined));
    });
    stream.on('error', (error) => this.finish(call, statusToFault(error as Parameters<typeof statusToFault>[0])));
    if (call.isPaused) stream.pause();
  }

  private finish(call: ClientCall, fault: Fault | undefined): void {
    if (this.streams.delete(call)) call.settle(fault);
  }
}
