/** The gRPC server of a service: its plain RPCs and its Link, with one table of handlers. */
import { Metadata, Server, type MethodDefinition, type ServerDuplexStream, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { ServiceArea } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import type { Log } from '@signalbox/runtime/log';
import { bracketed, ConfigError, doorError } from '@signalbox/runtime/config';
import type { Tracer } from '@signalbox/runtime/span';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import type { Handlers } from './call.js';
import { asBytes, DEFAULT_KEEPALIVE, INSTANCE, linkPath, methodsOf, serverOptions, type Keepalive } from './channel.js';
import { faultToStatus } from './fault-status.js';
import { InProcessServer } from './in-process.js';
import { createAssembling, LinkServer } from './link-server.js';
import { plainStream, plainUnary } from './plain-door.js';
import { mayCall, serverCredentials } from './tls.js';
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
  const server = withWindows(new Server(serverOptions(options.keepalive ?? DEFAULT_KEEPALIVE)));
  const links = new Set<LinkServer>(); // kept: by connection.
  const assembling = createAssembling();
  let isStopping = false;

  const serveLink = (stream: LinkStream): void => {
    const link = new LinkServer({ methods, handlers, assembling, clock, log, tracer, mayCall: hasTls ? mayCall(area, stream.getAuthContext().sslPeerCertificate) : undefined, write: (batch) => stream.write(batch), onFinished: () => stream.end() });
    links.add(link);
    const close = (): void => {
      link.abort();
      links.delete(link);
    };
    stream.on('data', (batch: Buffer) => {
      try {
        link.receive(batch);
      } catch (error) {
        log.error('a link sent an unreadable batch', {}, error);
        close();
        stream.emit('error', { ...faultToStatus(new Fault('bad_message', 'the batch cannot be read')), name: 'Fault', message: 'bad_message' });
      }
    });
    stream.on('drain', () => link.unblock());
    stream.on('end', () => link.end());
    stream.on('cancelled', close);
    stream.on('error', close);
    stream.on('finish', () => links.delete(link));
    // Tells the client that the link is up, and to which process.
    const metadata = new Metadata();
    if (options.instance !== undefined) metadata.set(INSTANCE, options.instance);
    stream.sendMetadata(metadata);
    if (isStopping) link.goAway();
  };

  const served: Record<string, MethodDefinition<Buffer, Buffer> | MethodDefinition<object, object> | MethodDefinition<object, Buffer>> = {
    Link: { path: linkPath(area), requestStream: true, responseStream: true, requestSerialize: asBytes, requestDeserialize: asBytes, responseSerialize: asBytes, responseDeserialize: asBytes },
  };
  const implementation: UntypedServiceImplementation = { Link: serveLink };
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

  const inProcess = new InProcessServer({ methods, handlers, clock, log, tracer });
  let address = '';
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    isStopping = true;
    options.doors?.delete(address);
    for (const link of links) link.goAway();
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(graceMs, () => {
        inProcess.cut();
        server.forceShutdown();
        resolve();
      });
      const shut = new Promise<void>((done) => server.tryShutdown(() => done()));
      void Promise.all([shut, inProcess.drain()]).then(() => {
        timer.cancel();
        resolve();
      });
    });
  };

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.bindAsync(`${bracketed(options.host)}:${String(options.port)}`, serverCredentials(tls), (error, port) => {
          if (error !== null) {
            reject(doorError(error, { host: options.host, port: options.port, variable: 'GRPC_PORT' }));
            return;
          }
          address = `${bracketed(options.host)}:${String(port)}`;
          options.doors?.set(address, inProcess);
          resolve(port);
        });
      }),
    stop: (graceMs) => (stopped ??= stop(graceMs)),
  };
}
