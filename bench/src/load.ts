/** The load generator: closed loop (as fast as answers come) and open loop (at a rate, whatever comes). */
import type { Clock } from '@signalbox/kernel/clock';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';

export interface Shot {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Hangs up once so many events came, and counts that as good; undefined = reads to the end. */
  readonly hangUpAfterEvents?: number;
  /** What a good answer has; 200 unless told. */
  readonly status?: number;
}

export interface LoadResult {
  /** Milliseconds from sending to the last byte, one for each good answer. */
  readonly totalMs: readonly number[];
  /** Milliseconds from sending to the first byte of the body, one for each good answer. */
  readonly firstByteMs: readonly number[];
  /** Answers that had another status than wanted, or broke. */
  readonly failures: number;
  /** Of the first failure: a status or a code. */
  readonly firstFailure: string;
  /** Server-sent events of good answers, `[DONE]` included. */
  readonly events: number;
  readonly elapsedMs: number;
}

const CONNECTIONS_MAX = 128;
const NEWLINE = 10;

/** Counts the ends of events (empty lines) over reads that may cut anywhere. */
export class EventCounter {
  #wasNewline = false;
  count = 0;

  push(bytes: Uint8Array): void {
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
      const follows = at === 0 ? this.#wasNewline : bytes[at - 1] === NEWLINE;
      if (follows) this.count += 1;
    }
    this.#wasNewline = bytes[bytes.length - 1] === NEWLINE;
  }
}

/** Sends to one origin; `close` frees its connections. */
export class LoadGenerator {
  readonly #pool: Pool;
  readonly #clock: Clock;

  constructor(origin: string, clock: Clock) {
    this.#pool = new Pool(origin, { connections: CONNECTIONS_MAX, headersTimeout: 30_000, bodyTimeout: 30_000 });
    this.#clock = clock;
  }

  /** `concurrency` (≤ 128) requests at any moment for `durationMs`, then the answers still due. */
  async closed(shot: Shot, concurrency: number, durationMs: number): Promise<LoadResult> {
    const tally = new Tally(this.#clock);
    const until = this.#clock.monotonicMs() + durationMs;
    const one = async (): Promise<void> => {
      while (this.#clock.monotonicMs() < until && tally.failures < 1_000) await this.#send(shot, tally);
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, CONNECTIONS_MAX) }, one));
    return tally.result();
  }

  /** `perSecond` requests for `durationMs`, sent without regard to answers; then waits for those still due. */
  async open(shot: Shot, perSecond: number, durationMs: number): Promise<LoadResult> {
    const tally = new Tally(this.#clock);
    const count = Math.floor((perSecond * durationMs) / 1_000);
    const started = this.#clock.monotonicMs();
    const due: Promise<void>[] = [];
    await new Promise<void>((resolve) => {
      const tick = (): void => {
        const elapsed = this.#clock.monotonicMs() - started;
        while (due.length < count && (due.length * 1_000) / perSecond <= elapsed) due.push(this.#send(shot, tally));
        if (due.length >= count || tally.failures >= 1_000) resolve();
        else this.#clock.setTimer(1, tick);
      };
      tick();
    });
    await Promise.all(due);
    return tally.result();
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #send(shot: Shot, tally: Tally): Promise<void> {
    return new Promise((resolve) => {
      const sent = this.#clock.monotonicMs();
      let status = 0;
      let first = 0;
      const events = new EventCounter();
      const isEnough = (): boolean => shot.hangUpAfterEvents !== undefined && events.count >= shot.hangUpAfterEvents;
      const end = (cause: string): void => {
        const now = this.#clock.monotonicMs();
        if (isEnough() || cause === String(shot.status ?? 200)) tally.good(now - sent, (first || now) - sent, events.count);
        else tally.bad(cause);
        resolve();
      };
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, code) => {
          status = code;
        },
        onResponseData: (controller, bytes) => {
          if (first === 0) first = this.#clock.monotonicMs();
          events.push(bytes);
          if (isEnough()) controller.abort(new Error('Enough.'));
        },
        onResponseEnd: () => {
          end(String(status));
        },
        onResponseError: (_controller, error) => {
          end('code' in error ? String(error.code) : error.name);
        },
      };
      this.#pool.dispatch({ path: shot.path, method: 'POST', headers: shot.headers, body: shot.body }, handler);
    });
  }
}

class Tally {
  readonly #totalMs: number[] = [];
  readonly #firstByteMs: number[] = [];
  readonly #clock: Clock;
  readonly #started: number;
  #events = 0;
  #firstFailure = '';
  failures = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#started = clock.monotonicMs();
  }

  good(totalMs: number, firstByteMs: number, events: number): void {
    this.#totalMs.push(totalMs);
    this.#firstByteMs.push(firstByteMs);
    this.#events += events;
  }

  bad(cause: string): void {
    if (this.failures === 0) this.#firstFailure = cause;
    this.failures += 1;
  }

  result(): LoadResult {
    return { totalMs: this.#totalMs, firstByteMs: this.#firstByteMs, failures: this.failures, firstFailure: this.#firstFailure, events: this.#events, elapsedMs: this.#clock.monotonicMs() - this.#started };
  }
}
