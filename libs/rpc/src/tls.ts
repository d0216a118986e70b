/** Mutual TLS between services: credentials that follow the files, and who a caller is. */
import { ChannelCredentials, ServerCredentials, experimental } from '@grpc/grpc-js';
import type { ServiceArea } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls, TlsFiles, TlsMaterial } from '@signalbox/runtime/tls-files';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** The files as grpc-js wants them: connections made from now on use what was read last, the others live on. */
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
    // Whoever adds itself is in the middle of doing so.
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
 * Nothing is connected for a client that was closed. A client whose connection failed is closed while grpc-js waits to try
 * again, and it does: that connection would stay open, with its keepalive, and belong to nobody.
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

/** A caller without a certificate of the same authority does not get as far as a call. */
export function serverCredentials(tls: RpcTls): ServerCredentials {
  if (tls === undefined || tls === 'off') return ServerCredentials.createInsecure();
  const provider = new FilesProvider(tls);
  return experimental.createCertificateProviderServerCredentials(provider, provider, true);
}

/** What is not named here is called by the edge alone. A worker is any service named `worker-…`. */
export const CALLERS: Readonly<Partial<Record<ServiceArea, Readonly<Record<string, readonly string[]>>>>> = {
  // Accounts' own secrets never pass the edge.
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

interface PeerCertificate {
  /** As node:tls tells it: `DNS:edge, DNS:edge.signalbox.svc, IP Address:127.0.0.1`. */
  readonly subjectaltname?: string | undefined;
}

/** Services that a certificate speaks for: the first label of each DNS name. */
export function identitiesOf(certificate: PeerCertificate | undefined): ReadonlySet<string> {
  const names = (certificate?.subjectaltname ?? '').split(', ').flatMap((entry) => (entry.startsWith('DNS:') ? [entry.slice(4).split('.')[0] ?? ''] : []));
  return new Set(names.map((name) => (name.startsWith('worker-') ? 'worker' : name)));
}

/** True for the methods that whoever has this certificate may call. */
export function mayCall(area: ServiceArea, certificate: PeerCertificate | undefined): (method: string) => boolean {
  const identities = identitiesOf(certificate);
  return (method) => callersOf(area, method).some((caller) => identities.has(caller));
}

export function callerRefused(): Fault {
  return new Fault('caller_refused', 'the certificate of the caller does not entitle it to this method');
}
