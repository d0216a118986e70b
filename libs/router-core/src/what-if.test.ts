import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { constantQuality, catalogOf, endpointWith, pricesOf } from './random-catalog.js';
import type { Catalog, Snapshot } from './catalog.js';
import { decide } from './decide.js';
import { recordOf, type DecisionRecord } from './record.js';
import { plainRequest } from './request.js';
import { whatIf } from './what-if.js';

const nano = (usd: number): bigint => BigInt(usd) * 1_000_000_000n;
const model = (name: string, ability: number, usd: number, provider: string) => ({ id: `maker/${name}`, ability, endpoints: [endpointWith({ id: name, provider, model: '', prices: pricesOf(name, nano(usd), nano(usd)) })] });
const market: Snapshot = { live: new Map(), quality: constantQuality([0.9, 0.88, 0.82]), catalog: catalogOf([model('large', 0.9, 30, 'alpha'), model('middle', 0.6, 10, 'beta'), model('small', 0.3, 1, 'gamma')]) };

function records(count: number, over: Partial<ReturnType<typeof plainRequest>> = {}): DecisionRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const request = { ...plainRequest('auto'), promptTokens: 100 + index, promptText: 'a prompt', ...over };
    const record = recordOf(request, market, index, decide(request, market, index));
    if (record === undefined) throw new Error('Nothing was recorded.');
    return JSON.parse(JSON.stringify(record)) as DecisionRecord;
  });
}
const then = (): Catalog => market.catalog;

describe('what if, over many decisions', () => {
  test('without a change both sides are the same', () => {
    const { recorded, changed, ...counts } = whatIf(records(3_000), then, market.catalog, {});
    expect(counts).toEqual({ compared: 3_000, moved: 0, refused: 0, skipped: 0 });
    expect(changed).toEqual(recorded);
    expect(recorded.models).toEqual(new Map([['maker/middle', 3_000]]));
  });

  test('economy costs less and is predicted worse, quality the other way; each within its margin', () => {
    const all = records(500);
    const economy = whatIf(all, then, market.catalog, { mode: 'economy' });
    const quality = whatIf(all, then, market.catalog, { mode: 'quality' });
    expect([...economy.changed.models.keys(), ...quality.changed.models.keys()]).toEqual(['maker/small', 'maker/large']);
    expect(economy.changed.cost).toBeLessThan(economy.recorded.cost);
    expect(quality.changed.cost).toBeGreaterThan(quality.recorded.cost);
    expect(economy.recorded.quality - economy.changed.quality).toBeLessThanOrEqual(0.1 * 500);
    expect(economy.moved).toBe(500);
  });

  test('a larger weight of cost never raises the expected cost', () => {
    const all = records(50);
    fc.assert(fc.property(fc.double({ min: 0, max: 1e5, noNaN: true }), fc.double({ min: 0, max: 1e5, noNaN: true }), (weight, more) => {
      const [less, larger] = [whatIf(all, then, market.catalog, { costWeight: weight }), whatIf(all, then, market.catalog, { costWeight: weight + more })];
      expect(larger.changed.cost).toBeLessThanOrEqual(less.changed.cost * (1 + 1e-9));
    }));
  });

  test('another price list moves requests, and the recorded side keeps the prices of then', () => {
    const cheaper = catalogOf([model('large', 0.9, 1, 'alpha'), model('middle', 0.6, 10, 'beta'), model('small', 0.3, 1, 'gamma')]);
    const { moved, recorded, changed } = whatIf(records(100), then, cheaper, {});
    expect(moved).toBe(100);
    expect([...changed.models.keys()]).toEqual(['maker/large']);
    expect(recorded.cost).toBeCloseTo(changed.cost * 10, 0);
  });

  test('tells what a policy would refuse and what cannot be compared', () => {
    expect(whatIf(records(4), then, market.catalog, { allowModels: ['maker/none'] })).toMatchObject({ compared: 0, refused: 4, skipped: 0 });
    expect(whatIf(records(4, { model: 'maker/large' }), then, market.catalog, { mode: 'economy' })).toMatchObject({ compared: 0, refused: 0, skipped: 4 });
  });
});
