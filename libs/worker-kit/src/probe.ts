import type { EndpointBreakers } from './endpoint-breakers.js';

/** An attempt that others wait for: it leaves its place once it has shown something, and else when it is over. */
export class Probe {
  private isOpen = true;

  constructor(
    private readonly breakers: EndpointBreakers,
    private readonly endpointId: string,
  ) {}

  /** Content has come. */
  readonly begun = (): void => {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.breakers.begun(this.endpointId);
  };

  /** How it ended was recorded. */
  judged(): void {
    this.isOpen = false;
  }

  /** Without a verdict unless there was one: its client left, or a fault of ours ended it. */
  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.breakers.giveBack(this.endpointId);
  }
}
