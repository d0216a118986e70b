/** Opens a link: as a connection of its own, and where that is refused, as a gRPC stream. */
import { dialFramed, type FramedDialOptions } from './framed-dialer.js';
import { dialGrpc } from './grpc-transport.js';
import type { LinkTransport } from './link-transport.js';

export type LinkDialOptions = Omit<FramedDialOptions, 'onRefused'>;

/** Servers before ADR 103 and proxies that speak HTTP/2 only refuse the first kind. */
export function dialLink(options: LinkDialOptions): LinkTransport {
  let transport: LinkTransport;
  let isClosed = false;
  const framed = dialFramed({
    ...options,
    onRefused: () => {
      if (isClosed) options.listener.onClosed();
      else transport = dialGrpc(options);
    },
  });
  transport = framed;
  return {
    write: (items) => transport.write(items),
    end: () => transport.end(),
    close: () => {
      isClosed = true;
      transport.close();
    },
  };
}
