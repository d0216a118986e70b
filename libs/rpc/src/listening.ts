/** Tells a peer that is silent from one that is slow, and from a process of ours that was not run. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** Of a call, as its caller asked for it. */
export interface Patient {
  /** Longest silence of the peer that it waits through; 0 = it does not look at that. */
  readonly silenceMs: number;
  /** The listening's own: what was listened when it began. */
  listenedBefore: number;
}

export interface ListeningOptions<Call extends Patient> {
  readonly clock: Clock;
  /** Those that wait for the peer now. */
  readonly waiting: () => readonly Call[];
  /** Asks the peer for a sign of life: any word of it will do. */
  readonly ask: () => void;
  /** The peer was silent for as long as `call` looks at that: it waits no longer from here on, or begins anew. */
  readonly lose: (call: Call) => void;
  /** For tests: instead of setImmediate, calls back when the present turn of the event loop is over. */
  readonly afterTurn?: (callback: () => void) => void;
}

/** Silence is looked at so often, and a peer is asked for a sign of life after so much of it. */
const SLICE_MS = 25;
/** As late as a timer is in a process that runs when it has something to do. What is beyond it does not count: whoever kept us from running may have kept the peer. */
const JITTER_MS = 2;
/** Turns of the event loop in which words that lie in the socket are read, before a peer is called silent. */
const TURNS = 2;

/**
 * The silence of one peer, in time in which this process could have heard it: in slices, of which one that ends late counts
 * `JITTER_MS` more than its length. It stands still while nobody waits.
 */
export class Listening<Call extends Patient> {
  /** From the end of a wait in vain until the peer says anything. */
  isSilent = false;
  private listened = 0;
  /** Of `listened`, when the peer said something last. */
  private heardAt = 0;
  private isAsked = false;
  private isEnded = false;
  private timer: Timer | undefined = undefined;
  private sliceStartMs = 0;
  private sliceMs = 0;
  private readonly afterTurn: (callback: () => void) => void;

  constructor(private readonly options: ListeningOptions<Call>) {
    this.afterTurn = options.afterTurn ?? setImmediate;
  }

  /** `patient` is among the waiting from here on; again = as if it had not waited before. */
  begin(patient: Call): void {
    patient.listenedBefore = this.present();
    if (this.timer === undefined) this.arm(Math.min(SLICE_MS, patient.silenceMs));
  }

  heard(): void {
    this.heardAt = this.present();
    this.isAsked = false;
    this.isSilent = false;
  }

  end(): void {
    this.isEnded = true;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private present(): number {
    return this.timer === undefined ? this.listened : this.listened + Math.min(this.options.clock.monotonicMs() - this.sliceStartMs, this.sliceMs + JITTER_MS);
  }

  private arm(sliceMs: number): void {
    this.sliceStartMs = this.options.clock.monotonicMs();
    this.sliceMs = sliceMs;
    this.timer = this.options.clock.setTimer(sliceMs, this.endSlice, { unref: true });
  }

  private readonly endSlice = (): void => {
    this.listened = this.present();
    this.timer = undefined;
    const waiting = this.options.waiting();
    if (waiting.length === 0) return;
    let leftMs = SLICE_MS;
    for (const patient of waiting) {
      const patientMs = this.leftOf(patient);
      if (patientMs > 0 && patientMs < leftMs) leftMs = patientMs;
    }
    this.arm(leftMs);
    this.afterTurns(TURNS, this.look);
  };

  private readonly look = (): void => {
    if (this.isEnded) return;
    for (const patient of this.options.waiting()) {
      if (this.leftOf(patient) > 0) continue;
      this.isSilent = true;
      this.options.lose(patient);
    }
    if (this.isAsked || this.listened - this.heardAt < SLICE_MS || this.options.waiting().length === 0) return;
    this.isAsked = true;
    this.options.ask();
  };

  /** As of the end of the latest slice. */
  private leftOf({ silenceMs, listenedBefore }: Patient): number {
    return silenceMs - (this.listened - Math.max(listenedBefore, this.heardAt));
  }

  private afterTurns(turns: number, then: () => void): void {
    if (turns === 0) then();
    else this.afterTurn(() => this.afterTurns(turns - 1, then));
  }
}
