/** One round of measurements of one target, and what a target's rounds come to. */
import { systemClock } from '@signalbox/runtime/clock';
import { LoadGenerator, type LoadResult, type Shot } from './load.js';
import { cpuUsOf, readProcesses } from './process-table.js';
import { median, percentile, ratio } from './statistics.js';
import type { Target } from './targets.js';

/** Seconds of each part of a round, and how many rounds. */
export interface Plan {
  readonly rounds: number;
  /** The longest that a candidate's warm-up may take; a fast one ends it sooner by `WARM_REQUESTS`. */
  readonly warmUpMs: number;
  readonly closedMs: number;
  readonly openMs: number;
  readonly streamMs: number;
  readonly firstTokenMs: number;
  readonly bigMs: number;
  /** Once, after all rounds, of all candidates at the same time. */
  readonly idleMs: number;
}

export const FULL: Plan = { rounds: 3, warmUpMs: 30_000, closedMs: 4_000, openMs: 5_000, streamMs: 3_500, firstTokenMs: 3_000, bigMs: 2_500, idleMs: 10_000 };
export const QUICK: Plan = { rounds: 1, warmUpMs: 12_000, closedMs: 1_800, openMs: 2_500, streamMs: 1_800, firstTokenMs: 1_200, bigMs: 1_000, idleMs: 4_000 };

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

/** Figures of one round; NaN where a part had no good answer. */
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
  readonly rounds: readonly Figures[];
  /** Largest resident memory seen after a part, by role, in bytes. */
  readonly rssBytes: Readonly<Record<string, number>>;
  /** CPU of the plain closed-loop parts by role, µs per request. */
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
  readonly #rounds: Figures[] = [];
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
      const result = await this.#load.closed(shot(this.target, PROMPT_BYTES, undefined), CLOSED_CONCURRENCY, WARM_SLICE_MS);
      this.#note(result);
      sent += result.totalMs.length + result.failures;
    }
    // V8 gives functions up that it optimised for one kind of request when another comes, and optimises them anew for both when the first comes back.
    const sliceMs = this.#plan.warmUpMs / 10;
    for (let pass = 0; pass < 2; pass += 1) {
      const streams = await this.#load.closed(shot(this.target, PROMPT_BYTES, STREAM_CHUNKS), STREAMS, sliceMs);
      const first = await this.#load.open(shot(this.target, PROMPT_BYTES, FIRST_TOKEN_CHUNKS), FIRST_TOKEN_PER_SECOND, sliceMs / 3);
      const big = await this.#load.open(shot(this.target, BIG_PROMPT_BYTES, undefined), BIG_PER_SECOND, sliceMs / 3);
      const plain = await this.#load.closed(shot(this.target, PROMPT_BYTES, undefined), CLOSED_CONCURRENCY, sliceMs);
      for (const result of [streams, first, big, plain]) this.#note(result);
    }
  }

  async round(): Promise<void> {
    const { target } = this;
    const plan = this.#plan;
    const before = this.#cpuByRole();
    const [plain, plainCpu] = await this.#withCpu(() => this.#load.closed(shot(target, PROMPT_BYTES, undefined), CLOSED_CONCURRENCY, plan.closedMs));
    for (const [role, cpu] of this.#cpuByRole()) this.#roleCpu.set(role, (this.#roleCpu.get(role) ?? 0) + cpu - (before.get(role) ?? 0));
    this.#plainRequests += plain.totalMs.length;
    const open = await this.#load.open(shot(target, PROMPT_BYTES, undefined), OPEN_PER_SECOND, plan.openMs);
    const [streams, streamCpu] = await this.#withCpu(() => this.#load.closed(shot(target, PROMPT_BYTES, STREAM_CHUNKS), STREAMS, plan.streamMs));
    const first = await this.#load.open(shot(target, PROMPT_BYTES, FIRST_TOKEN_CHUNKS), FIRST_TOKEN_PER_SECOND, plan.firstTokenMs);
    const big = await this.#load.open(shot(target, BIG_PROMPT_BYTES, undefined), BIG_PER_SECOND, plan.bigMs);
    for (const result of [plain, open, streams, first, big]) this.#note(result);
    this.#rounds.push({
      cpuUsPerRequest: ratio(plainCpu, plain.totalMs.length),
      requestsPerSecond: ratio(plain.totalMs.length, plain.elapsedMs / 1_000),
      p50Ms: percentile(open.totalMs, 50),
      p99Ms: percentile(open.totalMs, 99),
      // Chunks as the provider wrote them, so that a gateway which merges or adds events is charged alike.
      cpuUsPerChunk: ratio(streamCpu, streams.totalMs.length * STREAM_CHUNKS),
      firstTokenP50Ms: percentile(first.firstByteMs, 50),
      bigP50Ms: percentile(big.totalMs, 50),
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
    const of = (pick: (figures: Figures) => number): number => median(this.#rounds.map(pick));
    const figures: Figures = {
      cpuUsPerRequest: of((round) => round.cpuUsPerRequest),
      requestsPerSecond: of((round) => round.requestsPerSecond),
      p50Ms: of((round) => round.p50Ms),
      p99Ms: of((round) => round.p99Ms),
      cpuUsPerChunk: of((round) => round.cpuUsPerChunk),
      firstTokenP50Ms: of((round) => round.firstTokenP50Ms),
      bigP50Ms: of((round) => round.bigP50Ms),
    };
    const cpuUsByRole = Object.fromEntries([...this.#roleCpu].map(([role, cpu]) => [role, ratio(cpu, this.#plainRequests)]));
    return { name: this.target.name, figures, rounds: this.#rounds, rssBytes: Object.fromEntries(this.#rss), cpuUsByRole, idleCpuPercent: this.#idleCpuPercent, failures: this.#failures, firstFailure: this.#firstFailure };
  }

  async close(): Promise<void> {
    await this.#load.close();
  }

  #cpuByRole(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { role, cpuUs } of readProcesses(this.target.pids)) sums.set(role, (sums.get(role) ?? 0) + cpuUs);
    return sums;
  }

  async #withCpu(run: () => Promise<LoadResult>): Promise<[LoadResult, number]> {
    const before = cpuUsOf(this.target.pids);
    const result = await run();
    return [result, cpuUsOf(this.target.pids) - before];
  }

  #note({ failures, firstFailure }: LoadResult): void {
    if (this.#failures === 0) this.#firstFailure = firstFailure;
    this.#failures += failures;
    const now = new Map<string, number>();
    for (const { role, rssBytes } of readProcesses(this.target.pids)) now.set(role, Math.max(now.get(role) ?? 0, rssBytes));
    for (const [role, bytes] of now) this.#rss.set(role, Math.max(this.#rss.get(role) ?? 0, bytes));
  }
}
