/** The gRPC server of a service: its plain RPCs and its Link, with one table of handlers. */
import { Server, ServerCredentials, type MethodDefinition, type ServerDuplexStream, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { ServiceArea } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import type { Log } from '@signalbox/runtime/log';
import { bracketed, ConfigError, doorError } from '@signalbox/runtime/config';
import type { Tracer } from '@signalbox/runtime/span';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { TLSSocket } from 'node:tls';
import type { Handlers } from './call.js';
import { asBytes, DEFAULT_KEEPALIVE, linkPath, methodsOf, serverOptions, type Keepalive } from './channel.js';
import { createDoorway } from './doorway.js';
import { FramedConnection } from './framed-connection.js';
import { greeting } from './frames.js';
import { servedStream } from './grpc-transport.js';
import { InProcessServer } from './in-process.js';
import { LinkDoor } from './link-door.js';
import { createAssembling } from './link-server.js';
import { plainStream, plainUnary } from './plain-door.js';
import { mayCall } from './tls.js';
import { withWindows } from './windows.js';

export interface RpcServerOptions {
  readonly area: ServiceArea;
  /** By RPC name, such as `Admit`. RPCs without a handler answer `unknown_method`. */
  readonly handlers: Handlers;
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Registry through which services of this process call this one in memory. */
  readonly doors?: ProcessDoors | undefined;
  /** Records a span of each call that comes with a trace. */
  readonly tracer?: Tracer | undefined;
  /** Name that distinguishes this process from others behind the same address, unchanged by a restart. Calls about an earlier call find the right process by it. Absent if any replica will do. */
  readonly instance?: string;
  /** Default: ping after 10 s, give up after 5 s more. */
  readonly keepalive?: Keepalive;
  /** With certificates, callers need one from the same authority, and may call only the methods that it permits (tls.ts). */
  readonly tls?: RpcTls;
}

export interface RpcServer {
  /** Binds, serves and resolves to the port. Rejects if the port cannot be bound. */
  start(): Promise<number>;
  /** Sends GOAWAY, lets open calls finish for `graceMs`, then cuts. Safe to call twice. */
  stop(graceMs: number): Promise<void>;
}

/** Hosts that are reachable only from this machine. */
const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

type LinkStream = ServerDuplexStream<Buffer, Buffer>;

/** Throws if a handler has no RPC in the contract or is in the wrong table; throws a ConfigError if it would listen beyond loopback without certificates. */
export function createRpcServer(options: RpcServerOptions): RpcServer {
  const { area, handlers, clock, log, tracer, tls } = options;
  if (tls === undefined && !LOOPBACK.test(options.host)) throw new ConfigError(`HOST: the rpc door would be open to ${options.host} without certificates; give RPC_TLS_DIR, or RPC_TLS=off on a network of its own.`);
  const hasTls = tls !== undefined && tls !== 'off';
  const methods = methodsOf(area);
  for (const name of [...Object.keys(handlers.unary), ...Object.keys(handlers.stream ?? {})]) {
    if (methods.get(name)?.responseStream !== Object.hasOwn(handlers.stream ?? {}, name)) throw new Error(`The contract of ${area} has no such RPC: ${name}.`);
  }
  const keepalive = options.keepalive ?? DEFAULT_KEEPALIVE;
  const server = withWindows(new Server(serverOptions(keepalive)));
  const links = new LinkDoor({ area, hasTls, methods, handlers, assembling: createAssembling(), clock, log, tracer });

  const served: Record<string, MethodDefinition<Buffer, Buffer> | MethodDefinition<object, object> | MethodDefinition<object, Buffer>> = {
    Link: { path: linkPath(area), requestStream: true, responseStream: true, requestSerialize: asBytes, requestDeserialize: asBytes, responseSerialize: asBytes, responseDeserialize: asBytes },
  };
  const implementation: UntypedServiceImplementation = { Link: (stream: LinkStream) => void links.serve(stream.getAuthContext().sslPeerCertificate, (listener) => servedStream(stream, options.instance, listener)) };
  const entitled = (name: string) => (hasTls ? (call: Pick<LinkStream, 'getAuthContext'>): boolean => mayCall(area, call.getAuthContext().sslPeerCertificate)(name) : undefined);
  for (const [name, method] of methods) {
    const unary = handlers.unary[name];
    const stream = handlers.stream?.[name];
    if (unary !== undefined) {
      served[name] = method;
      implementation[name] = plainUnary(unary, method, { clock, log, tracer, mayCall: entitled(name) });
    } else if (stream !== undefined) {
      served[name] = { ...method, responseSerialize: asBytes, responseDeserialize: asBytes };
      implementation[name] = plainStream(stream, method, { clock, log, tracer, mayCall: entitled(name) });
    }
  }
  server.addService(served, implementation);
  // Certificates are checked at the doorway: what is injected is a connection that passed.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const doorway = createDoorway({
    host: options.host,
    port: options.port,
    clock,
    tls,
    onOther: (socket) => injector.injectConnection(socket),
    onLink: (socket, path, rest) => {
      if (path !== linkPath(area)) {
        socket.destroy();
        return;
      }
      socket.write(greeting(options.instance ?? ''));
      const connection = links.serve(socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined, (listener) => new FramedConnection({ socket, clock, keepalive, listener }));
      socket.on('data', (bytes) => connection.hear(bytes));
      if (rest.length > 0) connection.hear(rest);
    },
  });

  const inProcess = new InProcessServer({ methods, handlers, clock, log, tracer });
  let unregister: () => void = () => undefined;
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    unregister();
    const othersClosed = doorway.close();
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(graceMs, () => {
        inProcess.cut();
        links.cut();
        server.forceShutdown();
        doorway.cut();
        resolve();
      });
      const linksClosed = links.drain();
      const shut = new Promise<void>((done) => server.tryShutdown(() => done()));
      void Promise.all([linksClosed, othersClosed, shut, inProcess.drain()]).then(() => {
        timer.cancel();
        resolve();
      });
    });
  };

  return {
    start: async () => {
      const port = await doorway.listen().catch((error: unknown) => {
        throw doorError(error as Error, { host: options.host, port: options.port, variable: 'GRPC_PORT' });
      });
      const address = `${bracketed(options.host)}:${String(port)}`;
      options.doors?.set(address, inProcess);
      unregister = () => void options.doors?.delete(address);
      return port;
    },
    stop: (graceMs) => (stopped ??= stop(graceMs)),
  };
}
