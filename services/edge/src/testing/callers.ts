/** Callers, plans and requests for tests of edge. */
import type { Account__Output, Key__Output } from '@signalbox/contracts/accounts';
import type { PriceCard__Output } from '@signalbox/contracts/common';
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { ChatRequest } from '../domain/chat-request.js';
import type { Caller } from '../domain/ports.js';

export function keyWith(over: Partial<Key__Output> = {}): Key__Output {
  return { id: 'key_1', accountId: 'acct_1', name: 'test', prefix: 'sbx_live_abcd', status: 'active', scopes: ['inference', 'models:read', 'keys'], createdAt: '1', limits: null, ...over };
}

export function accountWith(over: Partial<Account__Output> = {}): Account__Output {
  return {
    id: 'acct_1',
    name: 'test',
    tier: 'team',
    variant: '',
    suspended: false,
    hardCap: false,
    costCaps: [],
    baselineModel: '',
    policyBaselineModel: '',
    storeAnswers: false,
    allowModels: [],
    denyModels: [],
    allowProviders: [],
    denyProviders: [],
    routingMode: '',
    billingAnchorDay: 0,
    createdAt: '1',
    policyCostCaps: [],
    policyHardCap: false,
    providerKeys: [],
    ...over,
  };
}

/** A caller of the tier Team, without caps. */
export function callerWith({ key = {}, account = {}, variant = 'A' }: { readonly key?: Partial<Key__Output>; readonly account?: Partial<Account__Output>; readonly variant?: 'A' | 'B' } = {}): Caller {
  return { key: keyWith(key), account: accountWith(account), variant };
}

/** 1 USD a million tokens in, 2 USD out. */
export function cardWith(over: Partial<PriceCard__Output> = {}): PriceCard__Output {
  return { id: 'card_1', inputUncached: '1000000000', cacheRead: '500000000', cacheWrite: '1000000000', outputText: '2000000000', outputReasoning: '2000000000', audio: '0', image: '0', requestNanoUsd: '0', ...over };
}

export function plannedAt(provider: string, over: Partial<PlannedAttempt__Output> = {}): PlannedAttempt__Output {
  return {
    endpointId: `${provider}/m`,
    provider,
    model: 'maker/m',
    providerModelId: 'm',
    wireProtocol: 'openai-chat',
    card: cardWith(),
    maxTokensParam: 'max_tokens',
    maxOutputTokens: 8_192,
    contextWindow: 0,
    dropParams: [],
    hiddenReasoning: false,
    temperatureMax: 0,
    reasoningEffort: '',
    firstByteTimeoutMs: 10_000, wholeTimeoutMs: 0, sunsetDate: '',
    byok: false,
    steps: [],
    modelAliases: [],
    ...over,
  };
}

export function planWith(attempts: readonly PlannedAttempt__Output[], over: Partial<DecideResponse__Output> = {}): DecideResponse__Output {
  return { refusal: 'REFUSAL_UNSPECIFIED', excludedBy: [], attempts: [...attempts], referenceCard: null, decisionId: 'dec_1', fallbackModels: [], unsetProviders: [], absentProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], ignoredParams: [], untakenParams: [], contextLimit: 0, referenceSteps: [], explanationJson: Buffer.alloc(0), reuse: null, ...over };
}

export function requestWith(over: Partial<ChatRequest> = {}): ChatRequest {
  return {
    model: 'auto',
    models: [],
    stream: false,
    includeUsage: false,
    maxTokens: undefined,
    choices: 1,
    fields: [{ name: 'messages', value: Buffer.from('[]') }],
    needs: {},
    messageCount: 1,
    imageCount: 0,
    calledToolBytes: 0,
    promptBytes: 400,
    inlineImageBytes: 0,
    inlineSoundBytes: 0,
    soundTokensMax: 0,
    promptTokens: 100,
    mediaTokens: 0,
    hasUnboundedParts: false,
    dataCollection: '',
    zdr: false,
    preferredMaxLatency: undefined,
    preferredMinThroughput: undefined,
    minQuantization: '',
    maxQuantization: '',
    provider: undefined,
    pluginIds: [],
    pluginOptions: {},
    user: undefined,
    ignoredParams: [],
    session: 'c',
    promptText: '',
    ...over,
  };
}
