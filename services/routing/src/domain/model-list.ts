/** Lists the models that an account may use, with their details. */
import { formatUsdJson, formatUsdPerToken } from '@signalbox/kernel/money';
import { cardFor, type PriceCard } from '@signalbox/kernel/tokens';
import { findModel, type Catalog, type Endpoint, type EndpointLive, type Model } from '@signalbox/router-core/catalog';
import { isProviderAllowed, isReachable, keepsNothing, modelListFilter, trainsOnData } from '@signalbox/router-core/filters';

type LiveView = ReadonlyMap<string, EndpointLive>;

export interface ListQuery {
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  /** The account's policy: providers that may be used (empty = all), and below, providers that may not. */
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly byokProviders: readonly string[];
  /** Those of `byokProviders` with which the account itself has a zero-retention agreement. */
  readonly byokZdrProviders: readonly string[];
  /** Those of `byokProviders` whose credential has its own address. */
  readonly byokOwnAddressProviders: readonly string[];
  /** One model by any of its names; empty = all. */
  readonly model: string;
}

/** True for endpoints for which a credential exists and which the account's policy permits. */
function endpointUse({ allowProviders, denyProviders, byokProviders }: ListQuery): (endpoint: Endpoint) => boolean {
  return (endpoint) => isReachable(endpoint, byokProviders) && isProviderAllowed(endpoint.provider, { allowProviders, denyProviders });
}

/** In the catalog's order, without retired models and models that no provider may serve to this account. */
export function listModels(catalog: Catalog, query: ListQuery): Model[] {
  // An allow list that has only `auto` permits no model by name.
  const isAllowed = modelListFilter(catalog, query, false);
  const isUsable = endpointUse(query);
  const only = query.model === '' ? undefined : (catalog.names.get(query.model) ?? -1);
  return catalog.models.filter((model) => (only === undefined || model.index === only) && !model.isRetired && isAllowed(model) && model.endpoints.some(isUsable));
}

/** The model asked for, if it is missing from the list only because it is retired, and the account's policy would permit it. */
export function retiredModel(catalog: Catalog, query: ListQuery): Model | undefined {
  const model = findModel(catalog, query.model);
  return model?.isRetired === true && modelListFilter(catalog, query, false)(model) ? model : undefined;
}

function usd(nano: bigint): number {
  return Number(nano) / 1e9;
}

/** Prices per million tokens; and, under OpenRouter's names, prices per token as decimal text. */
function pricing(card: PriceCard): object {
  return {
    unit: 'usd_per_1m_tokens', input: usd(card.inputUncached), cached_input: usd(card.cacheRead), cache_write: usd(card.cacheWrite), output: usd(card.outputText),
    prompt: formatUsdPerToken(card.inputUncached), completion: formatUsdPerToken(card.outputText), input_cache_read: formatUsdPerToken(card.cacheRead), input_cache_write: formatUsdPerToken(card.cacheWrite), request: formatUsdJson(card.requestNanoUsd),
  };
}

function endpointDetail(endpoint: Endpoint, query: ListQuery, live: LiveView): object {
  const card = cardFor(endpoint.prices, 0);
  const seen = live.get(endpoint.id);
  return {
    id: endpoint.id,
    provider: endpoint.provider,
    pricing: card === undefined ? null : pricing(card),
    context_window: endpoint.contextWindow,
    max_output_tokens: endpoint.maxOutputTokens,
    quantization_bits: endpoint.quantizationBits,
    policy: { trains_on_data: trainsOnData(endpoint, query), zdr: keepsNothing(endpoint, query) },
    // The last five minutes, as routing sees them; null if there are too few samples.
    live: { breaker: seen?.breaker ?? 'closed', samples: seen?.samples ?? 0, latency_ms_p75: seen?.latencyMsP75 ?? null, throughput_tps_p50: seen?.throughputTpsP50 ?? null },
  };
}

/** JSON of a model for `?detail=full`: price of its cheapest endpoint, capabilities, and all endpoints that the account may use. */
export function modelDetail(model: Model, query: ListQuery, live: LiveView): object {
  const endpoints = model.endpoints.filter(endpointUse(query));
  const priced = endpoints.flatMap((endpoint) => {
    const card = cardFor(endpoint.prices, 0);
    return card === undefined ? [] : [{ endpoint, cost: card.inputUncached + card.outputText }];
  });
  const cheapest = priced.reduce<(typeof priced)[number] | undefined>((best, entry) => (best === undefined || entry.cost < best.cost ? entry : best), undefined)?.endpoint;
  const can = cheapest?.capabilities;
  const contextWindow = Math.max(0, ...endpoints.map((endpoint) => endpoint.contextWindow ?? 0)) || null;
  return {
    pricing: cheapest === undefined ? null : (endpointDetail(cheapest, query, live) as { readonly pricing: object }).pricing,
    context_window: contextWindow,
    context_length: contextWindow,
    max_output_tokens: cheapest?.maxOutputTokens ?? null,
    capabilities: can === undefined ? null : { streaming: can.streaming, tools: can.tools, json_object: can.jsonObject, json_schema: can.jsonSchema, vision: can.vision, file_input: can.fileInput, audio_input: can.audioInput, logprobs: can.logprobs, reasoning: cheapest?.hiddenReasoning ?? false },
    deprecation_date: model.deprecationDate,
    endpoints: endpoints.map((endpoint) => endpointDetail(endpoint, query, live)),
  };
}
