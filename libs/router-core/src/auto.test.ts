import { describe, expect, test } from '@jest/globals';
import { namedCard, type Endpoint, type Snapshot } from './catalog.js';
import { decide } from './decide.js';
import { EXPLORATION_SHARE, explorationRoom, propensities } from './exploration.js';
import type { ModelGroup } from './model-group.js';
import { catalogOf, constantQuality, endpointWith, pricesOf } from './random-catalog.js';
import { NO_WISHES, plainRequest, type RouteRequest } from './request.js';

/** Prices in nano-USD per 1M tokens; cached prompt tokens at a tenth. */
function prices(id: string, input: bigint, output: bigint): Endpoint['prices'] {
  return pricesOf(id, input, output).map((step) => ({ ...step, card: namedCard(id, { ...step.card, cacheRead: (step.card.inputUncached / 10n) as typeof step.card.cacheRead }) }));
}

const market = (quality: readonly number[]): Snapshot => ({
  live: new Map(),
  quality: constantQuality(quality),
  catalog: catalogOf([
    { id: 'maker/large', ability: 0.9, endpoints: [endpointWith({ id: 'large', provider: 'alpha', model: '', prices: prices('large', 3_000_000_000n, 9_000_000_000n) })] },
    { id: 'maker/middle', ability: 0.5, endpoints: [endpointWith({ id: 'middle', provider: 'beta', model: '', prices: prices('middle', 1_000_000_000n, 3_000_000_000n) })] },
    { id: 'maker/small', ability: 0.1, endpoints: [endpointWith({ id: 'small', provider: 'gamma', model: '', prices: prices('small', 100_000_000n, 300_000_000n) })] },
  ]),
});
const auto = (changes: Partial<RouteRequest> = {}): RouteRequest => ({ ...plainRequest('auto'), promptTokens: 10_000, promptText: 'a prompt', ...changes });
const first = (snapshot: Snapshot, request: RouteRequest, seed = 1): string => {
  const result = decide(request, snapshot, seed);
  return result.kind === 'plan' ? (result.attempts[0]?.endpoint.id ?? '') : result.kind;
};

describe('auto with predicted quality', () => {
  test('takes the cheapest model within the margin of the best, whatever the models’ abilities', () => {
    expect(first(market([0.9, 0.89, 0.88]), auto())).toBe('small');
    expect(first(market([0.9, 0.89, 0.6]), auto())).toBe('middle');
    expect(first(market([0.9, 0.8, 0.6]), auto())).toBe('large');
    expect(first(market([0.9, 0.82, 0.6]), auto({ mode: 'economy' }))).toBe('middle');
    expect(first(market([0.9, 0.88, 0.6]), auto({ mode: 'quality' }))).toBe('large');
  });

  test('weighs quality against cost where the account says how', () => {
    const snapshot = market([0.9, 0.8, 0.6]);
    expect(first(snapshot, auto({ costWeight: 0 }))).toBe('large');
    expect(first(snapshot, auto({ costWeight: 5 }))).toBe('middle');
    expect(first(snapshot, auto({ costWeight: 1_000 }))).toBe('small');
  });

  test('decides by ability where there is no text to look at', () => {
    expect(first(market([0.1, 0.1, 0.9]), auto({ promptText: '' }))).toBe('large');
  });

  test('prices a model at the endpoint that the client’s `sort` tries first, not at its cheapest', () => {
    const snapshot: Snapshot = {
      live: new Map(), quality: constantQuality([0.9, 0.9]),
      catalog: catalogOf([
        { id: 'maker/two-hosts', endpoints: [
          endpointWith({ id: 'slow', provider: 'alpha', model: '', prices: prices('slow', 100_000_000n, 300_000_000n), priorThroughputTpsP50: 20, priorLatencyMsP75: 900 }),
          endpointWith({ id: 'fast', provider: 'beta', model: '', prices: prices('fast', 5_000_000_000n, 15_000_000_000n), priorThroughputTpsP50: 400, priorLatencyMsP75: 100 }),
        ] },
        { id: 'maker/one-host', endpoints: [endpointWith({ id: 'fair', provider: 'gamma', model: '', prices: prices('fair', 1_000_000_000n, 3_000_000_000n), priorThroughputTpsP50: 300, priorLatencyMsP75: 200 })] },
      ]),
    };
    const sorted = (sort: RouteRequest['provider']['sort']): string => first(snapshot, auto({ needs: { ...plainRequest('auto').needs, streaming: true }, provider: { ...NO_WISHES, sort } }));
    expect(sorted('price')).toBe('slow');
    expect(sorted('throughput')).toBe('fair');
    expect(sorted('latency')).toBe('fair');
  });

  test('falls back to other models, best first', () => {
    const result = decide(auto(), market([0.9, 0.8, 0.85]), 1);
    expect(result.kind === 'plan' ? result.attempts.map((attempt) => attempt.endpoint.id) : []).toEqual(['large', 'small', 'middle']);
  });
});

describe('moving a conversation', () => {
  const held = (endpointId: string, cachedTokens: number): Partial<RouteRequest> => ({ held: { endpointId, cachedTokens } });

  test('is not worth it while the prompt cache saves more', () => {
    const snapshot = market([0.9, 0.89, 0.6]);
    // Uncached, the middle model costs a third of the large one; with the prompt cached, staying costs less than that.
    expect(first(snapshot, auto(held('large', 0)))).toBe('middle');
    expect(first(snapshot, auto(held('large', 1_000)))).toBe('middle');
    expect(first(snapshot, auto(held('large', 10_000)))).toBe('large');
  });

  test('is worth it when the model at home is no longer good enough', () => {
    expect(first(market([0.9, 0.8, 0.855]), auto(held('small', 10_000)))).toBe('small');
    expect(first(market([0.9, 0.8, 0.845]), auto(held('small', 10_000)))).toBe('large');
  });

  test('is weighed by λ where the account says so', () => {
    const snapshot = market([0.9, 0.89, 0.6]);
    expect(first(snapshot, auto({ ...held('large', 10_000), costWeight: 1 }))).toBe('large');
    expect(first(snapshot, auto({ ...held('large', 10_000), costWeight: 1_000 }))).toBe('small');
  });

  test('to a slower endpoint than another, or to one that is gone, is never forced by the past', () => {
    const snapshot = market([0.9, 0.89, 0.6]);
    const [endpoint] = snapshot.catalog.models[0]?.endpoints ?? [];
    const slow: Snapshot = { ...snapshot, catalog: catalogOf(snapshot.catalog.models.map((model, i) => (i === 0 && endpoint !== undefined ? { ...model, endpoints: [{ ...endpoint, priorThroughputTpsP50: 5 }] } : model))) };
    expect(first(slow, auto({ ...held('large', 100_000), promptTokens: 100_000, preferredMinThroughput: 50 }))).toBe('middle');
    expect(first(snapshot, auto(held('gone', 10_000)))).toBe('middle');
  });
});

describe('on an account’s own credentials', () => {
  const two = endpointWith({ id: 'large-dear', provider: 'delta', model: '', prices: prices('large-dear', 6_000_000_000n, 18_000_000_000n) });
  const withSecond = (quality: readonly number[]): Snapshot => {
    const { catalog, ...rest } = market(quality);
    return { ...rest, catalog: catalogOf(catalog.models.map((model, i) => (i === 0 ? { ...model, endpoints: [...model.endpoints, two] } : model))) };
  };

  test('a conversation that is at home on the operator’s moves to the account’s own of the same model, cache or not', () => {
    const snapshot = withSecond([0.9, 0.6, 0.6]);
    const home = auto({ held: { endpointId: 'large', cachedTokens: 10_000 } });
    expect(first(snapshot, home)).toBe('large');
    expect(first(snapshot, { ...home, byokProviders: ['delta'] })).toBe('large-dear');
    expect(first(snapshot, { ...home, byokProviders: ['delta'], costWeight: 1 })).toBe('large-dear');
    expect(first(snapshot, { ...home, byokProviders: ['alpha', 'delta'] })).toBe('large');
    // An own credential for another model is no reason to leave, and the client's order counts more than whose credential it is.
    expect(first(snapshot, { ...home, byokProviders: ['beta'] })).toBe('large');
    expect(first(snapshot, { ...home, byokProviders: ['delta'], provider: { ...home.provider, order: ['alpha'] } })).toBe('large');
  });

  test('a model costs what its own endpoint does, which is asked, not what the operator’s beside it would', () => {
    const snapshot = withSecond([0.9, 0.89, 0.6]);
    const middle = snapshot.catalog.models[1]?.endpoints[0];
    const dearer: Snapshot = { ...snapshot, catalog: catalogOf(snapshot.catalog.models.map((model, i) => (i === 1 && middle !== undefined ? { ...model, endpoints: [{ ...middle, prices: prices('middle', 4_000_000_000n, 12_000_000_000n) }] } : model))) };
    expect(first(dearer, auto())).toBe('large');
    expect(first(dearer, auto({ byokProviders: ['delta'] }))).toBe('middle');
    const result = decide(auto({ byokProviders: ['delta'] }), dearer, 1);
    expect(result.kind === 'plan' && result.auto?.groups.map(({ best, cost }) => [best.endpoint.id, cost === best.effectiveCost])).toEqual([['middle', true], ['large-dear', true], ['small', true]]);
  });
});

describe('exploration', () => {
  const snapshot = market([0.9, 0.89, 0.6]);
  const choices = (request: RouteRequest, seeds: number): Map<string, number> => {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const id = first(snapshot, request, seed * 7_919);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  };

  test('touches at most two requests in a hundred, and only models above the floor', () => {
    const counts = choices(auto({ explorationRoomNanoUsd: 1e12 }), 10_000);
    const explored = counts.get('large') ?? 0;
    expect(explored).toBeGreaterThan(20);
    expect(explored).toBeLessThanOrEqual(10_000 * EXPLORATION_SHARE * 1.2);
    expect(counts.get('small')).toBeUndefined();
  });

  test.each<[string, Partial<RouteRequest>]>([
    ['without room', { explorationRoomNanoUsd: 0 }],
    ['where it is not allowed', {}],
    ['for zero retention', { explorationRoomNanoUsd: 1e12, zdr: true }],
    ['where data must not be collected', { explorationRoomNanoUsd: 1e12, denyDataCollection: true }],
  ])('does not happen %s', (_when, changes) => {
    expect([...choices(auto(changes), 3_000).keys()]).toEqual(['middle']);
  });

  test('may cost an account one hundredth of what it spends', () => {
    expect(explorationRoom(1_000_000, 4_000)).toBe(6_000);
    expect(explorationRoom(1_000_000, 40_000)).toBe(0);
  });

  test('logs how probable each choice was', () => {
    const result = decide(auto(), snapshot, 1);
    const groups: readonly ModelGroup[] = result.kind === 'plan' ? (result.auto?.groups.slice(0, 2) ?? []) : [];
    const shares = propensities(groups, { zdr: false, denyDataCollection: false, explorationRoomNanoUsd: 1e12 });
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
    expect(shares[0]).toBeGreaterThanOrEqual(1 - EXPLORATION_SHARE);
    expect(shares[1]).toBeGreaterThan(0);
    expect(propensities(groups, { zdr: true, denyDataCollection: false, explorationRoomNanoUsd: 1e12 })).toEqual([1, 0]);
  });
});
