import { describe, expect, test } from '@jest/globals';
import { EventCounter } from './load.js';
import { parseRss, parseStat, roleOf, withDescendants } from './process-table.js';
import { median, percentile, ratio, slope } from './statistics.js';
import { verdictOf } from './verdicts.js';

describe('percentiles', () => {
  test.each([
    [[], 50, Number.NaN],
    [[7], 99, 7],
    [[3, 1, 2], 50, 2],
    [[1, 2, 3, 4], 50, 2],
    [Array.from({ length: 100 }, (_, index) => 100 - index), 99, 99],
    [[1, 2, 3], 0, 1],
    [[1, 2, 3], 100, 3],
  ])('takes the nearest rank of %j at %d', (samples, p, expected) => {
    expect(percentile(samples, p)).toBe(expected);
  });

  test('takes the mean of both middles as the median of an even count, without the rounds that gave nothing', () => {
    expect(median([4, 1, Number.NaN, 3, 2])).toBe(2.5);
    expect(median([9, 1, 5])).toBe(5);
    expect(median([])).toBeNaN();
  });

  test('gives no ratio without a base', () => {
    expect(ratio(1, 0)).toBeNaN();
    expect(ratio(1, Number.NaN)).toBeNaN();
    expect(ratio(3, 2)).toBe(1.5);
  });
});

describe('slopes', () => {
  test('finds what grows beneath a saw-tooth', () => {
    const sawTooth = Array.from({ length: 100 }, (_, minute) => [minute, 3 * minute + (minute % 7) * 10] as const);
    expect(slope(sawTooth)).toBeCloseTo(3, 0);
  });

  test('is not bent by a single peak, and finds nothing where nothing grows', () => {
    expect(slope([[0, 5], [1, 5], [2, 900], [3, 5], [4, 5]])).toBe(0);
  });

  test('is none below two points', () => {
    expect(slope([[1, 1]])).toBeNaN();
    expect(slope([[1, 1], [1, 2]])).toBeNaN();
  });
});

describe('CPU accounting', () => {
  const stat = (pid: number, name: string, parent: number, times: string): string => `${String(pid)} (${name}) S ${String(parent)} 1 1 0 -1 4194560 1 2 3 4 ${times} 20 0 11 0 100 200 300`;

  test('counts user and system time, with that of ended children', () => {
    expect(parseStat(stat(42, 'node', 7, '150 50 3 2'))).toEqual({ pid: 42, name: 'node', parentPid: 7, cpuUs: 2_050_000 });
  });

  test('reads a name with spaces and brackets', () => {
    expect(parseStat(stat(43, 'postgres: (io) 1', 42, '1 0 0 0'))).toMatchObject({ name: 'postgres: (io) 1', parentPid: 42, cpuUs: 10_000 });
  });

  test('answers nothing for a process that ended', () => {
    expect(parseStat('')).toBeUndefined();
  });

  test('counts every generation below the roots and nothing beside them', () => {
    const table = [[5, 4], [1, 0], [2, 1], [3, 2], [4, 1]].map(([pid = 0, parentPid = 0]) => ({ pid, parentPid, name: '', cpuUs: 0 }));
    expect(withDescendants(table, [2, 4]).map(({ pid }) => pid).sort()).toEqual([2, 3, 4, 5]);
  });

  test('reads resident memory in bytes', () => {
    expect(parseRss('Name:\tnode\nVmRSS:\t    2048 kB\nThreads: 1\n')).toBe(2_097_152);
  });

  test('names a service by its folder and anything else by its program', () => {
    expect(roleOf('node\0/x/services/worker-openai/dist/main.js\0', 'node')).toBe('worker-openai');
    expect(roleOf('postgres: checkpointer ', 'postgres')).toBe('postgres');
  });
});

test('counts events however the reads are cut', () => {
  const bytes = Buffer.from('data: 1\n\ndata: 2\n\ndata: [DONE]\n\n');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const counter = new EventCounter();
    for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)]) if (part.length > 0) counter.push(part);
    expect(counter.count).toBe(3);
  }
});

test('judges a bound as inclusive, and no value as no verdict', () => {
  expect([verdictOf(1, 2, 1), verdictOf(2, 2, 1), verdictOf(2.1, 2, 1), verdictOf(Number.NaN, 2, 1)]).toEqual(['strive', 'must', 'MISSED', '-']);
});
