/** The client of one request: records every byte that it receives, and when it left. */
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
  /** Attempts whose text it received. */
  readonly given = new Set<number>();
  /** Cost as reported in the header, the body or the last chunk. */
  costTold: string | undefined;
  /** When it received the end of its answer, in virtual milliseconds. */
  endedAtMs: number | undefined;
  /** The limit that stopped its answer, as reported to it. */
  stoppedBy = '';
  /** Class of the failure that cut its stream. */
  cutBy = '';
  refusal: Refusal | undefined;
  admission: string | undefined;
  /** State of its Idempotency-Key at the claim; undefined = it has no key. */
  entry: string | undefined;
  private listener: ClientListener | undefined;
  isCutOff = false;

  constructor(
    readonly traffic: Traffic,
    /** The account at the time of the request. */
    readonly caller: Caller,
    /** Called when an answer is over, complete or cut. */
    private readonly onAnswered: (client: SimClient) => void = () => undefined,
    /** A request that checks that everything works again. */
    readonly isProbe = false,
    private readonly edge?: Life,
  ) {}

  get requestId(): string {
    return this.traffic.requestId;
  }

  get accountId(): string {
    return this.caller.account.id;
  }

  /** Its edge died, and outcomes that edge had not reported are lost. */
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
    // Not needed.
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
    // Never called.
  }

  admitted({ decision }: { readonly decision: string }): void {
    this.admission = decision;
  }

  /** Only an `open` entry leads to a request. */
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

  /** Hangs up, or is cut off by its edge; edge distinguishes the two. */
  leave(): void {
    if (this.isOver) return;
    this.goes(this.traffic.isCutOff);
  }

  /** Its edge cuts it off at the end of a drain. */
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

  /** Each attempt is written in its own letter. */
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
