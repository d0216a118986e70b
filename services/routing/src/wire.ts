/** Translates messages of the contract to and from the domain. */
import type { PriceCard as CardMessage, PriceStep as StepMessage } from '@signalbox/contracts/common';
import type { DecideRequest__Output, DecideResponse, ListModelsRequest__Output, PlannedAttempt, PlanReuse, WhatIfRequest__Output, WhatIfSide } from '@signalbox/contracts/routing';
import { unreachable } from '@signalbox/kernel/assert';
import { Fault } from '@signalbox/kernel/fault';
import { effortOf, nearestEffort } from '@signalbox/kernel/param-names';
import type { PriceCard, PriceStep } from '@signalbox/kernel/tokens';
import type { Model } from '@signalbox/router-core/catalog';
import type { Attempt, Plan, Refusal } from '@signalbox/router-core/decide';
import type { Changes } from '@signalbox/router-core/record';
import type { Side } from '@signalbox/router-core/what-if';
import { NO_NEEDS, NO_WISHES, type Needs, type ProviderWishes, type RouteRequest } from '@signalbox/router-core/request';
import type { ListQuery } from './domain/model-list.js';
import type { NearestModel } from './domain/nearest-model.js';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';

/** Returns `value` if it is one of `words`; else throws a Fault `bad_message`. */
function oneOf<Word extends string>(words: readonly Word[], value: string, field: string): Word {
  const found = words.find((word) => word === value);
  if (found === undefined) throw new Fault('bad_message', `Unknown value of ${field}.`);
  return found;
}

function toNeeds(message: DecideRequest__Output['needs']): Needs {
  if (message === null) return NO_NEEDS;
  return { ...message, responseFormat: oneOf(['', 'json_object', 'json_schema'], message.responseFormat, 'response_format') };
}

function toWishes(message: DecideRequest__Output['provider']): ProviderWishes {
  if (message === null) return NO_WISHES;
  return {
    order: providersNamed(message.order),
    only: providersNamed(message.only),
    ignore: providersForbidden(message.ignore),
    allowFallbacks: message.allowFallbacks ?? true,
    requireParameters: message.requireParameters,
    sort: oneOf(['', 'price', 'throughput', 'latency'], message.sort, 'provider.sort'),
    maxPricePrompt: message.maxPricePrompt === undefined ? undefined : BigInt(message.maxPricePrompt),
    maxPriceCompletion: message.maxPriceCompletion === undefined ? undefined : BigInt(message.maxPriceCompletion),
  };
}

function costWeightOf(value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!Number.isFinite(value) || value < 0) throw new Fault('bad_message', 'cost_weight must be at least 0.');
  return value;
}

/** Throws a Fault `bad_message` for values that the contract does not have. */
export function toRouteRequest(message: DecideRequest__Output): RouteRequest {
  return {
    model: message.model,
    models: message.models,
    needs: toNeeds(message.needs),
    promptTokens: message.promptTokens,
    promptTokensMin: message.promptTokensMin,
    maxTokens: message.maxTokens,
    denyDataCollection: oneOf(['', 'allow', 'deny'], message.dataCollection, 'data_collection') === 'deny',
    zdr: message.zdr,
    preferredMaxLatency: message.preferredMaxLatency,
    preferredMinThroughput: message.preferredMinThroughput,
    minQuantization: message.minQuantization,
    maxQuantization: message.maxQuantization,
    provider: toWishes(message.provider),
    allowModels: message.allowModels,
    denyModels: message.denyModels,
    allowProviders: providersNamed(message.allowProviders),
    denyProviders: providersForbidden(message.denyProviders),
    mode: oneOf(['', 'quality', 'balanced', 'economy'], message.mode, 'mode'),
    baselineModel: message.baselineModel,
    session: message.session,
    byokProviders: message.byokProviders,
    byokZdrProviders: message.byokZdrProviders,
    byokOwnAddressProviders: message.byokOwnAddressProviders,
    promptText: message.promptText,
    costWeight: costWeightOf(message.costWeight),
    held: undefined,
    explorationRoomNanoUsd: undefined,
  };
}

export function toListQuery(message: ListModelsRequest__Output): ListQuery {
  return { ...message, allowProviders: providersNamed(message.allowProviders), denyProviders: providersForbidden(message.denyProviders) };
}

/** The changes of a what-if request; an empty list leaves what was recorded. Throws a Fault `bad_message`. */
export function changesOf(message: WhatIfRequest__Output): Changes {
  const lists = { allowModels: message.allowModels, denyModels: message.denyModels, allowProviders: providersNamed(message.allowProviders), denyProviders: providersForbidden(message.denyProviders) };
  const mode = message.mode === undefined ? undefined : oneOf(['', 'quality', 'balanced', 'economy'], message.mode, 'mode');
  return {
    ...Object.fromEntries(Object.entries(lists).filter(([, names]) => names.length > 0)),
    // A policy by mode and one by cost weight exclude each other.
    ...(mode === undefined ? {} : { mode, costWeight: undefined }),
    ...(message.costWeight === undefined ? {} : { costWeight: costWeightOf(message.costWeight) }),
    ...(message.baselineModel === undefined ? {} : { baselineModel: message.baselineModel }),
  };
}

export function sideMessage({ cost, quality, savings, models }: Side): WhatIfSide {
  return { costNanoUsd: cost, qualitySum: quality, savingsNanoUsd: savings, models: [...models].map(([model, requests]) => ({ model, requests })) };
}

/** Price cards never change, so each is rendered once. */
const cardMessages = new WeakMap<PriceCard, CardMessage>();

export function cardMessage(card: PriceCard): CardMessage {
  let message = cardMessages.get(card);
  if (message === undefined) {
    message = renderCard(card);
    cardMessages.set(card, message);
  }
  return message;
}

function renderCard(card: PriceCard): CardMessage {
  return {
    id: card.id,
    inputUncached: String(card.inputUncached),
    cacheRead: String(card.cacheRead),
    cacheWrite: String(card.cacheWrite),
    outputText: String(card.outputText),
    outputReasoning: String(card.outputReasoning),
    audio: String(card.audio),
    image: String(card.image),
    requestNanoUsd: String(card.requestNanoUsd),
  };
}

function stepMessages(steps: readonly PriceStep[]): StepMessage[] {
  return steps.map(({ fromPromptTokens, card }) => ({ fromPromptTokens, card: cardMessage(card) }));
}

/** Adds the effort to send in place of one that the endpoint refuses (empty = as asked). If it has none near, such as a model that can only be told not to think, the effort is dropped. */
function withEffort(dropParams: readonly string[], { reasoningEfforts }: Attempt['endpoint']): { readonly dropParams: string[]; readonly reasoningEffort: string } {
  const asked = dropParams.map(effortOf).find((effort) => effort !== undefined);
  const nearest = asked === undefined ? '' : nearestEffort(asked, reasoningEfforts);
  return { dropParams: nearest === undefined ? [...dropParams, 'reasoning_effort'] : [...dropParams], reasoningEffort: nearest ?? '' };
}

/** Names other than the id and the bare id, which are obvious. */
function aliasesOf({ id, aliases }: Model): string[] {
  return aliases.filter((alias) => alias !== id.slice(id.indexOf('/') + 1));
}

function attemptMessage({ endpoint, card, steps, dropParams, firstByteTimeoutMs, wholeTimeoutMs, byok }: Attempt, model: Model | undefined): PlannedAttempt {
  const modelAliases = model === undefined ? [] : aliasesOf(model);
  return {
    ...withEffort(dropParams, endpoint),
    endpointId: endpoint.id,
    provider: endpoint.provider,
    model: endpoint.model,
    providerModelId: endpoint.providerModelId,
    wireProtocol: endpoint.wireProtocol,
    card: cardMessage(card),
    maxTokensParam: endpoint.maxTokensParam,
    maxOutputTokens: endpoint.maxOutputTokens ?? 0,
    contextWindow: endpoint.contextWindow ?? 0,
    hiddenReasoning: endpoint.hiddenReasoning,
    temperatureMax: endpoint.temperatureMax,
    firstByteTimeoutMs,
    wholeTimeoutMs,
    sunsetDate: endpoint.sunsetDate ?? '',
    byok,
    ...(steps.length === 0 ? {} : { steps: stepMessages(steps) }),
    ...(modelAliases.length === 0 ? {} : { modelAliases }),
  };
}

/**
 * How long edge may reuse a plan without asking. Meanwhile breakers and prices may change. That is harmless: the worker's own
 * breaker stops calls that edge would still send, and a request just before a reload would have had the old prices too.
 */
const REUSE_MS = 250;

/** Undefined if the next request may get another plan. `askBeside`: there is room to record a decision for each request that reuses the plan. */
export function planReuse({ reach }: Plan, askBeside: boolean): PlanReuse | undefined {
  if (reach === undefined) return undefined;
  const { fromPromptTokens, toPromptTokens } = reach;
  return { forMs: REUSE_MS, fromPromptTokens, askBeside, ...(Number.isFinite(toPromptTokens) ? { toPromptTokens } : {}) };
}

/** For a model that was not found: `unset` are providers that could serve it, `nearest` is what its name means. `models`: the catalog's, in its order. */
export function decideResponse(result: Plan | Refusal, decisionId: string, unset: readonly string[] = [], nearest?: NearestModel, models: readonly Model[] = []): DecideResponse {
  switch (result.kind) {
    case 'plan':
      return {
        decisionId,
        attempts: result.attempts.map((attempt) => attemptMessage(attempt, models[attempt.endpoint.modelIndex])),
        referenceCard: result.reference === undefined ? null : cardMessage(result.reference.card),
        ...(result.reference === undefined || result.reference.steps.length === 0 ? {} : { referenceSteps: stepMessages(result.reference.steps) }),
        ...(result.roomierAfterMs === undefined ? {} : { retryAfterMs: result.roomierAfterMs }),
      };
    case 'model-not-found':
      return { decisionId, refusal: 'MODEL_NOT_FOUND', unsetProviders: [...unset], nearestModel: nearest?.model ?? '', nearestProvider: nearest?.provider ?? '' };
    case 'model-deprecated':
      return { decisionId, refusal: 'MODEL_DEPRECATED', fallbackModels: [...result.fallbackModels] };
    case 'no-eligible-provider':
      return { decisionId, refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: [...result.excludedBy] };
    case 'context-length-exceeded':
      return { decisionId, refusal: 'CONTEXT_LENGTH_EXCEEDED', contextLimit: result.contextLimit, ...(result.answerLimit === undefined ? {} : { answerLimit: result.answerLimit }), excludedBy: [...result.excludedBy] };
    case 'all-unhealthy':
      return { decisionId, refusal: 'ALL_UNHEALTHY', retryAfterMs: result.retryAfterMs };
    default:
      return unreachable(result);
  }
}
