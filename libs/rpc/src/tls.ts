/** Mutual TLS between services: credentials that follow changes of their files, and the identity of callers. */
import { ChannelCredentials, experimental } from '@grpc/grpc-js';
import type { ServiceArea } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls, TlsFiles, TlsMaterial } from '@signalbox/runtime/tls-files';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** Supplies the files to grpc-js: new connections use the latest files, existing connections stay open. */
class FilesProvider implements experimental.CertificateProvider {
  private readonly unwatch = new Map<CaListener | IdentityListener, () => void>(); // kept: by connection.

  constructor(private readonly files: TlsFiles) {}

  addCaCertificateListener(listener: CaListener): void {
    this.add(listener, ({ ca }) => listener({ caCertificate: ca }));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.remove(listener);
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.add(listener, ({ certificate, privateKey }) => listener({ certificate, privateKey }));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.remove(listener);
  }

  private add(listener: CaListener | IdentityListener, tell: (material: TlsMaterial) => void): void {
    this.unwatch.set(listener, this.files.watch(tell));
    // Not now: grpc-js is not ready for the callback while it adds the listener.
    process.nextTick(() => {
      if (this.unwatch.has(listener)) tell(this.files.latest());
    });
  }

  private remove(listener: CaListener | IdentityListener): void {
    this.unwatch.get(listener)?.();
    this.unwatch.delete(listener);
  }
}

/**
 * Refuses to connect for a closed client. If a client is closed while grpc-js waits to retry a failed connection, grpc-js
 * retries all the same. Without this, that connection would stay open, with its keepalive, and nobody would close it.
 */
class ClosingCredentials extends ChannelCredentials {
  constructor(private readonly inner: ChannelCredentials) {
    super();
  }

  _isSecure(): boolean {
    return this.inner._isSecure();
  }

  _equals(other: ChannelCredentials): boolean {
    return other instanceof ClosingCredentials && this.inner._equals(other.inner);
  }

  _createSecureConnector(...given: Parameters<ChannelCredentials['_createSecureConnector']>): ReturnType<ChannelCredentials['_createSecureConnector']> {
    const connector = this.inner._createSecureConnector(...given);
    let isClosed = false;
    return {
      connect: (socket) => (isClosed ? Promise.reject(new Error('the client is closed')) : connector.connect(socket)),
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => {
        isClosed = true;
        connector.destroy();
      },
    };
  }
}

export function clientCredentials(tls: RpcTls): ChannelCredentials {
  if (tls === undefined || tls === 'off') return new ClosingCredentials(ChannelCredentials.createInsecure());
  const provider = new FilesProvider(tls);
  return new ClosingCredentials(experimental.createCertificateProviderChannelCredentials(provider, provider));
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
