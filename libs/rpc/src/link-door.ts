/** The links that a server has, whatever they run on. */
import type { ServiceArea } from '@signalbox/contracts/load';
import { LinkServer, type LinkServerOptions } from './link-server.js';
import type { LinkListener, LinkTransport } from './link-transport.js';
import { mayCall, type PeerCertificate } from './tls.js';

export interface LinkDoorOptions extends Omit<LinkServerOptions, 'write' | 'onFinished' | 'mayCall'> {
  readonly area: ServiceArea;
  /** Callers have certificates, which say what they may call. */
  readonly hasTls: boolean;
}

interface ServedLink {
  readonly link: LinkServer;
  readonly transport: LinkTransport;
}

export class LinkDoor {
  private readonly links = new Set<ServedLink>(); // kept: by connection.
  private isStopping = false;
  private onDrained: () => void = () => undefined;

  constructor(private readonly options: LinkDoorOptions) {}

  /** Serves a link, and returns its transport. `certificate`: the caller's. `open` makes the transport, which calls its listener only later. */
  serve<Transport extends LinkTransport>(certificate: PeerCertificate | undefined, open: (listener: LinkListener) => Transport): Transport {
    const { area, hasTls, log } = this.options;
    const link = new LinkServer({ ...this.options, mayCall: hasTls ? mayCall(area, certificate) : undefined, write: (items) => transport.write(items), onFinished: () => transport.end() });
    const transport = open({
      onBatch: (batch) => {
        try {
          link.receive(batch);
        } catch (error) {
          log.error('a link sent an unreadable batch', {}, error);
          transport.close();
        }
      },
      onDrain: () => link.unblock(),
      onEnd: () => link.end(),
      onClosed: () => {
        link.abort();
        this.links.delete(served);
        if (this.links.size === 0) this.onDrained();
      },
    });
    const served: ServedLink = { link, transport };
    this.links.add(served);
    if (this.isStopping) link.goAway();
    return transport;
  }

  /** Asks for no new calls on any link; resolves once all links are closed. */
  async drain(): Promise<void> {
    this.isStopping = true;
    for (const { link } of this.links) link.goAway();
    if (this.links.size > 0) await new Promise<void>((resolve) => (this.onDrained = resolve));
  }

  cut(): void {
    for (const { transport } of [...this.links]) transport.close();
  }
}
