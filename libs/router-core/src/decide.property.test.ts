import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ATTEMPTS_MAX } from './auto.js';
import type { Endpoint, Snapshot } from './catalog.js';
import { decide } from './decide.js';
import { catalogOf, pricesOf, requests, snapshots } from './random-catalog.js';
import { effectiveCostOf, expectedCost } from './rank.js';
import type { RouteRequest } from './request.js';

const seeds = fc.integer({ min: 0, max: 2 ** 31 });

/** The lists of key and account, implemented again: `auto` in an allow list permits `auto` itself, which then chooses among the list's other names, if any. */
function isListed(model: string, { allowModels, denyModels }: RouteRequest, viaAuto: boolean): boolean {
  const matches = (name: string): boolean => name === model || (name === 'maker/*' && model.startsWith('maker/'));
  const named = allowModels.filter((name) => name !== 'auto');
  const isAllowed = allowModels.length === 0 || (named.length === 0 ? viaAuto : named.some(matches));
  return isAllowed && !denyModels.some(matches);
}

/** The filters, implemented again in the simplest way. */
function mayServe(endpoint: Endpoint, request: RouteRequest, snapshot: Snapshot): boolean {
  const can = endpoint.capabilities;
  const bits = endpoint.quantizationBits;
  const { needs, provider } = request;
  const card = endpoint.prices[0]?.card;
  if ((needs.forcedToolChoice && !can.forcedToolChoice) || (needs.tools && needs.parallelToolCalls && !can.parallelToolCalls)) return false;
  if ((needs.fileInput && !can.fileInput) || (needs.audioInput && !can.audioInput) || (needs.choices > 1 && !can.choices)) return false;
  if (endpoint.maxOutputTokens !== null && (request.maxTokens ?? 0) > endpoint.maxOutputTokens) return false;
  if (provider.requireParameters && needs.params.some((name) => endpoint.unsupportedParams.has(name) || name === 'service_tier')) return false;
  // No account here has a credential of its own.
  if (needs.ownCredential === true) return false;
  if (provider.only.length > 0 && !provider.only.includes(endpoint.provider)) return false;
  if ((provider.maxPricePrompt ?? Infinity) < (card?.inputUncached ?? 0n) || (provider.maxPriceCompletion ?? Infinity) < (card?.outputText ?? 0n)) return false;
  if (request.denyProviders.includes(endpoint.provider) || (request.allowProviders.length > 0 && !request.allowProviders.includes(endpoint.provider))) return false;
  return endpoint.isServable && endpoint.hasManagedCredential
    && snapshot.live.get(endpoint.id)?.breaker !== 'open'
    && (!request.needs.tools || can.tools) && (!request.needs.vision || can.vision) && (!request.needs.streaming || can.streaming) && (!request.needs.logprobs || can.logprobs)
    && (request.needs.responseFormat !== 'json_schema' || can.jsonSchema) && (request.needs.responseFormat !== 'json_object' || can.jsonObject)
    && (endpoint.contextWindow === null || request.promptTokens + (request.maxTokens ?? 0) <= endpoint.contextWindow)
    && (!request.denyDataCollection || endpoint.trainsOnData === false) && (!request.zdr || endpoint.zdr)
    && (request.minQuantization === '' || (bits !== null && bits >= 8)) && (request.maxQuantization === '' || (bits !== null && bits <= 16))
    && !request.provider.ignore.includes(endpoint.provider);
}

function isOutlier(endpoint: Endpoint, snapshot: Snapshot): boolean {
  return snapshot.live.get(endpoint.id)?.ejectedFor !== undefined;
}

/** Endpoints that may serve the request under any of the names it asks for. */
function eligibleOf(request: RouteRequest, snapshot: Snapshot): readonly Endpoint[] {
  const names = [request.model, ...request.models];
  const isAsked = (model: string): boolean => (names.includes('auto') && isListed(model, request, true)) || (names.includes(model) && isListed(model, request, false));
  return snapshot.catalog.endpoints.filter((endpoint) => isAsked(endpoint.model) && mayServe(endpoint, request, snapshot));
}

function plannedIds(request: RouteRequest, snapshot: Snapshot, seed: number): string[] {
  const result = decide(request, snapshot, seed);
  return result.kind === 'plan' ? result.attempts.map((attempt) => attempt.endpoint.id) : [];
}

/** Doubles the price of each endpoint and of each model's list price from each of these lengths on. */
function withSteps(snapshot: Snapshot, lengths: readonly number[]): Snapshot {
  const stepped = ({ id, prices }: Pick<Endpoint, 'id' | 'prices'>, shift: number): Endpoint['prices'] => {
    const [{ card } = { card: undefined }] = prices;
    if (card === undefined) return prices;
    const starts = [0, ...new Set([...lengths].sort((a, b) => a - b).map((length) => length + shift))];
    return starts.map((fromPromptTokens, index) => ({ fromPromptTokens, card: pricesOf(`${id}@${String(index)}`, card.inputUncached << BigInt(index), card.outputText << BigInt(index))[0]?.card ?? card }));
  };
  const models = snapshot.catalog.models.map((model) => ({
    ...model,
    endpoints: model.endpoints.map((endpoint) => ({ ...endpoint, prices: stepped(endpoint, endpoint.index) })),
    listPrices: stepped({ id: model.id, prices: model.endpoints[0]?.prices ?? [] }, 1_000),
  }));
  return { ...snapshot, catalog: { ...snapshot.catalog, ...catalogOf(models) } };
}

describe('decide, over random catalogs', () => {
  test('never plans an endpoint that a filter excludes, and plans one whenever one is left', () => {
    fc.assert(fc.property(snapshots, requests, seeds, (snapshot, request, seed) => {
      const eligible = eligibleOf(request, snapshot);
      const result = decide(request, snapshot, seed);
      if (result.kind !== 'plan') {
        expect(eligible).toEqual([]);
        return;
      }
      expect(result.attempts.length).toBeGreaterThan(0);
      expect(result.attempts.length).toBeLessThanOrEqual(ATTEMPTS_MAX);
      expect(new Set(result.attempts.map((attempt) => attempt.endpoint.id)).size).toBe(result.attempts.length);
      const ids = new Set(eligible.map((endpoint) => endpoint.id));
      for (const { endpoint, card } of result.attempts) {
        expect(ids.has(endpoint.id)).toBe(true);
        expect(endpoint.prices.some((step) => step.card === card)).toBe(true);
      }
    }), { numRuns: 600 });
  });

  test('a wish for speed never empties the set', () => {
    fc.assert(fc.property(snapshots, requests, seeds, fc.integer({ min: 1, max: 6_000 }), fc.integer({ min: 1, max: 400 }), (snapshot, request, seed, latency, throughput) => {
      const wishing = { ...request, preferredMaxLatency: latency, preferredMinThroughput: throughput };
      expect(plannedIds(wishing, snapshot, seed).length > 0).toBe(plannedIds(request, snapshot, seed).length > 0);
    }), { numRuns: 400 });
  });

  test('the same request, snapshot and seed give the same plan', () => {
    fc.assert(fc.property(snapshots, requests, seeds, (snapshot, request, seed) => {
      expect(decide(request, snapshot, seed)).toEqual(decide(request, snapshot, seed));
    }));
  });

  test('how short a prompt may be changes no plan that the estimate allows, and allows only what a prompt of that length would be allowed', () => {
    fc.assert(fc.property(snapshots, requests, seeds, fc.integer({ min: 0, max: 60_000 }), (snapshot, request, seed, promptTokensMin) => {
      const plain = decide(request, snapshot, seed);
      const told = decide({ ...request, promptTokensMin }, snapshot, seed);
      const isByLength = plain.kind === 'context-length-exceeded' || (plain.kind === 'all-unhealthy' && plain.isLengthToo);
      if (!isByLength || promptTokensMin >= request.promptTokens) expect(told).toEqual(plain);
      const shorter = { ...request, promptTokens: Math.min(promptTokensMin, request.promptTokens) };
      if (told.kind === 'plan') for (const { endpoint } of told.attempts) expect(eligibleOf(shorter, snapshot)).toContain(endpoint);
    }), { numRuns: 400 });
  });

  test('a plan that says how far it reaches holds for every prompt within, whatever seed, session, text and home', () => {
    const lengths = fc.integer({ min: 0, max: 250_000 });
    const strangers = fc.record({ session: fc.constantFrom('', 'session-2'), promptText: fc.constantFrom('', 'another prompt'), held: fc.constantFrom(undefined, { endpointId: 'alpha:maker/m0#0', cachedTokens: 9 }) });
    let reaching = 0;
    fc.assert(fc.property(snapshots, requests, fc.array(fc.integer({ min: 1, max: 60_000 }), { maxLength: 3 }), seeds, seeds, lengths, strangers, (plain, base, steps, seed, other, length, stranger) => {
      const snapshot = withSteps(plain, steps);
      const asked = base.model === 'auto' ? { ...base, model: 'maker/m0', models: [] } : base;
      const result = decide(asked, snapshot, seed);
      if (result.kind !== 'plan' || result.reach === undefined) return;
      const { fromPromptTokens, toPromptTokens } = result.reach;
      expect(asked.promptTokens).toBeGreaterThanOrEqual(fromPromptTokens);
      expect(asked.promptTokens).toBeLessThanOrEqual(toPromptTokens);
      const promptTokens = fromPromptTokens + (length % (Math.min(toPromptTokens, 1_000_000) - fromPromptTokens + 1));
      for (const tokens of [promptTokens, fromPromptTokens, Math.min(toPromptTokens, 1_000_000)]) expect(decide({ ...asked, ...stranger, promptTokens: tokens }, snapshot, other)).toEqual(result);
      reaching += 1;
    }), { numRuns: 2_000 });
    expect(reaching).toBeGreaterThan(100);
  });

  test('raising the price of an endpoint never raises its rank', () => {
    fc.assert(fc.property(snapshots, requests, seeds, fc.nat(), fc.bigInt({ min: 1n, max: 50_000_000_000n }), fc.constantFrom('' as const, 'price' as const), (snapshot, base, seed, pick, more, sort) => {
      const request = { ...base, provider: { ...base.provider, sort } };
      const chosen = snapshot.catalog.endpoints[pick % snapshot.catalog.endpoints.length];
      const card = chosen?.prices[0]?.card;
      if (chosen === undefined || card === undefined) return;
      const dearer = { ...chosen, prices: pricesOf(chosen.id, card.inputUncached + more, card.outputText + more) };
      const swap = (endpoint: Endpoint): Endpoint => (endpoint.id === chosen.id ? dearer : endpoint);
      const changed: Snapshot = {
        ...snapshot,
        catalog: { ...snapshot.catalog, endpoints: snapshot.catalog.endpoints.map(swap), models: snapshot.catalog.models.map((model) => ({ ...model, endpoints: model.endpoints.map(swap) })) },
      };
      const rank = (ids: readonly string[]): number => (ids.includes(chosen.id) ? ids.indexOf(chosen.id) : Infinity);
      expect(rank(plannedIds(request, changed, seed))).toBeGreaterThanOrEqual(rank(plannedIds(request, snapshot, seed)));
    }), { numRuns: 800 });
  });

  test('an outlier has a place only where fewer than two others could have one, and comes after them', () => {
    fc.assert(fc.property(snapshots, requests, seeds, (snapshot, base, seed) => {
      const request = { ...base, models: [] };
      const sound = new Set(eligibleOf(request, snapshot).filter((endpoint) => !isOutlier(endpoint, snapshot)).map(({ id }) => id));
      const planned = plannedIds(request, snapshot, seed).map((id) => sound.has(id));
      if (sound.size >= 2) expect(planned).not.toContain(false);
      else if (sound.size === 1) expect(planned.indexOf(true)).toBe(0);
    }), { numRuns: 600 });
  });

  test('a plan for auto spans two providers when two are eligible', () => {
    fc.assert(fc.property(snapshots, requests, seeds, (snapshot, base, seed) => {
      const request = { ...base, model: 'auto', models: [] };
      const providers = new Set(eligibleOf(request, snapshot).filter((endpoint) => !isOutlier(endpoint, snapshot)).map((endpoint) => endpoint.provider));
      const result = decide(request, snapshot, seed);
      if (result.kind !== 'plan' || providers.size < 2) return;
      expect(new Set(result.attempts.map((attempt) => attempt.endpoint.provider)).size).toBeGreaterThan(1);
    }), { numRuns: 400 });
  });

  test('a larger weight of cost never raises the expected cost of the choice, at home somewhere or nowhere', () => {
    /** Cost for a conversation that stays, with its prompt cached. */
    const costOf = (request: RouteRequest, snapshot: Snapshot, seed: number): number => {
      const result = decide(request, snapshot, seed);
      const [group, candidate] = result.kind === 'plan' ? [result.auto?.groups[0], result.auto?.ordered[0]] : [];
      if (result.kind !== 'plan' || group === undefined || candidate === undefined || result.auto?.reason !== 'stayed') return group?.cost ?? 0;
      return effectiveCostOf(expectedCost(candidate.endpoint, request, group.outputTokens, request.held?.cachedTokens ?? 0), candidate.successShare);
    };
    const weights = fc.oneof(fc.double({ min: 0, max: 1e5, noNaN: true }), fc.double({ min: 0, max: 10, noNaN: true }));
    fc.assert(fc.property(snapshots, requests, seeds, weights, weights, fc.nat(), fc.constantFrom(0, 2_000, 50_000), (snapshot, base, seed, weight, more, pick, cachedTokens) => {
      const home = snapshot.catalog.endpoints[pick % (2 * snapshot.catalog.endpoints.length)];
      const request = { ...base, model: 'auto', models: [], promptText: 'a prompt', held: home === undefined ? undefined : { endpointId: home.id, cachedTokens } };
      const before = costOf({ ...request, costWeight: weight }, snapshot, seed);
      const after = costOf({ ...request, costWeight: weight + more }, snapshot, seed);
      expect(after).toBeLessThanOrEqual(before * (1 + 1e-9));
    }), { numRuns: 600 });
  });

  test('exploring chooses only among models above the floor and in the best tier, within its room', () => {
    fc.assert(fc.property(snapshots, requests, seeds, fc.double({ min: 0, max: 1e9, noNaN: true }), (snapshot, base, seed, room) => {
      const request = { ...base, model: 'auto', models: [], promptText: 'a prompt', costWeight: undefined };
      const plain = decide(request, snapshot, seed);
      const exploring = decide({ ...request, explorationRoomNanoUsd: room }, snapshot, seed);
      if (plain.kind !== 'plan' || exploring.kind !== 'plan') return;
      const [best, tried] = [plain.auto?.groups[0], exploring.auto?.groups[0]];
      if (best === undefined || tried === undefined || best.model === tried.model) return;
      expect(exploring.auto?.reason).toBe('explored');
      expect(request.zdr || request.denyDataCollection).toBe(false);
      expect(tried.quality).toBeGreaterThanOrEqual(exploring.auto?.floor ?? Infinity);
      expect([tried.tier, tried.orderPosition]).toEqual([best.tier, best.orderPosition]);
      expect(tried.cost - best.cost).toBeLessThanOrEqual(room);
    }), { numRuns: 2_000 });
  });
});
