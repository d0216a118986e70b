/** Mutual TLS between services: credentials that follow changes of their files, and the identity of callers. */
import { CallCredentials, ChannelCredentials, experimental, type ChannelOptions } from '@grpc/grpc-js';
import type { ServiceArea } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls, TlsFiles } from '@signalbox/runtime/tls-files';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/**
 * Begins a TLS handshake over a connected socket, with the latest files. The certificate must be for `host`. An IP address is not
 * sent as the name of a server: RFC 6066 (section 3) forbids it, and Node 26 throws at it.
 */
export function connectSecure({ socket, host, protocol, tls }: { readonly socket: Socket; readonly host: string; readonly protocol: string; readonly tls: TlsFiles }): TLSSocket {
  const { ca, certificate, privateKey } = tls.latest();
  return connectTls({ socket, host, ca, cert: certificate, key: privateKey, ALPNProtocols: [protocol], ...(isIP(host) === 0 ? { servername: host } : {}) });
}

type SecureConnector = experimental.SecureConnector;

/** Secures the connections of grpc-js, which by itself sends an IP address as the name of a server. Open connections keep their certificate. */
class RpcCredentials extends ChannelCredentials {
  constructor(private readonly tls: TlsFiles | undefined) {
    super();
  }

  _isSecure(): boolean {
    return this.tls !== undefined;
  }

  _equals(other: ChannelCredentials): boolean {
    return other instanceof RpcCredentials && this.tls === other.tls;
  }

  _createSecureConnector({ path }: experimental.GrpcUri, _options: ChannelOptions, callCredentials?: CallCredentials): SecureConnector {
    const { tls } = this;
    const host = experimental.splitHostPort(path)?.host ?? path;
    // If a client is closed while grpc-js waits to retry a failed connection, grpc-js retries all the same. That connection would stay open, with its keepalive, and nobody would close it.
    let isClosed = false;
    return {
      connect: (socket) => {
        if (isClosed) return Promise.reject(new Error('the client is closed'));
        return tls === undefined ? Promise.resolve({ socket, secure: false }) : secured(connectSecure({ socket, host, protocol: 'h2', tls }));
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials ?? CallCredentials.createEmpty(),
      destroy: () => {
        isClosed = true;
      },
    };
  }
}

/** Resolves once the handshake is over; rejects if it failed. */
function secured(socket: TLSSocket): ReturnType<SecureConnector['connect']> {
  return new Promise((resolve, reject) => {
    socket.on('error', reject).once('secureConnect', () => resolve({ socket, secure: true }));
  });
}

export function clientCredentials(tls: RpcTls): ChannelCredentials {
  return new RpcCredentials(tls === 'off' ? undefined : tls);
}

/** The services that may call each method; methods not listed may be called by edge only. `worker` is any service named `worker-…`. */
export const CALLERS: Readonly<Partial<Record<ServiceArea, Readonly<Record<string, readonly string[]>>>>> = {
  // Accounts' own secrets never pass through edge.
  accounts: { ResolveProviderKey: ['worker'], GetAccount: ['edge', 'billing'], ListAccounts: ['edge', 'billing'] },
  billing: { Register: ['worker'], Watermark: ['worker'], Deregister: ['worker'], Totals: ['edge', 'quota'], Watermarks: ['edge', 'quota'], BookLost: ['quota'] },
  quota: { Heartbeat: ['edge', 'worker'], Finish: ['worker'], Reregister: ['worker'] },
  sandbox: { Run: ['plugins'] },
  worker: { GenerateImages: ['plugins'] },
};
const EDGE_ALONE = ['edge'];

export function callersOf(area: ServiceArea, method: string): readonly string[] {
  return CALLERS[area]?.[method] ?? EDGE_ALONE;
}

export interface PeerCertificate {
  /** As node:tls gives it: `DNS:edge, DNS:edge.signalbox.svc, IP Address:127.0.0.1`. */
  readonly subjectaltname?: string | undefined;
}

/** Names of the services that a certificate identifies: the first label of each DNS name. */
export function identitiesOf(certificate: PeerCertificate | undefined): ReadonlySet<string> {
  const names = (certificate?.subjectaltname ?? '').split(', ').flatMap((entry) => (entry.startsWith('DNS:') ? [entry.slice(4).split('.')[0] ?? ''] : []));
  return new Set(names.map((name) => (name.startsWith('worker-') ? 'worker' : name)));
}

/** True for the methods that the holder of this certificate may call. */
export function mayCall(area: ServiceArea, certificate: PeerCertificate | undefined): (method: string) => boolean {
  const identities = identitiesOf(certificate);
  return (method) => callersOf(area, method).some((caller) => identities.has(caller));
}

export function callerRefused(): Fault {
  return new Fault('caller_refused', 'the certificate of the caller does not permit this method');
}
