/** Random catalogs and requests for property tests. */
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import fc from 'fast-check';
import { indexNames, namedCard, type Catalog, type Endpoint, type EndpointLive, type Model, type Snapshot } from './catalog.js';
import { NO_WISHES, plainRequest, type RouteRequest } from './request.js';

export const PROVIDERS = ['alpha', 'beta', 'gamma', 'delta'] as const;
const WINDOWS = [null, 4_000, 32_000, 200_000] as const;

/** Ordinary prices of one endpoint, nano-USD per 1M tokens. */
export function pricesOf(id: string, input: bigint, output: bigint): Endpoint['prices'] {
  const [inputPrice, outputPrice] = [asPrice(input), asPrice(output)];
  return [{ fromPromptTokens: 0, card: namedCard(id, { inputUncached: inputPrice, cacheRead: inputPrice, cacheWrite: inputPrice, outputText: outputPrice, outputReasoning: outputPrice, audio: inputPrice, image: inputPrice, requestNanoUsd: asNanoUsd(0n) }) }];
}

/** An endpoint that supports everything, except for `changes`. */
export function endpointWith(changes: Partial<Endpoint> & Pick<Endpoint, 'id' | 'provider' | 'model'>): Endpoint {
  return {
    index: 0, modelIndex: 0, providerModelId: changes.model, wireProtocol: 'openai-chat', prices: pricesOf(changes.id, 1_000_000_000n, 2_000_000_000n),
    maxTokensParam: 'max_tokens', contextWindow: 128_000, maxOutputTokens: 16_000,
    capabilities: { streaming: true, tools: true, forcedToolChoice: true, parallelToolCalls: true, jsonObject: true, jsonSchema: true, vision: true, fileInput: true, audioInput: true, logprobs: true, choices: true },
    unsupportedParams: new Set(), reasoningEfforts: [], hiddenReasoning: false, trainsOnData: false, zdr: true, zdrByDefault: true, quantizationBits: 16, temperatureMax: 2,
    firstByteTimeoutMs: 10_000, isServable: true, hasManagedCredential: true, takesByok: true, priorLatencyMsP75: null, priorThroughputTpsP50: null, sunsetDate: null, ...changes,
  };
}

/** A catalog of models with their endpoints; sets the positions. */
export function catalogOf(models: readonly (Partial<Model> & { readonly id: string; readonly endpoints: readonly Endpoint[] })[]): Catalog {
  const endpoints: Endpoint[] = [];
  const built = models.map((model, index): Model => {
    const own = model.endpoints.map((endpoint) => {
      const placed = { ...endpoint, index: endpoints.length, modelIndex: index, model: model.id };
      endpoints.push(placed);
      return placed;
    });
    return { ownedBy: 'maker', aliases: [], family: null, deprecationDate: null, isRetired: false, ability: 0.5, isSimulated: false, listPrices: [], ...model, index, endpoints: own };
  });
  return { id: 'cat_test', models: built, endpoints, names: indexNames(built) };
}

const capabilities = fc.record({
  streaming: fc.boolean(), tools: fc.boolean(), forcedToolChoice: fc.boolean(), parallelToolCalls: fc.boolean(), jsonObject: fc.boolean(), jsonSchema: fc.boolean(),
  vision: fc.boolean(), fileInput: fc.boolean(), audioInput: fc.boolean(), logprobs: fc.boolean(), choices: fc.boolean(),
});

const endpointPart = fc.record({
  provider: fc.constantFrom(...PROVIDERS),
  input: fc.bigInt({ min: 0n, max: 20_000_000_000n }),
  output: fc.bigInt({ min: 0n, max: 60_000_000_000n }),
  contextWindow: fc.constantFrom(...WINDOWS),
  maxOutputTokens: fc.constantFrom(null, 1_000, 16_000, 16_000),
  capabilities: fc.oneof(capabilities, fc.constant(endpointWith({ id: '', provider: '', model: '' }).capabilities)),
  trainsOnData: fc.constantFrom(true, false, null),
  zdr: fc.boolean(),
  quantizationBits: fc.constantFrom(null, 4, 8, 16, 32),
  unsupported: fc.subarray(['seed', 'temperature', 'top_p']),
  isServable: fc.constantFrom(true, true, true, false),
  hasManagedCredential: fc.constantFrom(true, true, true, false),
  latency: fc.option(fc.integer({ min: 50, max: 5_000 }), { nil: null }),
  throughput: fc.option(fc.integer({ min: 5, max: 300 }), { nil: null }),
});

const live = fc.record({ samples: fc.integer({ min: 0, max: 60 }), ms: fc.integer({ min: 50, max: 5_000 }), share: fc.double({ min: 0.05, max: 1, noNaN: true }), breaker: fc.constantFrom('closed' as const, 'closed' as const, 'open' as const, 'half-open' as const), ejectedFor: fc.constantFrom(undefined, undefined, 'failures' as const, 'latency' as const) });

function liveOf(part: { readonly samples: number; readonly ms: number; readonly share: number; readonly breaker: EndpointLive['breaker']; readonly ejectedFor: EndpointLive['ejectedFor'] | undefined }): EndpointLive {
  return { samples: part.samples, latencyMsP75: part.ms, totalMsP75: part.ms * 3, totalSamples: part.samples, throughputTpsP50: 20_000 / part.ms, throughputSamples: part.samples, successShare: part.share, breaker: part.breaker, ...(part.ejectedFor === undefined ? {} : { ejectedFor: part.ejectedFor }) };
}

/** A predictor with the same answer for every prompt. */
export function constantQuality(quality: readonly number[], deviation = 0.5): NonNullable<Snapshot['quality']> {
  return { id: 'qua_test', predict: () => ({ cluster: 'chat', difficulty: 0, familiarity: 0, quality, deviation: quality.map(() => deviation), outputTokens: quality.map(() => 300) }) };
}

const predicted = fc.option(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 8, maxLength: 8 }).map((quality) => constantQuality(quality)), { nil: undefined });

/** A snapshot of up to eight models with up to five endpoints each. */
export const snapshots: fc.Arbitrary<Snapshot> = fc.tuple(predicted, fc.array(fc.record({ ability: fc.double({ min: 0, max: 1, noNaN: true }), endpoints: fc.array(fc.tuple(endpointPart, fc.option(live, { nil: undefined })), { minLength: 1, maxLength: 5 }) }), { minLength: 1, maxLength: 8 })).map(([quality, parts]) => {
  const stats = new Map<string, EndpointLive>();
  const models = parts.map((part, modelIndex) => {
    const model = `maker/m${String(modelIndex)}`;
    return {
      id: model,
      ability: part.ability,
      endpoints: part.endpoints.map(([end, seen], index) => {
        const id = `${end.provider}:${model}#${String(index)}`;
        if (seen !== undefined) stats.set(id, liveOf(seen));
        return endpointWith({ id, provider: end.provider, model, prices: pricesOf(id, end.input, end.output), contextWindow: end.contextWindow, maxOutputTokens: end.maxOutputTokens, capabilities: end.capabilities, trainsOnData: end.trainsOnData, zdr: end.zdr, quantizationBits: end.quantizationBits, unsupportedParams: new Set(end.unsupported), isServable: end.isServable, hasManagedCredential: end.hasManagedCredential, priorLatencyMsP75: end.latency, priorThroughputTpsP50: end.throughput });
      }),
    };
  });
  return { catalog: catalogOf(models), live: stats, quality };
});

const modelIds = fc.integer({ min: 0, max: 7 }).map((index) => `maker/m${String(index)}`);
/** Mostly empty, since lists that exclude everything prove little. */
const listOf = (names: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<readonly string[]> => fc.oneof({ weight: 9, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.array(names, { minLength: 1, maxLength }) });
const priceBound = fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 40_000_000_000n }) });

/** Requests, half of them `auto`, with any mixture of needs, lists, policies and wishes, some of them in a conversation that an endpoint has served. */
export const requests: fc.Arbitrary<RouteRequest> = fc.record({
  model: fc.oneof(fc.constant('auto'), modelIds),
  models: fc.oneof(fc.constant([]), fc.array(modelIds, { maxLength: 3 })),
  needs: fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, {
    weight: 1,
    arbitrary: fc.record({
      tools: fc.boolean(), forcedToolChoice: fc.boolean(), parallelToolCalls: fc.boolean(), vision: fc.boolean(), fileInput: fc.boolean(), audioInput: fc.boolean(), streaming: fc.boolean(), logprobs: fc.boolean(),
      choices: fc.constantFrom(1, 1, 2), responseFormat: fc.constantFrom('', 'json_object', 'json_schema'), params: fc.subarray(['seed', 'temperature', 'top_p']),
      ownCredential: fc.constantFrom(false, false, false, true),
    }, { requiredKeys: [] }),
  }),
  promptTokens: fc.constantFrom(10, 3_000, 50_000),
  maxTokens: fc.constantFrom(undefined, 100, 2_000),
  denyDataCollection: fc.boolean(),
  zdr: fc.boolean(),
  minQuantization: fc.constantFrom('', '', 'fp8'),
  maxQuantization: fc.constantFrom('', '', 'bf16'),
  ignore: fc.subarray([...PROVIDERS], { maxLength: 1 }),
  only: fc.oneof({ weight: 9, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.subarray([...PROVIDERS], { minLength: 2 }) }),
  requireParameters: fc.boolean(),
  maxPricePrompt: priceBound,
  maxPriceCompletion: priceBound,
  allowModels: listOf(fc.oneof(modelIds, fc.constant('auto'), fc.constant('maker/*')), 5),
  denyModels: listOf(modelIds, 3),
  allowProviders: listOf(fc.constantFrom(...PROVIDERS), 3),
  denyProviders: listOf(fc.constantFrom(...PROVIDERS), 1),
  held: fc.option(fc.record({ endpointId: fc.tuple(fc.constantFrom(...PROVIDERS), modelIds, fc.integer({ min: 0, max: 4 })).map(([provider, model, index]) => `${provider}:${model}#${String(index)}`), cachedTokens: fc.constantFrom(0, 2_000, 50_000) }), { nil: undefined }),
  session: fc.constantFrom('', 'session-1'),
  promptText: fc.constantFrom('', 'a prompt'),
  costWeight: fc.option(fc.double({ min: 0, max: 1_000, noNaN: true }), { nil: undefined }),
}).map(({ needs, ignore, only, requireParameters, maxPricePrompt, maxPriceCompletion, ...rest }) => {
  const plain = plainRequest(rest.model);
  return { ...plain, ...rest, needs: { ...plain.needs, ...needs } as RouteRequest['needs'], provider: { ...NO_WISHES, ignore, only, requireParameters, maxPricePrompt, maxPriceCompletion } };
});
