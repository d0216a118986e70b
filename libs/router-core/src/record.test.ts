import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Snapshot } from './catalog.js';
import { decide, type Plan } from './decide.js';
import { catalogOf, constantQuality, endpointWith, pricesOf, requests, snapshots } from './random-catalog.js';
import { describe as describeDecision, expectedOf, recordOf, replay, type DecisionRecord } from './record.js';
import { NO_NEEDS, NO_WISHES, plainRequest, type RouteRequest } from './request.js';

const stored = (record: DecisionRecord): DecisionRecord => JSON.parse(JSON.stringify(record)) as DecisionRecord;

const market: Snapshot = {
  live: new Map(),
  quality: constantQuality([0.9, 0.886, 0.5]),
  catalog: catalogOf([
    { id: 'maker/large', ability: 0.9, endpoints: [endpointWith({ id: 'large', provider: 'alpha', model: '', prices: pricesOf('large', 3_100_000_000n, 3_100_000_000n) })] },
    { id: 'maker/middle', ability: 0.5, endpoints: [endpointWith({ id: 'middle', provider: 'beta', model: '', prices: pricesOf('middle', 1_000_000_000n, 1_000_000_000n) })] },
    { id: 'maker/small', ability: 0.1, endpoints: [endpointWith({ id: 'small', provider: 'gamma', model: '', prices: pricesOf('small', 1n, 1n), capabilities: { ...endpointWith({ id: '', provider: '', model: '' }).capabilities, tools: false } })] },
  ]),
};
const auto = (changes: Partial<RouteRequest> = {}): RouteRequest => ({ ...plainRequest('auto'), promptTokens: 1_000, promptText: 'a secret prompt', ...changes });
function recorded(request: RouteRequest, snapshot = market): DecisionRecord {
  const record = recordOf(request, snapshot, 7, decide(request, snapshot, 7));
  if (record === undefined) throw new Error('Nothing was recorded.');
  return record;
}

describe('a decision record', () => {
  test('replays to the same plan, bit for bit, without prompt or artefact', () => {
    fc.assert(fc.property(snapshots, requests, fc.integer({ min: 0, max: 2 ** 31 }), fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }), { nil: undefined }), fc.option(fc.nat(40), { nil: undefined }), (snapshot, base, seed, room, heldIndex) => {
      const endpoint = heldIndex === undefined ? undefined : snapshot.catalog.endpoints[heldIndex % snapshot.catalog.endpoints.length];
      const request = { ...base, zdr: false, denyDataCollection: false, explorationRoomNanoUsd: room, held: endpoint === undefined ? undefined : { endpointId: endpoint.id, cachedTokens: 500 } };
      const decided = decide(request, snapshot, seed);
      const record = recordOf(request, snapshot, seed, decided);
      if (record === undefined) throw new Error('Nothing was recorded.');
      const again = replay(stored(record), snapshot.catalog);
      const { auto: first, ...plan } = decided as Plan;
      const { auto: second, ...replayed } = again as Plan;
      expect(replayed).toEqual(plan);
      expect(second?.ordered).toEqual(first?.ordered);
    }), { numRuns: 500 });
  });

  test('replays with the own addresses that it tells of, and one of before they were recorded with none', () => {
    const asked = { ...plainRequest('maker/middle'), zdr: true, byokProviders: ['beta'], byokOwnAddressProviders: ['beta'] };
    const record = stored(describeDecision(asked, market, 7, decide(asked, market, 7)));
    expect(replay(record, market.catalog)).toEqual({ kind: 'no-eligible-provider', excludedBy: ['zdr'] });
    const { byokOwnAddressProviders: _, ...older } = record.request;
    expect(replay({ ...record, request: older as DecisionRecord['request'] }, market.catalog)).toMatchObject({ kind: 'plan', attempts: [{ byok: true }] });
  });

  test('of a prompt that only the estimate makes too long rejects nothing that it plans, and replays as it was', () => {
    const asked = { ...plainRequest('maker/middle'), promptTokens: 200_000, promptTokensMin: 50_000 };
    const decided = decide(asked, market, 7);
    const record = stored(describeDecision(asked, market, 7, decided));
    expect([record.attempts, record.rejected]).toEqual([['middle'], {}]);
    expect(replay(record, market.catalog)).toEqual(decided);
    const { promptTokensMin: _, ...older } = record.request;
    expect(replay({ ...record, request: older as DecisionRecord['request'] }, market.catalog)).toMatchObject({ kind: 'context-length-exceeded' });
  });

  test('says what was rejected, weighed and chosen, and why', () => {
    const record = recorded(auto({ needs: { ...NO_NEEDS, tools: true } }));
    expect(record).toMatchObject({ snapshotId: 'cat_test', artefactId: 'qua_test', rejected: { tools: 1 }, reason: 'best', attempts: ['middle', 'large'], reference: 'maker/large' });
    expect(record.floor).toBeCloseTo(0.87);
    expect(record.considered.map(({ model, propensity }) => [model, propensity])).toEqual([['maker/middle', 1], ['maker/large', 0]]);
    expect(record.sentence).toBe('maker/large is 3.1× dearer for +1.4 points of predicted quality, so maker/middle was taken.');
  });

  test('counts outliers that were left out, and replays as it was', () => {
    const live = { samples: 20, latencyMsP75: 9_000, totalMsP75: undefined, totalSamples: 0, throughputTpsP50: undefined, throughputSamples: 0, successShare: 0.98, breaker: 'closed', ejectedFor: 'latency' } as const;
    const record = stored(recorded(auto(), { ...market, live: new Map([['middle', live]]) }));
    expect(record).toMatchObject({ rejected: { outlier: 1 }, attempts: ['large', 'small'] });
    expect((replay(record, market.catalog) as Plan).attempts.map(({ endpoint }) => endpoint.id)).toEqual(record.attempts);
    // An ejected endpoint that is used as the last resort does not count as excluded.
    const pinned = { ...plainRequest('maker/middle'), promptTokens: 1_000 };
    expect(recorded(pinned, { ...market, live: new Map([['middle', live]]) }).rejected).toEqual({});
  });

  test('holds no text of the prompt', () => {
    expect(JSON.stringify(recorded(auto()))).not.toContain('secret');
  });

  test('is not kept of requests whose data must not be', () => {
    for (const changes of [{ zdr: true }, { denyDataCollection: true }]) {
      const request = auto(changes);
      expect(recordOf(request, market, 1, decide(request, market, 1))).toBeUndefined();
    }
  });

  test('explains a refusal, a pinned model and a conversation that stays', () => {
    expect(recorded({ ...plainRequest('maker/small'), needs: { ...NO_NEEDS, tools: true } })).toMatchObject({ attempts: [], rejected: { tools: 1 }, sentence: 'Refused: no eligible provider.' });
    expect(recorded(plainRequest('maker/large'))).toMatchObject({ floor: null, reason: null, considered: [], sentence: 'maker/large was asked for and is served by alpha.' });
    const down = { samples: 20, latencyMsP75: 900, totalMsP75: undefined, totalSamples: 0, throughputTpsP50: undefined, throughputSamples: 0, successShare: 0.5, breaker: 'open' } as const;
    expect(recorded({ ...plainRequest('maker/large'), models: ['maker/small'] }, { ...market, live: new Map([['large', down]]) })).toMatchObject({ attempts: ['small'], sentence: 'maker/large was asked for and cannot serve this request now; maker/small, a fallback that the request lists, is served by gamma.' });
    const staying = recorded(auto({ held: { endpointId: 'middle', cachedTokens: 0 } }));
    expect([staying.reason, staying.considered[0]?.propensity]).toEqual(['stayed', 1]);
    expect(recorded(auto({ provider: { ...NO_WISHES, maxPricePrompt: 2_000_000_000n } }))).toMatchObject({ rejected: { max_price: 1 } });
  });
});

test('where `auto` is a fallback of a named model, the record tells of the named one, and no comparison takes what `auto` chose for what served', () => {
  const behind = stored(recorded({ ...auto(), model: 'maker/large', models: ['auto'] }));
  expect(behind).toMatchObject({ attempts: ['large', 'middle', 'small'], floor: null, reason: null, sentence: 'maker/large was asked for and is served by alpha.' });
  expect(expectedOf(replay(behind, market.catalog))).toEqual({ model: undefined, quality: undefined, cost: undefined, savings: undefined });
  // Where the named model cannot serve, `auto` does.
  const instead = recorded({ ...auto(), model: 'maker/small', models: ['auto'], needs: { ...NO_NEEDS, tools: true } });
  expect(instead.sentence).toBe('maker/large is 3.1× dearer for +1.4 points of predicted quality, so maker/middle was taken.');
  expect(expectedOf(replay(stored(instead), market.catalog)).model).toBe('maker/middle');
});

describe('what if', () => {
  test('tells cost, quality and savings of another policy from the record alone', () => {
    const record = stored(recorded(auto()));
    const [now, other] = [expectedOf(replay(record, market.catalog)), expectedOf(replay(record, market.catalog, { mode: 'quality' }))];
    expect([now.model, now.quality, other.model, other.quality, other.savings]).toEqual(['maker/middle', 0.886, 'maker/large', 0.9, 0]);
    expect((other.cost ?? 0) - (now.cost ?? 0)).toBeCloseTo(now.savings ?? NaN);
  });

  test('works with another price list', () => {
    const record = stored(recorded(auto()));
    const cheaper = catalogOf(market.catalog.models.map((model) => (model.id === 'maker/large' ? { ...model, endpoints: model.endpoints.map((endpoint) => ({ ...endpoint, prices: pricesOf('large', 1n, 1n) })) } : model)));
    expect(expectedOf(replay(record, cheaper)).model).toBe('maker/large');
  });
});
