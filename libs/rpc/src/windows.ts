/** Sets the HTTP/2 flow-control windows of a server. grpc-js has an option for a client's windows (channel.ts), but none for a server's. */
import type { Server, ServerCredentials } from '@grpc/grpc-js';
import type { Http2Server, ServerHttp2Session } from 'node:http2';
import { WINDOW_BYTES } from './channel.js';

type Creator = (credentials: ServerCredentials) => Http2Server;

function widen(session: ServerHttp2Session): void {
  if (session.destroyed) return;
  session.settings({ initialWindowSize: WINDOW_BYTES });
  session.setLocalWindowSize(WINDOW_BYTES);
}

/** Sets `WINDOW_BYTES` for each connection and stream of `server`, and returns it. Throws if this grpc-js does not create its node:http2 server the way 1.14 does. */
export function withWindows(server: Server): Server {
  const create: unknown = Reflect.get(server, 'createHttp2Server');
  if (typeof create !== 'function') throw new TypeError('This grpc-js has no createHttp2Server: the windows of its servers cannot be set.');
  const widened: Creator = (credentials) => (create as Creator).call(server, credentials).on('session', widen);
  Object.defineProperty(server, 'createHttp2Server', { value: widened });
  return server;
}
