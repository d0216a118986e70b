/** What is measured of one target, turn by turn, and what its turns come to. */
import { systemClock } from '@signalbox/runtime/clock';
import { LoadGenerator, type LoadResult, type Shot } from './load.js';
import { cpuUsOf, readProcesses } from './process-table.js';
import { median, percentile, ratio } from './statistics.js';
import type { Target } from './targets.js';

/** The kinds of load, in the order in which they are measured. */
export const PARTS = ['plain', 'open', 'streams', 'firstToken', 'big'] as const;
export type Part = (typeof PARTS)[number];

/** Of one part; candidates take turns. */
export interface PartPlan {
  readonly turns: number;
  /** At the beginning of each turn, unmeasured: what rested is cold, on some machines after a few seconds already, and another kind of load has V8 compile anew. */
  readonly settleMs: number;
  readonly turnMs: number;
}

export interface Plan {
  /** The longest that a candidate's warm-up may take; a fast one ends it sooner by `WARM_REQUESTS`. */
  readonly warmUpMs: number;
  readonly parts: Readonly<Record<Part, PartPlan>>;
  /** Once, after all parts, of all candidates at the same time. */
  readonly idleMs: number;
}

export const FULL: Plan = {
  warmUpMs: 30_000,
  parts: {
    plain: { turns: 4, settleMs: 4_000, turnMs: 3_000 },
    open: { turns: 3, settleMs: 2_000, turnMs: 4_000 },
    streams: { turns: 3, settleMs: 2_000, turnMs: 3_000 },
    firstToken: { turns: 3, settleMs: 1_500, turnMs: 3_000 },
    big: { turns: 3, settleMs: 1_500, turnMs: 3_000 },
  },
  idleMs: 10_000,
};

export const QUICK: Plan = {
  warmUpMs: 12_000,
  parts: {
    plain: { turns: 1, settleMs: 2_000, turnMs: 1_800 },
    open: { turns: 1, settleMs: 500, turnMs: 2_500 },
    streams: { turns: 1, settleMs: 800, turnMs: 1_800 },
    firstToken: { turns: 1, settleMs: 400, turnMs: 1_200 },
    big: { turns: 1, settleMs: 400, turnMs: 1_000 },
  },
  idleMs: 4_000,
};

/** V8 still compiles a whole gateway's path after ten thousand requests: cold figures are many times the warm ones. */
const WARM_REQUESTS = 40_000;
const WARM_SLICE_MS = 1_000;
const CLOSED_CONCURRENCY = 32;
const OPEN_PER_SECOND = 200;
const STREAMS = 8;
const STREAM_CHUNKS = 150;
const FIRST_TOKEN_PER_SECOND = 40;
const FIRST_TOKEN_CHUNKS = 5;
const BIG_PER_SECOND = 15;
const PROMPT_BYTES = 850;
const BIG_PROMPT_BYTES = 200_000;
/** After the last answer of a turn whose CPU counts: what a gateway books behind its answers is part of their price. */
const BOOKING_MS = 500;

/** Of one turn; NaN where it had no good answer. */
export interface Turn {
  readonly cpuUsPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly firstByteP50Ms: number;
}

/** Medians of the turns. */
export interface Figures {
  readonly cpuUsPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerChunk: number;
  readonly firstTokenP50Ms: number;
  readonly bigP50Ms: number;
}

export interface TargetReport {
  readonly name: string;
  readonly figures: Figures;
  readonly turns: Readonly<Record<Part, readonly Turn[]>>;
  /** Largest resident memory seen after a turn, by role, in bytes. */
  readonly rssBytes: Readonly<Record<string, number>>;
  /** CPU of the plain turns by role, µs per request. */
  readonly cpuUsByRole: Readonly<Record<string, number>>;
  /** Percent of a core that it takes while nobody asks anything; NaN when not measured. */
  readonly idleCpuPercent: number;
  readonly failures: number;
  readonly firstFailure: string;
}

function shot(target: Target, bytes: number, chunks: number | undefined): Shot {
  const text = 'Tell me how the signal box at the junction worked. '.repeat(Math.ceil(bytes / 51)).slice(0, bytes);
  const body = { model: target.model, messages: [{ role: 'system', content: 'You are terse.' }, { role: 'user', content: text }], temperature: 0.5, max_tokens: chunks ?? 200, ...(chunks === undefined ? {} : { stream: true }) };
  return { path: '/v1/chat/completions', headers: target.headers, body: Buffer.from(JSON.stringify(body)) };
}

/** Measures one target over and over, keeping what it saw. */
export class Measurer {
  readonly target: Target;
  readonly #load: LoadGenerator;
  readonly #plan: Plan;
  readonly #turns: Readonly<Record<Part, Turn[]>> = { plain: [], open: [], streams: [], firstToken: [], big: [] };
  readonly #rss = new Map<string, number>();
  readonly #roleCpu = new Map<string, number>();
  #plainRequests = 0;
  #idleCpuPercent = Number.NaN;
  #failures = 0;
  #firstFailure = '';

  constructor(target: Target, plan: Plan) {
    this.target = target;
    this.#plan = plan;
    this.#load = new LoadGenerator(target.origin, systemClock);
  }

  async warmUp(): Promise<void> {
    const until = systemClock.monotonicMs() + this.#plan.warmUpMs;
    for (let sent = 0; sent < WARM_REQUESTS && systemClock.monotonicMs() < until; ) {
      const result = await this.#send('plain', WARM_SLICE_MS);
      sent += result.totalMs.length + result.failures;
    }
    // V8 gives functions up that it optimised for one kind of request when another comes, and optimises them anew for both when the first comes back.
    const sliceMs = this.#plan.warmUpMs / 10;
    for (let pass = 0; pass < 2; pass += 1) {
      await this.#send('streams', sliceMs);
      await this.#send('firstToken', sliceMs / 3);
      await this.#send('big', sliceMs / 3);
      await this.#send('plain', sliceMs);
    }
  }

  /** One turn of a part: some of its load unmeasured, then its load, and the CPU of all processes until what it left behind is booked. */
  async turn(part: Part): Promise<void> {
    const { pids } = this.target;
    const { settleMs, turnMs } = this.#plan.parts[part];
    await this.#send(part, settleMs);
    const before = readProcesses(pids);
    const result = await this.#send(part, turnMs);
    if (part === 'plain' || part === 'streams') await new Promise<void>((resolve) => systemClock.setTimer(BOOKING_MS, resolve));
    const after = readProcesses(pids);
    const cpuUs = sumOf(after) - sumOf(before);
    if (part === 'plain') {
      for (const { role, cpuUs: spent } of after) this.#roleCpu.set(role, (this.#roleCpu.get(role) ?? 0) + spent);
      for (const { role, cpuUs: spent } of before) this.#roleCpu.set(role, (this.#roleCpu.get(role) ?? 0) - spent);
      this.#plainRequests += result.totalMs.length;
    }
    this.#turns[part].push({
      cpuUsPerRequest: ratio(cpuUs, result.totalMs.length),
      requestsPerSecond: ratio(result.totalMs.length, result.elapsedMs / 1_000),
      p50Ms: percentile(result.totalMs, 50),
      p99Ms: percentile(result.totalMs, 99),
      firstByteP50Ms: percentile(result.firstByteMs, 50),
    });
  }

  /** While nobody asks anything; to be called for all candidates at once, since each would be the load of the others. */
  async idle(): Promise<void> {
    const before = cpuUsOf(this.target.pids);
    const started = systemClock.monotonicMs();
    await new Promise<void>((resolve) => systemClock.setTimer(this.#plan.idleMs, resolve));
    this.#idleCpuPercent = ratio(cpuUsOf(this.target.pids) - before, (systemClock.monotonicMs() - started) * 10);
  }

  report(): TargetReport {
    const of = (part: Part, pick: (turn: Turn) => number): number => median(this.#turns[part].map(pick));
    const figures: Figures = {
      cpuUsPerRequest: of('plain', (turn) => turn.cpuUsPerRequest),
      requestsPerSecond: of('plain', (turn) => turn.requestsPerSecond),
      p50Ms: of('open', (turn) => turn.p50Ms),
      p99Ms: of('open', (turn) => turn.p99Ms),
      // Chunks as the provider wrote them, so that a gateway which merges or adds events is charged alike.
      cpuUsPerChunk: of('streams', (turn) => turn.cpuUsPerRequest) / STREAM_CHUNKS,
      firstTokenP50Ms: of('firstToken', (turn) => turn.firstByteP50Ms),
      bigP50Ms: of('big', (turn) => turn.p50Ms),
    };
    const cpuUsByRole = Object.fromEntries([...this.#roleCpu].map(([role, cpu]) => [role, ratio(cpu, this.#plainRequests)]));
    return { name: this.target.name, figures, turns: this.#turns, rssBytes: Object.fromEntries(this.#rss), cpuUsByRole, idleCpuPercent: this.#idleCpuPercent, failures: this.#failures, firstFailure: this.#firstFailure };
  }

  async close(): Promise<void> {
    await this.#load.close();
  }

  async #send(part: Part, durationMs: number): Promise<LoadResult> {
    const { target } = this;
    const loads: Readonly<Record<Part, () => Promise<LoadResult>>> = {
      plain: () => this.#load.closed(shot(target, PROMPT_BYTES, undefined), CLOSED_CONCURRENCY, durationMs),
      open: () => this.#load.open(shot(target, PROMPT_BYTES, undefined), OPEN_PER_SECOND, durationMs),
      streams: () => this.#load.closed(shot(target, PROMPT_BYTES, STREAM_CHUNKS), STREAMS, durationMs),
      firstToken: () => this.#load.open(shot(target, PROMPT_BYTES, FIRST_TOKEN_CHUNKS), FIRST_TOKEN_PER_SECOND, durationMs),
      big: () => this.#load.open(shot(target, BIG_PROMPT_BYTES, undefined), BIG_PER_SECOND, durationMs),
    };
    const result = await loads[part]();
    this.#note(result);
    return result;
  }

  #note({ failures, firstFailure }: LoadResult): void {
    if (this.#failures === 0) this.#firstFailure = firstFailure;
    this.#failures += failures;
    const now = new Map<string, number>();
    for (const { role, rssBytes } of readProcesses(this.target.pids)) now.set(role, Math.max(now.get(role) ?? 0, rssBytes));
    for (const [role, bytes] of now) this.#rss.set(role, Math.max(this.#rss.get(role) ?? 0, bytes));
  }
}

const sumOf = (processes: readonly { readonly cpuUs: number }[]): number => processes.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
