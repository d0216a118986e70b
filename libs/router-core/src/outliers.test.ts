import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createEjections, failureShareBounds, findOutliers, type EndpointEvidence } from './outliers.js';

const NOTHING = { samples: 0, value: undefined };

function seen(endpointId: string, changes: Partial<EndpointEvidence> = {}): EndpointEvidence {
  return { endpointId, calls: 0, failures: 0, firstTokenMsP75: NOTHING, totalMsP75: NOTHING, throughputTpsP50: NOTHING, ...changes };
}
const failing = (endpointId: string, failures: number, calls: number): EndpointEvidence => seen(endpointId, { failures, calls });
const streaming = (endpointId: string, ms: number, samples = 20): EndpointEvidence => seen(endpointId, { calls: samples, firstTokenMsP75: { samples, value: ms } });
const whole = (endpointId: string, ms: number, tps: number): EndpointEvidence => seen(endpointId, { calls: 20, totalMsP75: { samples: 20, value: ms }, throughputTpsP50: { samples: 20, value: tps } });

describe('outliers', () => {
  test.each<[string, readonly EndpointEvidence[], readonly string[]]>([
    ['one that fails half of its calls', [failing('a', 0, 100), failing('b', 10, 20)], ['b failures']],
    ['nobody, of so few calls', [failing('a', 0, 100), failing('b', 19, 19)], []],
    ['nobody, where no peer is known', [failing('a', 1, 19), failing('b', 20, 20)], []],
    ['nobody, where all fail alike', [failing('a', 50, 100), failing('b', 50, 100), failing('c', 55, 100)], []],
    ['nobody, where most fail', [failing('a', 0, 100), failing('b', 60, 100), failing('c', 60, 100), failing('d', 60, 100)], []],
    ['nobody a little above the others', [failing('a', 2, 100), failing('b', 10, 100)], []],
    ['two of three, the worse first', [failing('a', 0, 100), failing('b', 40, 100), failing('c', 60, 100)], ['c failures', 'b failures']],
    ['one that is slow to begin', [streaming('a', 400), streaming('b', 500), streaming('c', 1_500)], ['c latency']],
    ['nobody within three times', [streaming('a', 1_000), streaming('b', 2_999)], []],
    ['nobody within a second', [streaming('a', 100), streaming('b', 1_099)], []],
    ['nobody, of so few samples', [streaming('a', 400), streaming('b', 9_000, 19)], []],
    ['one whose whole answers are slow', [whole('a', 4_000, 90), whole('b', 12_000, 30)], ['b latency']],
    ['nobody whose answers are long', [whole('a', 4_000, 90), whole('b', 40_000, 31)], []],
    ['failing ones before slow ones', [streaming('a', 400), streaming('b', 40_000), failing('c', 50, 100), failing('d', 0, 100)], ['c failures', 'b latency']],
    ['nobody alone', [failing('a', 100, 100)], []],
    ['nobody of nobody', [], []],
  ])('are %s', (_name, evidence, expected) => {
    expect(findOutliers(evidence).map(({ endpointId, reason }) => `${endpointId} ${reason}`)).toEqual(expected);
  });

  test.each([[0, 20, 0, 0.161], [10, 20, 0.299, 0.701], [20, 20, 0.839, 1], [200, 1_000, 0.176, 0.226]])('of %d failures in %d calls the share lies between %d and %d', (failures, calls, low, high) => {
    const bounds = failureShareBounds(failures, calls);
    expect(bounds[0]).toBeCloseTo(low, 3);
    expect(bounds[1]).toBeCloseTo(high, 3);
  });
});

const quantile = fc.record({ samples: fc.constantFrom(0, 19, 20, 400), value: fc.option(fc.double({ min: 1, max: 60_000, noNaN: true }), { nil: undefined }) });
const evidenceOf = (endpointId: string) =>
  fc.record({ calls: fc.nat(200), share: fc.double({ min: 0, max: 1, noNaN: true }), firstTokenMsP75: quantile, totalMsP75: quantile, throughputTpsP50: quantile })
    .map(({ share, ...rest }): EndpointEvidence => ({ endpointId, ...rest, failures: Math.round(share * rest.calls) }));
const ids = fc.integer({ min: 1, max: 7 }).map((count) => Array.from({ length: count }, (_, index) => `e${String(index)}`));
const rounds = ids.chain((endpointIds) => fc.tuple(fc.constant(endpointIds), fc.array(fc.tuple(fc.tuple(...endpointIds.map(evidenceOf)), fc.nat(90_000)), { minLength: 1, maxLength: 20 })));

describe('ejections', () => {
  const bad = [failing('a', 0, 100), failing('b', 0, 100), failing('c', 50, 100)];
  const well = [failing('a', 0, 100), failing('b', 0, 100), failing('c', 0, 20)];
  const nothing = [failing('a', 0, 100), failing('b', 0, 100), failing('c', 0, 0)];
  const all = ['a', 'b', 'c'];

  test('last 30 s times the number of times in a row, five minutes at most, and end by themselves', () => {
    const ejections = createEjections();
    let nowMs = 0;
    for (const times of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]) {
      ejections.judge(all, bad, nowMs);
      // An ejection is not prolonged while it lasts, and not forgotten while there are no new calls.
      ejections.judge(all, bad, nowMs + 1_000);
      expect(ejections.endOf('c')).toBe(nowMs + 30_000 * times);
      expect(ejections.reasonOf('c', nowMs + 30_000 * times - 1)).toBe('failures');
      nowMs += 30_000 * times;
      expect(ejections.reasonOf('c', nowMs)).toBeUndefined();
      ejections.judge(all, nothing, nowMs);
    }
  });

  test('begin at 30 s again once the endpoint has done well, and what was before its return stays out of sight', () => {
    const ejections = createEjections();
    ejections.judge(all, bad, 0);
    ejections.judge(all, well, 40_000);
    expect(ejections.endOf('c')).toBe(30_000);
    ejections.judge(all, bad, 50_000);
    expect(ejections.endOf('c')).toBe(80_000);
  });

  test('a slow endpoint has not done well before its time is known', () => {
    const ejections = createEjections();
    const slow = [streaming('a', 400), streaming('b', 400), streaming('c', 9_000)];
    ejections.judge(all, slow, 0);
    ejections.judge(all, well, 40_000);
    ejections.judge(all, slow, 50_000);
    expect(ejections.endOf('c')).toBe(110_000);
  });

  test.each([[1, 0], [2, 1], [3, 1], [4, 2], [5, 2]])('of %d endpoints %d may be left out', (count, most) => {
    const endpointIds = Array.from({ length: count }, (_, index) => `e${String(index)}`);
    const ejections = createEjections();
    for (let round = 0; round < 3; round += 1) ejections.judge(endpointIds, endpointIds.map((id, index) => failing(id, index < Math.floor(count / 2) ? 0 : 80, 100)), round);
    expect(endpointIds.filter((id) => ejections.reasonOf(id, 5) !== undefined).length).toBe(most);
  });

  test('never leave out more than half, whatever is told, and none that was not told of', () => {
    fc.assert(fc.property(rounds, ([endpointIds, steps]) => {
      const ejections = createEjections();
      let nowMs = 0;
      for (const [evidence, afterMs] of steps) {
        ejections.judge(endpointIds, evidence, nowMs);
        const out = endpointIds.filter((id) => ejections.reasonOf(id, nowMs) !== undefined);
        expect(out.length).toBeLessThanOrEqual(Math.floor(endpointIds.length / 2));
        for (const id of out) expect(ejections.endOf(id) ?? Infinity).toBeLessThanOrEqual(nowMs + 300_000);
        expect(ejections.reasonOf('another', nowMs)).toBeUndefined();
        nowMs += afterMs;
      }
    }), { numRuns: 300 });
  });

  test('do not depend on the order in which endpoints are told', () => {
    fc.assert(fc.property(ids.chain((endpointIds) => fc.tuple(...endpointIds.map(evidenceOf))), (evidence) => {
      expect(findOutliers([...evidence].reverse())).toEqual(findOutliers(evidence));
    }), { numRuns: 300 });
  });
});
