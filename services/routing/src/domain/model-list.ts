/** The models an account may use, and what is known of each. */
import { formatUsdJson, formatUsdPerToken } from '@signalbox/kernel/money';
import { cardFor, type PriceCard } from '@signalbox/kernel/tokens';
import { findModel, type Catalog, type Endpoint, type EndpointLive, type Model } from '@signalbox/router-core/catalog';
import { isProviderAllowed, isReachable, keepsNothing, modelListFilter, trainsOnData } from '@signalbox/router-core/filters';

type LiveView = ReadonlyMap<string, EndpointLive>;

export interface ListQuery {
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  /** Providers that may be used, empty = all, and those that may not: of the account's policy. */
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly byokProviders: readonly string[];
  /** Those of them where the account itself has a zero-retention agreement. */
  readonly byokZdrProviders: readonly string[];
  /** Those of `byokProviders` where the credential has an address of its own. */
  readonly byokOwnAddressProviders: readonly string[];
  /** One model by any of its names; empty = all. */
  readonly model: string;
}

/** True for endpoints that the account has a credential for, and that its policy does not shut out. */
function endpointUse({ allowProviders, denyProviders, byokProviders }: ListQuery): (endpoint: Endpoint) => boolean {
  return (endpoint) => isReachable(endpoint, byokProviders) && isProviderAllowed(endpoint.provider, { allowProviders, denyProviders });
}

/** In the catalog's order. Retired models are left out, and those that no provider may serve to this account. */
export function listModels(catalog: Catalog, query: ListQuery): Model[] {
  // An allow list of `auto` alone permits no model by name.
  const isAllowed = modelListFilter(catalog, query, false);
  const isUsable = endpointUse(query);
  const only = query.model === '' ? undefined : (catalog.names.get(query.model) ?? -1);
  return catalog.models.filter((model) => (only === undefined || model.index === only) && !model.isRetired && isAllowed(model) && model.endpoints.some(isUsable));
}

/** The model that was asked for, where it is not listed since it is served no more, and the account's lists leave it. */
export function retiredModel(catalog: Catalog, query: ListQuery): Model | undefined {
  const model = findModel(catalog, query.model);
  return model?.isRetired === true && modelListFilter(catalog, query, false)(model) ? model : undefined;
}

function usd(nano: bigint): number {
  return Number(nano) / 1e9;
}

/** Prices of a million tokens, and by the names that OpenRouter gives them those of one token, as decimal text. */
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
    // Of the latest five minutes, as routing sees them; null where too little was seen.
    live: { breaker: seen?.breaker ?? 'closed', samples: seen?.samples ?? 0, latency_ms_p75: seen?.latencyMsP75 ?? null, throughput_tps_p50: seen?.throughputTpsP50 ?? null },
  };
}

/** JSON of a model for `?detail=full`: its cheapest endpoint's price, capabilities, and all endpoints the account may use. */
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
