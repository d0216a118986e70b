/** A client of one request: what it was told, byte for byte, and when it left. */
import type { Body__Output, Failed__Output } from '@signalbox/contracts/worker';
import type { Answer, Caller, ClientListener, Refusal, Settlement } from '@signalbox/edge/proof';
import type { Life } from './life.js';
import type { Traffic } from './traffic.js';
import { attemptOf } from './words.js';

export type ClientState = 'waiting' | 'streaming' | 'answered' | 'cut' | 'refused' | 'left' | 'reset';

export class SimClient implements Answer {
  state: ClientState = 'waiting';
  /** Chunks received. */
  chunks = 0;
  /** Attempts of which it got words. */
  readonly given = new Set<number>();
  /** Cost as the header, the body or the last chunk says it. */
  costTold: string | undefined;
  /** Virtual milliseconds at which it was told its end. */
  endedAtMs: number | undefined;
  /** What the limits of its account did to a whole answer, as it was told. */
  stoppedBy = '';
  /** Class of the failure that cut its stream. */
  cutBy = '';
  refusal: Refusal | undefined;
  admission: string | undefined;
  /** What its Idempotency-Key was found to be; undefined = it has none. */
  entry: string | undefined;
  private listener: ClientListener | undefined;
  isCutOff = false;

  constructor(
    readonly traffic: Traffic,
    /** As it was when it asked. */
    readonly caller: Caller,
    /** Told when an answer is over, whole or cut. */
    private readonly onAnswered: (client: SimClient) => void = () => undefined,
    /** It asks whether all is well again. */
    readonly isProbe = false,
    private readonly edge?: Life,
  ) {}

  get requestId(): string {
    return this.traffic.requestId;
  }

  get accountId(): string {
    return this.caller.account.id;
  }

  /** Its edge died, and what it had not told with it. */
  get isEdgeDead(): boolean {
    return this.edge?.isDead === true && !this.edge.hasToldAll;
  }

  get isOver(): boolean {
    return this.state !== 'waiting' && this.state !== 'streaming';
  }

  attend(listener: ClientListener): void {
    this.listener = listener;
    if (this.isGone()) listener.onGone(!this.isCutOff);
  }

  keepAlive(): void {
    // Says nothing.
  }

  chunk(_route: unknown, choices: Uint8Array): void {
    if (this.isOver) return;
    this.state = 'streaming';
    this.chunks += 1;
    this.read(choices);
  }

  finish(_route: unknown, choices: Uint8Array, settlement: Settlement): void {
    this.read(choices);
    this.end('answered', settlement);
  }

  cut(_route: unknown, failed: Failed__Output, settlement: Settlement | undefined): void {
    if (!this.isOver) this.cutBy = failed.class;
    this.end('cut', settlement);
  }

  body({ choices }: Body__Output, settlement: Settlement): void {
    this.read(choices);
    this.end('answered', settlement);
  }

  refuse(refusal: Refusal, settlement?: Settlement): void {
    if (this.isOver) return;
    this.refusal = refusal;
    if (this.chunks > 0) this.end('cut', settlement);
    else this.state = 'refused';
  }

  decided(): void {
    // Never asked for.
  }

  admitted({ decision }: { readonly decision: string }): void {
    this.admission = decision;
  }

  /** Only an open one is conducted. */
  repeat(entry: string): void {
    this.entry = entry;
    if (entry !== 'open' && !this.isOver) this.state = 'refused';
  }

  abandon(): void {
    if (!this.isOver) this.state = 'reset';
  }

  isGone(): boolean {
    return this.state === 'left';
  }

  /** Hangs up, or is cut off by its edge, which knows the one from the other. */
  leave(): void {
    if (this.isOver) return;
    this.goes(this.traffic.isCutOff);
  }

  /** Its edge has no more time for it. */
  cutOff(): void {
    if (!this.isOver) this.goes(true);
  }

  slow(): void {
    if (!this.isOver) this.listener?.onSlow(() => 0);
  }

  drain(): void {
    if (!this.isOver) this.listener?.onDrain();
  }

  /** Its edge died. */
  reset(): void {
    if (!this.isOver) this.state = 'reset';
  }

  /** Providers write each attempt in a letter of its own. */
  private read(choices: Uint8Array): void {
    if (this.isOver) return;
    for (const letter of Buffer.from(choices).toString('latin1').match(/([A-Z])\1*/g) ?? []) this.given.add(attemptOf(letter));
  }

  private goes(isCutOff: boolean): void {
    this.state = 'left';
    this.isCutOff = isCutOff;
    this.listener?.onGone(!isCutOff);
  }

  private end(state: ClientState, settlement: Settlement | undefined): void {
    if (this.isOver) return;
    this.state = state;
    this.costTold = settlement?.end.costNanoUsd;
    this.endedAtMs = this.edge?.clock.monotonicMs();
    this.stoppedBy = settlement?.end.stoppedBy ?? '';
    this.onAnswered(this);
  }
}
