/** A client of one request: what it was told, byte for byte, and when it left. */
import type { Failed__Output } from '@signalbox/contracts/worker';
import type { Answer, ClientListener, Refusal, Settlement } from '@signalbox/edge/proof';

export type ClientState = 'waiting' | 'streaming' | 'answered' | 'cut' | 'refused' | 'left' | 'reset';

export class SimClient implements Answer {
  state: ClientState = 'waiting';
  /** Chunks received. */
  chunks = 0;
  /** Cost as the header, the body or the last chunk says it. */
  costTold: string | undefined;
  /** What the limits of its account did to a whole answer, as it was told. */
  stoppedBy = '';
  /** Class of the failure that cut its stream. */
  cutBy = '';
  refusal: Refusal | undefined;
  admission: string | undefined;
  private listener: ClientListener | undefined;

  constructor(
    readonly requestId: string,
    readonly accountId: string,
    readonly keyId: string,
    /** Told when an answer is over, whole or cut. */
    private readonly onAnswered: (client: SimClient) => void = () => undefined,
  ) {}

  get isOver(): boolean {
    return this.state !== 'waiting' && this.state !== 'streaming';
  }

  attend(listener: ClientListener): void {
    this.listener = listener;
    if (this.isGone()) listener.onGone();
  }

  keepAlive(): void {
    // Says nothing.
  }

  chunk(): void {
    if (this.isOver) return;
    this.state = 'streaming';
    this.chunks += 1;
  }

  finish(_route: unknown, _choices: unknown, settlement: Settlement): void {
    this.end('answered', settlement);
  }

  cut(_route: unknown, failed: Failed__Output, settlement: Settlement | undefined): void {
    if (!this.isOver) this.cutBy = failed.class;
    this.end('cut', settlement);
  }

  body(_body: unknown, settlement: Settlement): void {
    this.end('answered', settlement);
  }

  refuse(refusal: Refusal): void {
    if (this.isOver) return;
    this.refusal = refusal;
    this.state = 'refused';
  }

  decided(): void {
    // Never asked for.
  }

  admitted({ decision }: { readonly decision: string }): void {
    this.admission = decision;
  }

  abandon(): void {
    if (!this.isOver) this.state = 'reset';
  }

  isGone(): boolean {
    return this.state === 'left';
  }

  /** Hangs up; edge hears it. */
  leave(): void {
    if (this.isOver) return;
    this.state = 'left';
    this.listener?.onGone();
  }

  slow(): void {
    if (!this.isOver) this.listener?.onSlow();
  }

  drain(): void {
    if (!this.isOver) this.listener?.onDrain();
  }

  /** Its edge died. */
  reset(): void {
    if (!this.isOver) this.state = 'reset';
  }

  private end(state: ClientState, settlement: Settlement | undefined): void {
    if (this.isOver) return;
    this.state = state;
    this.costTold = settlement?.end.costNanoUsd;
    this.stoppedBy = settlement?.end.stoppedBy ?? '';
    this.onAnswered(this);
  }
}
