/** The port of a service: takes connections, and tells links of their own (ADR 103) from those that speak HTTP/2. */
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createTcpServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { PROTOCOL, readGreeting } from './frames.js';

export interface DoorwayOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly tls: RpcTls;
  /** A client opened a link to the Link of this gRPC path; `rest` is what it sent behind its first line. */
  readonly onLink: (socket: Socket, path: string, rest: Buffer) => void;
  /** Any other client. What it has sent so far can be read from the socket. */
  readonly onOther: (socket: Socket) => void;
}

export interface Doorway {
  /** Listens at every address of the host; resolves to the port. Rejects with the system's error if it cannot listen. */
  listen(): Promise<number>;
  /** Takes no more connections, and closes those that have not said yet what they are. Resolves once those that were given to `onOther` are closed; Node 24 has grpc-js believe that they are while calls still run. */
  close(): Promise<void>;
  /** Closes the connections that were given to `onOther`. */
  cut(): void;
}

/** For the first line, and with certificates for the handshake before it. */
const GREETING_MS = 10_000;

export function createDoorway({ host, port, clock, tls, onLink, onOther }: DoorwayOptions): Doorway {
  const greeting = new Set<Socket>(); // kept: connections that have said nothing, for seconds.
  const others = new Set<Socket>(); // kept: by connection.
  let onOthersClosed: () => void = () => undefined;
  let isClosed = false;

  const receive = (socket: Socket): void => {
    // Its handshake ended after `close`, and nobody would wait for its calls.
    if (isClosed) {
      socket.destroy();
      return;
    }
    let head: Buffer = Buffer.alloc(0);
    greeting.add(socket);
    const timer = clock.setTimer(GREETING_MS, () => socket.destroy(), { unref: true });
    const over = (): void => {
      greeting.delete(socket);
      timer.cancel();
    };
    const hear = (bytes: Buffer): void => {
      head = head.length === 0 ? bytes : Buffer.concat([head, bytes]);
      const read = readGreeting(head);
      if (read === 'more') return;
      socket.off('data', hear);
      over();
      if (read !== 'other') {
        onLink(socket, read.word, head.subarray(read.length));
        return;
      }
      others.add(socket);
      socket.once('close', () => {
        others.delete(socket);
        if (others.size === 0) onOthersClosed();
      });
      socket.pause();
      socket.unshift(head);
      onOther(socket);
    };
    socket.on('data', hear);
    socket.on('close', over);
    socket.on('error', () => socket.destroy());
  };

  const servers: Server[] = [];
  const unwatch: (() => void)[] = [];
  const createServer = (): Server => {
    if (tls === undefined || tls === 'off') return createTcpServer({ noDelay: true }, receive);
    const { ca, certificate, privateKey } = tls.latest();
    const server = createTlsServer({ ca, cert: certificate, key: privateKey, requestCert: true, rejectUnauthorized: true, ALPNProtocols: [PROTOCOL, 'h2'], handshakeTimeout: GREETING_MS, noDelay: true }, receive);
    // New connections use the latest files; open ones stay.
    unwatch.push(tls.watch((latest) => server.setSecureContext({ ca: latest.ca, cert: latest.certificate, key: latest.privateKey })));
    server.on('tlsClientError', (_error, socket) => {
      // Its type says Error, and it is the code; absent when the handshake failed otherwise, as with a probe of the port.
      const reason: unknown = socket.authorizationError;
      if (typeof reason === 'string') tls.refused(reason);
      socket.destroy();
    });
    return server;
  };
  const listenAt = async (address: string, at: number): Promise<number> => {
    const server = createServer();
    server.listen({ host: address, port: at });
    await once(server, 'listening');
    servers.push(server);
    return (server.address() as AddressInfo).port;
  };

  return {
    listen: async () => {
      let bound = port;
      let failed: unknown;
      for (const address of await addressesOf(host)) {
        try {
          bound = await listenAt(address, bound);
        } catch (error) {
          // A name such as localhost may have an address of a family that this machine does not use.
          if ((error as NodeJS.ErrnoException).code !== 'EADDRNOTAVAIL') throw error;
          failed ??= error;
        }
      }
      if (servers.length === 0) throw failed;
      return bound;
    },
    close: async () => {
      isClosed = true;
      for (const stop of unwatch) stop();
      for (const server of servers) server.close();
      for (const socket of greeting) socket.destroy();
      if (others.size > 0) await new Promise<void>((resolve) => (onOthersClosed = resolve));
    },
    cut: () => {
      for (const socket of others) socket.destroy();
    },
  };
}

/** All addresses of a host, each once; a literal address is its own. */
async function addressesOf(host: string): Promise<readonly string[]> {
  const bare = host.replace(/^\[|\]$/g, '');
  return isIP(bare) === 0 ? [...new Set((await lookup(bare, { all: true })).map(({ address }) => address))] : [bare];
}
