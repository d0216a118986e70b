/** A sort by speed, and endpoints whose speed nobody knows. */
import { expect, test } from '@jest/globals';
import type { Endpoint, EndpointLive, Snapshot } from './catalog.js';
import { decide } from './decide.js';
import { catalogOf, endpointWith, pricesOf } from './random-catalog.js';
import { TRIAL_SHARE } from './rank.js';
import { NO_NEEDS, NO_WISHES, plainRequest, type ProviderWishes, type RouteRequest } from './request.js';

const SEEDS = 4_000;
const measured = (ms: number, samples: number): EndpointLive => ({ samples, latencyMsP75: ms, totalMsP75: undefined, totalSamples: 0, throughputTpsP50: 100_000 / ms, throughputSamples: samples, successShare: 0.98, breaker: 'closed' });

function snapshotOf(live: Readonly<Record<string, EndpointLive>>, changes: Readonly<Record<string, Partial<Endpoint>>> = {}): Snapshot {
  const endpoints = ['alpha', 'beta', 'gamma'].map((provider) => endpointWith({ id: provider, provider, model: '', prices: pricesOf(provider, 1_000n, 1_000n), ...changes[provider] }));
  return { live: new Map(Object.entries(live)), catalog: catalogOf([{ id: 'maker/one', endpoints }]) };
}

const asking = (wishes: Partial<ProviderWishes>, more: Partial<RouteRequest> = {}): RouteRequest => ({ ...plainRequest('maker/one'), promptTokens: 100, needs: { ...NO_NEEDS, streaming: true }, provider: { ...NO_WISHES, ...wishes }, ...more });

/** How often each order of endpoints is planned. */
function ordersOf(request: RouteRequest, snapshot: Snapshot): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const result = decide(request, snapshot, Math.imul(seed, 0x9e3779b1) >>> 0);
    const order = result.kind === 'plan' ? result.attempts.map(({ endpoint }) => endpoint.id).join(' ') : result.kind;
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  return counts;
}

test.each(['latency', 'throughput'] as const)('with a sort by %s, one that nobody has measured is tried first in a small share of requests, before the fastest', (sort) => {
  const orders = ordersOf(asking({ sort }), snapshotOf({ alpha: measured(900, 50), beta: measured(300, 50) }));
  expect([...orders.keys()].sort()).toEqual(['beta alpha gamma', 'gamma beta alpha']);
  expect(Math.abs((orders.get('gamma beta alpha') ?? 0) / SEEDS - TRIAL_SHARE)).toBeLessThan(0.015);
});

test('once it has a few samples, it stands where they place it, and is not tried before the fastest any more', () => {
  const live = { alpha: measured(900, 50), beta: measured(300, 50) };
  expect([...ordersOf(asking({ sort: 'latency' }), snapshotOf({ ...live, gamma: measured(500, 1) })).keys()]).toEqual(['beta gamma alpha']);
  expect([...ordersOf(asking({ sort: 'latency' }), snapshotOf({ ...live, gamma: measured(100, 1) })).keys()]).toEqual(['gamma beta alpha']);
  // A wish still takes no notice of so few.
  expect([...ordersOf(asking({ sort: 'latency' }, { preferredMaxLatency: 400 }), snapshotOf({ beta: measured(300, 50), gamma: measured(500, 19) })).keys()].every((order) => order.startsWith('beta gamma') || order.startsWith('alpha'))).toBe(true);
});

test.each<[string, RouteRequest, Readonly<Record<string, Partial<Endpoint>>>]>([
  ['another sort', asking({ sort: 'price' }), { gamma: { prices: pricesOf('gamma', 9_000n, 9_000n) } }],
  ['the order that the client gave', asking({ sort: 'latency', order: ['beta', 'alpha'] }), {}],
  ['an own credential', asking({ sort: 'latency' }, { byokProviders: ['alpha', 'beta'] }), {}],
  ['a filter', asking({ sort: 'latency' }, { zdr: true }), { gamma: { zdr: false } }],
  ['a wish that it is known to miss', asking({ sort: 'latency' }, { preferredMinThroughput: 50 }), { gamma: { priorThroughputTpsP50: 10 } }],
])('%s goes before a trial', (_what, request, changes) => {
  const orders = ordersOf(request, snapshotOf({ alpha: measured(900, 50), beta: measured(300, 50) }, changes));
  expect([...orders.keys()].filter((order) => order.startsWith('gamma'))).toEqual([]);
});

test('a trial never takes the only place of a model: the endpoint that is known is behind it', () => {
  const live = { alpha: measured(900, 50), beta: measured(300, 50), two: measured(300, 50), three: measured(300, 50) };
  const { catalog } = snapshotOf({});
  const models = catalogOf([
    { id: 'maker/one', endpoints: catalog.models[0]?.endpoints ?? [] },
    ...['two', 'three'].map((name) => ({ id: `maker/${name}`, endpoints: [endpointWith({ id: `${name}-new`, provider: 'alpha', model: '', prices: pricesOf(name, 1_000n, 1_000n) }), endpointWith({ id: name, provider: 'beta', model: '', prices: pricesOf(name, 1_000n, 1_000n) })] })),
  ]);
  const snapshot = { catalog: models, live: new Map(Object.entries(live)) };
  const ordersFor = (request: RouteRequest): readonly string[] => [...ordersOf(request, snapshot).keys()].sort();
  expect(ordersFor(asking({ sort: 'latency', allowFallbacks: false }))).toEqual(['beta']);
  expect(ordersFor(asking({ sort: 'latency' }, { models: ['maker/two', 'maker/three'] }))).toEqual(['beta two three']);
  expect(ordersFor(asking({ sort: 'latency' }, { models: ['maker/two'] }))).toEqual(['beta alpha two', 'gamma beta two']);
});

test('a conversation tries it in each of its turns or in none', () => {
  const live = { alpha: measured(900, 50), beta: measured(300, 50) };
  for (let session = 0; session < 50; session += 1) {
    const request = asking({ sort: 'latency' }, { session: `s${String(session)}` });
    const firsts = new Set([1, 2, 3, 4, 5].map((seed) => {
      const result = decide(request, snapshotOf(live), seed);
      return result.kind === 'plan' ? result.attempts[0]?.endpoint.id : undefined;
    }));
    expect(firsts.size).toBe(1);
  }
});
