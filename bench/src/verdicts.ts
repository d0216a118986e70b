/** The budgets of the architecture, and how a run's figures stand to them. */
import type { TargetReport } from './measurer.js';
import type { LinkFigures, Spread } from './micro.js';
import type { SoakReport } from './soak.js';
import { ratio } from './statistics.js';

export interface Run {
  readonly targets: readonly TargetReport[];
  /** Milliseconds from start to the first answer of the second start of the all-in-one; NaN when not measured. */
  readonly secondStartMs: number;
  readonly pinnedUs: Spread;
  readonly autoUs: Spread;
  readonly link: LinkFigures | undefined;
}

export type Verdict = 'strive' | 'must' | 'MISSED' | '-';

export interface Row {
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  readonly must: number;
  readonly strive: number;
  readonly verdict: Verdict;
}

/** Where a value stands; `-` without a value. Bounds are inclusive, smaller is better. */
export function verdictOf(value: number, must: number, strive: number): Verdict {
  if (Number.isNaN(value)) return '-';
  if (value <= strive) return 'strive';
  return value <= must ? 'must' : 'MISSED';
}

const MB = 1_000_000;
const STORES = new Set(['postgres', 'redis-server', 'nats-server']);

/** One row for each budget and each way Signalbox ran. */
export function rowsOf(run: Run): Row[] {
  const rows: Row[] = [];
  const add = (figure: string, value: number, unit: string, must: number, strive: number): void => {
    rows.push({ figure, value, unit, must, strive, verdict: verdictOf(value, must, strive) });
  };
  const find = (name: string): TargetReport['figures'] | undefined => run.targets.find((target) => target.name === name)?.figures;
  const direct = find('direct');
  const bare = find('pass-through');
  const portkey = find('portkey');
  for (const name of ['split', 'standalone'] as const) {
    const target = run.targets.find((one) => one.name === name);
    if (target === undefined) continue;
    const { figures } = target;
    add(`${name}: CPU per request / pass-through`, ratio(figures.cpuUsPerRequest, bare?.cpuUsPerRequest ?? Number.NaN), '×', 4.5, 3.3);
    if (portkey !== undefined) add(`${name}: CPU per request / Portkey`, ratio(figures.cpuUsPerRequest, portkey.cpuUsPerRequest), '×', 1 / 3, 1 / 5);
    add(`${name}: added latency p50`, figures.p50Ms - (direct?.p50Ms ?? Number.NaN), 'ms', 1.6, 1);
    add(`${name}: added latency p99`, figures.p99Ms - (direct?.p99Ms ?? Number.NaN), 'ms', 9, 5);
    add(`${name}: CPU per chunk / pass-through`, ratio(figures.cpuUsPerChunk, bare?.cpuUsPerChunk ?? Number.NaN), '×', 1.75, 1.3);
    if (portkey !== undefined) add(`${name}: CPU per chunk / Portkey`, ratio(figures.cpuUsPerChunk, portkey.cpuUsPerChunk), '×', 0.6, 0.4);
    add(`${name}: added time to first token p50`, figures.firstTokenP50Ms - (direct?.firstTokenP50Ms ?? Number.NaN), 'ms', 2, 1);
    add(`${name}: 200 KB prompt, added p50`, figures.bigP50Ms - (direct?.bigP50Ms ?? Number.NaN), 'ms', 5, 3);
    for (const [role, bytes] of Object.entries(target.rssBytes).sort()) {
      if (STORES.has(role)) continue;
      if (name === 'standalone') add('standalone: RSS', bytes / MB, 'MB', 200, 140);
      else if (role === 'edge') add('split: RSS of edge', bytes / MB, 'MB', 130, 100);
      else add(`split: RSS of ${role === 'split' ? 'the launcher' : role}`, bytes / MB, 'MB', 100, 80);
    }
  }
  add('standalone: second start to first answer', run.secondStartMs / 1_000, 's', 1.5, 0.8);
  add('decision for a pinned model, 200 endpoints, p99', run.pinnedUs.p99 / 1_000, 'ms', 2, 1);
  add('decision for auto, 200 endpoints, 8 KB of text, p50', run.autoUs.p50 / 1_000, 'ms', 0.25, 0.25);
  add('decision for auto, 200 endpoints, 8 KB of text, p99', run.autoUs.p99 / 1_000, 'ms', 2, 1);
  return rows;
}

const cell = (value: number, digits = 2): string => (Number.isNaN(value) ? '-' : value.toFixed(digits));

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...body.map((line) => (line[column] ?? '').length)));
  const draw = (line: readonly string[]): string => line.map((text, column) => (column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0))).join('  ').trimEnd();
  return [draw(head), widths.map((width) => '-'.repeat(width)).join('  '), ...body.map(draw)].join('\n');
}

/** Resident memory by process before and after a soak, and what it grows by, against the budget of 1 MB a minute. */
export function soakPrinted(reports: readonly SoakReport[]): string {
  const rows = reports.flatMap(({ name, roles }) =>
    roles.map(({ role, firstBytes, lastBytes, bytesPerMinute }) => [`${name} / ${role}`, cell(firstBytes / MB, 1), cell(lastBytes / MB, 1), cell(bytesPerMinute / MB), STORES.has(role) ? '-' : verdictOf(bytesPerMinute / MB, 1, 0.1)]),
  );
  const load = reports.map(({ name, minutes, requests, failures, firstFailure }) => `${name}: ${String(requests)} requests in ${String(minutes)} min and the warm-up, ${String(failures)} failed${failures === 0 ? '' : ` (${firstFailure})`}`);
  return [table(['process', 'first MB', 'last MB', 'MB/minute', 'verdict'], rows), ...load].join('\n');
}

/** What a person reads: absolute figures, the CPU by process, then the budgets. */
export function printed(run: Run): string {
  const figures = table(
    ['medians', 'CPU µs/request', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/chunk', 'first token p50 ms', '200 KB p50 ms', 'idle % of a core', 'failures'],
    run.targets.map(({ name, figures: f, idleCpuPercent, failures, firstFailure }) => [name, cell(f.cpuUsPerRequest, 0), cell(f.requestsPerSecond, 0), cell(f.p50Ms), cell(f.p99Ms), cell(f.cpuUsPerChunk, 1), cell(f.firstTokenP50Ms), cell(f.bigP50Ms), cell(idleCpuPercent), failures === 0 ? '0' : `${String(failures)} (${firstFailure})`]),
  );
  const processes = table(
    ['process', 'CPU µs/request', 'RSS MB'],
    run.targets.flatMap(({ name, cpuUsByRole, rssBytes }) => Object.keys(rssBytes).sort().map((role) => [`${name} / ${role}`, cell(cpuUsByRole[role] ?? Number.NaN, 1), cell((rssBytes[role] ?? 0) / MB, 0)])),
  );
  const budgets = table(
    ['budget', 'value', 'unit', 'must ≤', 'strive ≤', 'verdict'],
    rowsOf(run).map(({ figure, value, unit, must, strive, verdict }) => [figure, cell(value), unit, cell(must), cell(strive), verdict]),
  );
  const { link } = run;
  const micro = `decision p50: pinned ${cell(run.pinnedUs.p50, 1)} µs, auto ${cell(run.autoUs.p50, 1)} µs` + (link === undefined ? '' : `; Link: ${cell(link.cpuUsPerCall, 1)} µs CPU a call (both ends), alone p50 ${cell(link.alone.p50, 3)} ms, p99 ${cell(link.alone.p99, 3)} ms`);
  return [figures, processes, budgets, micro].join('\n\n');
}
