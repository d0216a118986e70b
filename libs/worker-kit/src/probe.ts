import type { EndpointBreakers } from './endpoint-breakers.js';

/** An attempt that probes an endpoint while others wait. The next one may follow at its first content, or else when it is over. */
export class Probe {
  private isOpen = true;

  constructor(
    private readonly breakers: EndpointBreakers,
    private readonly endpointId: string,
  ) {}

  /** The first content has arrived. */
  readonly begun = (): void => {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.breakers.begun(this.endpointId);
  };

  /** The breaker has recorded how the attempt ended. */
  judged(): void {
    this.isOpen = false;
  }

  /** The attempt is over. Without content or a recorded end (its client left, or a fault of ours ended it) the probe is given back. */
  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.breakers.giveBack(this.endpointId);
  }
}
