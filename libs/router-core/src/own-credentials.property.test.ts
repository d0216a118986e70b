import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Endpoint, Snapshot } from './catalog.js';
import { decide, type Plan } from './decide.js';
import { isOnOwnCredential } from './filters.js';
import { PROVIDERS, pricesOf, requests, snapshots } from './random-catalog.js';
import type { RouteRequest } from './request.js';

const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const some = fc.subarray([...PROVIDERS]);
/** Requests of an account with one or more own credentials, some with an agreement, some at its own address. */
const owned: fc.Arbitrary<RouteRequest> = fc.tuple(requests, fc.subarray([...PROVIDERS], { minLength: 1, maxLength: 3 }), some, some, fc.constantFrom([], [], ['beta'], ['gamma', 'alpha'])).map(([request, byokProviders, agreed, elsewhere, order]) => {
  const among = (providers: readonly string[]): readonly string[] => byokProviders.filter((provider) => providers.includes(provider));
  return { ...request, byokProviders, byokZdrProviders: among(agreed), byokOwnAddressProviders: among(elsewhere), provider: { ...request.provider, order } };
});
/** Snapshots with hosts that retain nothing, by default or by agreement, and some that accept no own credentials. */
const markets: fc.Arbitrary<Snapshot> = snapshots.map((snapshot) => {
  const varied = (endpoint: Endpoint): Endpoint => ({ ...endpoint, zdrByDefault: endpoint.zdr && endpoint.index % 2 === 0, takesByok: endpoint.provider !== 'delta' });
  const models = snapshot.catalog.models.map((model) => ({ ...model, endpoints: model.endpoints.map(varied) }));
  return { ...snapshot, catalog: { ...snapshot.catalog, models, endpoints: models.flatMap(({ endpoints }) => endpoints) } };
});
const isOwn = (endpoint: Endpoint, { byokProviders }: RouteRequest): boolean => isOnOwnCredential(endpoint, byokProviders);
const planOf = (request: RouteRequest, snapshot: Snapshot, seed: number): Plan | undefined => {
  const result = decide(request, snapshot, seed);
  return result.kind === 'plan' ? result : undefined;
};

test('who pays is the same for all attempts of a plan', () => {
  fc.assert(fc.property(markets, owned, seeds, (snapshot, request, seed) => {
    const attempts = planOf(request, snapshot, seed)?.attempts ?? [];
    expect(new Set(attempts.map(({ byok }) => byok)).size).toBeLessThanOrEqual(1);
    for (const { endpoint, byok } of attempts) expect(byok).toBe(isOwn(endpoint, request));
  }), { numRuns: 1_500 });
});

test('an account pays for no endpoint of a model while its own credential may serve that model, but where its client orders so', () => {
  let compared = 0;
  fc.assert(fc.property(markets, owned, seeds, fc.constantFrom(undefined, 1e12), fc.nat(), (snapshot, request, seed, explorationRoomNanoUsd, pick) => {
    const home = snapshot.catalog.endpoints[pick % (2 * snapshot.catalog.endpoints.length)];
    const held = home === undefined ? undefined : { endpointId: home.id, cachedTokens: request.promptTokens };
    const asked = { ...request, held, explorationRoomNanoUsd, provider: { ...request.provider, order: [] } };
    const [first] = planOf(asked, snapshot, seed)?.attempts ?? [];
    if (first === undefined || first.byok) return;
    // Keep only the endpoints of that model with an own credential: none of them may serve.
    const others = snapshot.catalog.models.map((model) => ({ ...model, endpoints: model.id === first.endpoint.model ? model.endpoints.filter((endpoint) => isOwn(endpoint, asked)) : [] }));
    const result = decide({ ...asked, held: undefined }, { ...snapshot, catalog: { ...snapshot.catalog, models: others } }, seed);
    expect(result.kind).not.toBe('plan');
    compared += 1;
  }), { numRuns: 3_000 });
  expect(compared).toBeGreaterThan(100);
});

test('what an account says of its own credential, and of an address of its own, is all that is known there of privacy', () => {
  fc.assert(fc.property(markets, owned, seeds, (snapshot, request, seed) => {
    for (const { endpoint, byok } of planOf(request, snapshot, seed)?.attempts ?? []) {
      const isAgreed = request.byokZdrProviders.includes(endpoint.provider);
      const isElsewhere = byok && request.byokOwnAddressProviders.includes(endpoint.provider);
      if (request.zdr) expect(byok ? isAgreed || (endpoint.zdrByDefault && !isElsewhere) : endpoint.zdr).toBe(true);
      if (request.denyDataCollection) expect(isElsewhere ? isAgreed : endpoint.trainsOnData === false).toBe(true);
    }
  }), { numRuns: 1_500 });
});

test('the operator’s endpoint of a provider is never asked while the account has a credential there', () => {
  fc.assert(fc.property(markets, owned, seeds, (snapshot, request, seed) => {
    for (const { endpoint, byok } of planOf(request, snapshot, seed)?.attempts ?? []) expect(!byok && endpoint.takesByok && request.byokProviders.includes(endpoint.provider)).toBe(false);
  }), { numRuns: 1_000 });
});

test('a dearer endpoint never rises, whoever pays', () => {
  fc.assert(fc.property(markets, owned, seeds, fc.nat(), fc.bigInt({ min: 1n, max: 50_000_000_000n }), (snapshot, request, seed, pick, more) => {
    const chosen = snapshot.catalog.endpoints[pick % snapshot.catalog.endpoints.length];
    const card = chosen?.prices[0]?.card;
    if (chosen === undefined || card === undefined) return;
    const dearer = { ...chosen, prices: pricesOf(chosen.id, card.inputUncached + more, card.outputText + more) };
    const swap = (endpoint: Endpoint): Endpoint => (endpoint.id === chosen.id ? dearer : endpoint);
    const changed: Snapshot = { ...snapshot, catalog: { ...snapshot.catalog, endpoints: snapshot.catalog.endpoints.map(swap), models: snapshot.catalog.models.map((model) => ({ ...model, endpoints: model.endpoints.map(swap) })) } };
    const rank = (of: Snapshot): number => {
      const index = planOf(request, of, seed)?.attempts.findIndex(({ endpoint }) => endpoint.id === chosen.id) ?? -1;
      return index < 0 ? Infinity : index;
    };
    expect(rank(changed)).toBeGreaterThanOrEqual(rank(snapshot));
  }), { numRuns: 1_500 });
});

test('a plan that says how far it reaches holds there for own credentials as well', () => {
  let reaching = 0;
  fc.assert(fc.property(markets, owned, seeds, seeds, fc.integer({ min: 0, max: 250_000 }), (snapshot, base, seed, other, length) => {
    const request = base.model === 'auto' ? { ...base, model: 'maker/m0', models: [] } : base;
    const result = planOf(request, snapshot, seed);
    if (result?.reach === undefined) return;
    const { fromPromptTokens, toPromptTokens } = result.reach;
    const promptTokens = fromPromptTokens + (length % (Math.min(toPromptTokens, 1_000_000) - fromPromptTokens + 1));
    expect(decide({ ...request, promptTokens, session: 'another' }, snapshot, other)).toEqual(result);
    reaching += 1;
  }), { numRuns: 2_000 });
  expect(reaching).toBeGreaterThan(50);
});
