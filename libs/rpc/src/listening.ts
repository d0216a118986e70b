/** Detects a silent peer, and distinguishes it from one that is merely slow and from a stall of this process itself (ADR 61). */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** A call that waits only so long for a silent peer. */
export interface Patient {
  /** Longest silence of the peer that the call tolerates; 0 = any. */
  readonly silenceMs: number;
  /** For `Listening` only: its count of milliseconds when this call began to wait. */
  listenedBefore: number;
}

export interface ListeningOptions<Call extends Patient> {
  readonly clock: Clock;
  /** The calls that are waiting for the peer now. */
  readonly waiting: () => readonly Call[];
  /** Pings the peer: anything it sends is a sign of life. */
  readonly ask: () => void;
  /** The peer was silent for the call's `silenceMs`. Afterwards the call either no longer waits, or has called `begin` again. */
  readonly lose: (call: Call) => void;
  /** For tests: replaces setImmediate, which calls back after the current turn of the event loop. */
  readonly afterTurn?: (callback: () => void) => void;
}

/** Silence is measured in slices of this length; after one of them the peer is pinged. */
const SLICE_MS = 25;
/** How late a timer may fire in a process that is not stalled. Time beyond it does not count as silence: whatever stalled us may have stalled the peer. */
const JITTER_MS = 2;
/** Turns of the event loop in which the socket is read once more before a peer is declared silent. */
const TURNS = 2;

/**
 * Measures the silence of one peer. Counts only time in which this process could have heard it: a slice that ends late
 * counts as its length plus at most `JITTER_MS`. The count stands still while no call waits.
 */
export class Listening<Call extends Patient> {
  /** True from the time a call gave up waiting until the peer sends anything. */
  isSilent = false;
  private listened = 0;
  /** Value of `listened` when the peer last sent something. */
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

  /** `patient` waits from now on. Calling it again restarts the wait. */
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

  /** Milliseconds of silence that the call still tolerates, as of the end of the latest slice. */
  private leftOf({ silenceMs, listenedBefore }: Patient): number {
    return silenceMs - (this.listened - Math.max(listenedBefore, this.heardAt));
  }

  private afterTurns(turns: number, then: () => void): void {
    if (turns === 0) then();
    else this.afterTurn(() => this.afterTurns(turns - 1, then));
  }
}
