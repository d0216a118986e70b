/** Memory over time: a modest mix of all that clients do, and how the resident memory of each process grows. */
import { systemClock } from '@signalbox/runtime/clock';
import { LoadGenerator, type LoadResult, type Shot } from './load.js';
import { readProcesses } from './process-table.js';
import { slope } from './statistics.js';
import type { Target } from './targets.js';

export interface SoakRole {
  readonly role: string;
  /** Resident bytes at the first and the last sample. */
  readonly firstBytes: number;
  readonly lastBytes: number;
  readonly bytesPerMinute: number;
}

export interface SoakReport {
  readonly name: string;
  readonly minutes: number;
  readonly requests: number;
  readonly failures: number;
  readonly firstFailure: string;
  readonly roles: readonly SoakRole[];
}

const MINUTE_MS = 60_000;
const SAMPLE_MS = 2_000;
/** Heaps reach the size they are allowed before anything is counted. */
const WARM_MS = 60_000;
const WARM_FACTOR = 5;

interface Part {
  readonly shot: Shot;
  readonly perSecond: number;
}

function mixOf({ headers, model }: Target): readonly Part[] {
  const shot = (body: object, more: Partial<Shot> = {}): Shot => ({ path: '/v1/chat/completions', headers, body: Buffer.from(JSON.stringify(body)), ...more });
  const messages = (bytes: number): object[] => [{ role: 'user', content: 'How does the signal box at the junction work? '.repeat(Math.ceil(bytes / 46)) }];
  return [
    { perSecond: 40, shot: shot({ model, messages: messages(800), max_tokens: 200 }) },
    { perSecond: 10, shot: shot({ model: 'auto', messages: messages(800), max_tokens: 200 }) },
    { perSecond: 4, shot: shot({ model, messages: messages(800), max_tokens: 60, stream: true }) },
    { perSecond: 2, shot: shot({ model, messages: messages(800), max_tokens: 400, stream: true }, { hangUpAfterEvents: 20 }) },
    { perSecond: 1, shot: shot({ model, messages: messages(200_000), max_tokens: 200 }) },
    { perSecond: 2, shot: shot({ model: 'nobody/knows-it', messages: messages(800) }, { status: 404 }) },
    { perSecond: 2, shot: shot({ model, messages: 'none' }, { status: 400 }) },
  ];
}

/** Runs the mix for `minutes` after a minute of five times as much, to warm up. */
export async function soak(target: Target, minutes: number): Promise<SoakReport> {
  const load = new LoadGenerator(target.origin, systemClock);
  const mix = mixOf(target);
  const samples = new Map<string, [minutes: number, bytes: number][]>();
  const sample = (atMs: number): void => {
    const sums = new Map<string, number>();
    for (const { role, rssBytes } of readProcesses(target.pids)) sums.set(role, (sums.get(role) ?? 0) + rssBytes);
    for (const [role, bytes] of sums) samples.set(role, [...(samples.get(role) ?? []), [atMs / MINUTE_MS, bytes]]);
  };
  const results: LoadResult[] = [];
  try {
    results.push(...(await Promise.all(mix.map(({ shot, perSecond }) => load.open(shot, perSecond * WARM_FACTOR, WARM_MS)))));
    const started = systemClock.monotonicMs();
    const ended = Promise.all(mix.map(({ shot, perSecond }) => load.open(shot, perSecond, minutes * MINUTE_MS)));
    sample(0);
    while (systemClock.monotonicMs() - started < minutes * MINUTE_MS) {
      await new Promise<void>((resolve) => systemClock.setTimer(SAMPLE_MS, resolve));
      sample(systemClock.monotonicMs() - started);
    }
    results.push(...(await ended));
  } finally {
    await load.close();
  }
  const failed = results.find(({ failures }) => failures > 0);
  return {
    name: target.name,
    minutes,
    requests: results.reduce((sum, { totalMs, failures }) => sum + totalMs.length + failures, 0),
    failures: results.reduce((sum, { failures }) => sum + failures, 0),
    firstFailure: failed?.firstFailure ?? '',
    roles: [...samples].sort(([a], [b]) => a.localeCompare(b)).map(([role, points]) => ({ role, firstBytes: points[0]?.[1] ?? 0, lastBytes: points.at(-1)?.[1] ?? 0, bytesPerMinute: slope(points) })),
  };
}
