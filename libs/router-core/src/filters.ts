/** Hard filters, which are never relaxed. For each endpoint they give the set of reasons that exclude it; empty = eligible. */
import { createModelNames, modelsLeft, type ModelLists, type ModelNames } from '@signalbox/kernel/model-lists';
import { effortOf, warmthOf } from '@signalbox/kernel/param-names';
import { cardFor, type PriceCard } from '@signalbox/kernel/tokens';
import { QUANTIZATION_BITS, type Catalog, type Endpoint, type Model } from './catalog.js';
import type { RouteRequest } from './request.js';

/** Reason codes as clients see them in `metadata.excluded_by`, each at its bit. */
export const REASONS = [
  'allow_list', 'tools', 'response_format', 'context_length', 'vision', 'file_input', 'audio_input', 'streaming', 'logprobs', 'choices',
  'data_collection', 'zdr', 'quantization', 'provider_preferences', 'max_price', 'parameters', 'own_credential',
] as const;
export type Reason = (typeof REASONS)[number];

const BIT = Object.fromEntries(REASONS.map((reason, index) => [reason, 1 << index])) as Record<Reason, number>;
export const CONTEXT_LENGTH_BIT = BIT.context_length;

/** True if nothing excludes the endpoint, or only the prompt's length or the price at that length. */
export function isByLength(mask: number): boolean {
  return (mask & ~(BIT.context_length | BIT.max_price)) === 0;
}

/** The names of a bit set of reasons, in the order of REASONS. */
export function reasonNames(mask: number): Reason[] {
  return REASONS.filter((reason) => (mask & BIT[reason]) !== 0);
}

/** Per catalog, built at its first use. */
const listed = new WeakMap<Catalog, ModelNames>();

function namesIn(catalog: Catalog): ModelNames {
  let names = listed.get(catalog);
  if (names === undefined) {
    names = createModelNames(catalog.models);
    listed.set(catalog, names);
  }
  return names;
}

/** The names of an allow or deny list that match nothing in the catalog. */
export function unknownInList(catalog: Catalog, names: readonly string[], kind: 'allow' | 'deny'): string[] {
  return namesIn(catalog).unknown(names, kind);
}

/** Returns a test for models that the request's allow and deny lists permit. */
export function modelListFilter(catalog: Catalog, request: ModelLists, viaAuto: boolean): (model: Model) => boolean {
  if (request.allowModels.length === 0 && request.denyModels.length === 0) return () => true;
  return modelsLeft(namesIn(catalog), request, viaAuto);
}

/** True if the account's policy permits the provider. */
export function isProviderAllowed(provider: string, { allowProviders, denyProviders }: Pick<RouteRequest, 'allowProviders' | 'denyProviders'>): boolean {
  return (allowProviders.length === 0 || allowProviders.includes(provider)) && !denyProviders.includes(provider);
}

/** True if the account's own credential is used there. */
export function isOnOwnCredential(endpoint: Endpoint, byokProviders: readonly string[]): boolean {
  return byokProviders.length > 0 && endpoint.takesByok && byokProviders.includes(endpoint.provider);
}

type OwnTerms = Pick<RouteRequest, 'byokProviders' | 'byokZdrProviders' | 'byokOwnAddressProviders'>;

/** True if the endpoint is called at the account's own address, where the provider's known policy does not apply (ADR 75). */
function isAtOwnAddress(endpoint: Endpoint, { byokProviders, byokOwnAddressProviders }: OwnTerms): boolean {
  return byokOwnAddressProviders.includes(endpoint.provider) && isOnOwnCredential(endpoint, byokProviders);
}

/** True if zero data retention is guaranteed. The guarantee belongs to the credential: the operator's agreement does not cover the account's own credential, nor the reverse. */
export function keepsNothing(endpoint: Endpoint, own: OwnTerms): boolean {
  if (!isOnOwnCredential(endpoint, own.byokProviders)) return endpoint.zdr;
  return own.byokZdrProviders.includes(endpoint.provider) || (endpoint.zdrByDefault && !isAtOwnAddress(endpoint, own));
}

/** null = unknown. Zero retention implies no training. For an account's own address, only the account's own agreement counts. */
export function trainsOnData(endpoint: Endpoint, own: OwnTerms): boolean | null {
  if (!isAtOwnAddress(endpoint, own)) return endpoint.trainsOnData;
  return own.byokZdrProviders.includes(endpoint.provider) ? false : null;
}

/** True if this account has, or may use, a credential for the endpoint; without one the endpoint does not exist for it. */
export function isReachable(endpoint: Endpoint, byokProviders: readonly string[]): boolean {
  return endpoint.isServable && (endpoint.hasManagedCredential || isOnOwnCredential(endpoint, byokProviders));
}

/** Field that selects the provider's price. */
const PRICED_PARAM = 'service_tier';

/** True if a tuning field is not sent unchanged: the endpoint does not support it, or not at that value, or the operator would pay another price than the card's. */
export function isDropped(name: string, endpoint: Endpoint, byokProviders: readonly string[]): boolean {
  const warmth = endpoint.temperatureMax > 0 ? warmthOf(name) : undefined;
  if (warmth !== undefined) return warmth > endpoint.temperatureMax;
  const effort = endpoint.reasoningEfforts.length > 0 ? effortOf(name) : undefined;
  if (effort !== undefined) return !endpoint.reasoningEfforts.includes(effort);
  return endpoint.unsupportedParams.has(name) || (name === PRICED_PARAM && !isOnOwnCredential(endpoint, byokProviders));
}

/** The highest output price. Reasoning tokens are completion tokens too, and some hosts price them separately. */
function dearestOutput({ outputText, outputReasoning }: PriceCard): bigint {
  return outputReasoning > outputText ? outputReasoning : outputText;
}

/** The highest input price, including audio if the request has some. Cache writes are not included: the client asks for them itself. */
function dearestInput({ inputUncached, audio }: PriceCard, hasAudio: boolean): bigint {
  return hasAudio && audio > inputUncached ? audio : inputUncached;
}

export type EndpointFilter = (endpoint: Endpoint, isModelAllowed: boolean) => number;

/** Wires whose servers shorten a prompt that is too long, and say nothing. */
const SHORTENING_WIRES: ReadonlySet<string> = new Set(['ollama']);

/**
 * Prepares the filters of one request; the result gives an endpoint's reasons as a bit set, 0 = eligible. `promptTokens`: the
 * length that a window must have room for; where the prompt could be shortened unseen, it is never less than the estimate.
 */
export function createEndpointFilter(request: RouteRequest, promptTokens = request.promptTokens): EndpointFilter {
  const { needs, provider } = request;
  const minimumBits = request.minQuantization === '' ? undefined : (QUANTIZATION_BITS[request.minQuantization] ?? Infinity);
  const maximumBits = request.maxQuantization === '' ? undefined : (QUANTIZATION_BITS[request.maxQuantization] ?? -Infinity);
  const { maxTokens: answerTokens = 0 } = request;
  const listedOnly = !provider.allowFallbacks && provider.order.length > 0;
  return (endpoint, isModelAllowed) => {
    const can = endpoint.capabilities;
    let mask = 0;
    if (!isModelAllowed || !isProviderAllowed(endpoint.provider, request)) mask |= BIT.allow_list;
    if ((needs.tools && !can.tools) || (needs.forcedToolChoice && !can.forcedToolChoice) || (needs.parallelToolCalls && needs.tools && !can.parallelToolCalls)) mask |= BIT.tools;
    if ((needs.responseFormat === 'json_schema' && !can.jsonSchema) || (needs.responseFormat === 'json_object' && !can.jsonObject)) mask |= BIT.response_format;
    if (needs.vision && !can.vision) mask |= BIT.vision;
    if (needs.fileInput && !can.fileInput) mask |= BIT.file_input;
    if (needs.audioInput && !can.audioInput) mask |= BIT.audio_input;
    if (needs.streaming && !can.streaming) mask |= BIT.streaming;
    if (needs.logprobs && !can.logprobs) mask |= BIT.logprobs;
    if (needs.choices > 1 && !can.choices) mask |= BIT.choices;
    if (endpoint.contextWindow !== null && (SHORTENING_WIRES.has(endpoint.wireProtocol) ? request.promptTokens : promptTokens) + answerTokens > endpoint.contextWindow) mask |= BIT.context_length;
    if (endpoint.maxOutputTokens !== null && request.maxTokens !== undefined && request.maxTokens > endpoint.maxOutputTokens) mask |= BIT.context_length;
    if (request.denyDataCollection && trainsOnData(endpoint, request) !== false) mask |= BIT.data_collection;
    if (request.zdr && !keepsNothing(endpoint, request)) mask |= BIT.zdr;
    if (minimumBits !== undefined && (endpoint.quantizationBits === null || endpoint.quantizationBits < minimumBits)) mask |= BIT.quantization;
    if (maximumBits !== undefined && (endpoint.quantizationBits === null || endpoint.quantizationBits > maximumBits)) mask |= BIT.quantization;
    if ((provider.only.length > 0 && !provider.only.includes(endpoint.provider)) || provider.ignore.includes(endpoint.provider) || (listedOnly && !provider.order.includes(endpoint.provider))) mask |= BIT.provider_preferences;
    if (provider.maxPricePrompt !== undefined || provider.maxPriceCompletion !== undefined) {
      const card = cardFor(endpoint.prices, request.promptTokens);
      if (card === undefined || (provider.maxPricePrompt !== undefined && dearestInput(card, needs.audioInput) > provider.maxPricePrompt) || (provider.maxPriceCompletion !== undefined && dearestOutput(card) > provider.maxPriceCompletion)) mask |= BIT.max_price;
    }
    if (provider.requireParameters && needs.params.some((name) => isDropped(name, endpoint, request.byokProviders))) mask |= BIT.parameters;
    if (needs.ownCredential === true && !isOnOwnCredential(endpoint, request.byokProviders)) mask |= BIT.own_credential;
    return mask;
  };
}
