/** Generates accounts, with and without caps, and requests of all kinds. */
import type { PriceCard__Output, PriceStep__Output } from '@signalbox/contracts/common';
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { Caller, ChatRequest } from '@signalbox/edge/proof';
import { asPrice } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, type PriceCard, type PriceStep } from '@signalbox/kernel/tokens';
import type { Random } from './random.js';

export interface Traffic {
  readonly requestId: string;
  readonly edge: number;
  readonly account: number;
  readonly stream: boolean;
  readonly maxTokens: number | undefined;
  readonly promptBytes: number;
  /** Indexes of the providers to try, in order. */
  readonly route: readonly number[];
  readonly leavesAfterMs: number | undefined;
  /** If it leaves, it was cut off by its edge, for example at the end of a drain. */
  readonly isCutOff: boolean;
  readonly slowAfterMs: number | undefined;
  readonly slowForMs: number;
  /** Plugins whose tools the model may call. */
  readonly plugins: PluginTerms | undefined;
  /** The request asks for JSON. */
  readonly wantsJson: boolean;
  /** Its Idempotency-Key. */
  readonly key?: string;
}

/** Behaviour and fees (nano-USD) of a request's plugins. */
export interface PluginTerms {
  /** Fee for preparing the request. */
  readonly feeNanoUsd: number;
  /** Fee for a call of the tool that spends money; up to twice as much is held for it. */
  readonly toolFeeNanoUsd: number;
  readonly toolFeeNanoUsdMax: number;
  readonly roundsMax: number;
}

export function trafficOf(number: number, random: Random): Traffic {
  const first = random.int(0, 1);
  const plugins = random.chance(0.25) ? pluginsOf(random) : undefined;
  return {
    requestId: `chatcmpl-${String(number).padStart(10, '0')}`,
    edge: random.int(0, 1),
    account: random.pick([0, 0, 0, 1, 1, 2, OWN_ACCOUNT, OWN_ACCOUNT, CHANGING_ACCOUNT, CHANGING_ACCOUNT]),
    stream: random.chance(0.65),
    maxTokens: random.chance(0.25) ? undefined : random.int(16, plugins === undefined ? 900 : 300),
    promptBytes: random.int(20, 900),
    route: [first, 1 - first, first].slice(0, random.pick([1, 2, 3, 3])),
    // Some leave before anything can have arrived.
    leavesAfterMs: random.chance(0.18) ? random.int(1, random.chance(0.3) ? 40 : 2_500) : undefined,
    isCutOff: random.chance(0.25),
    slowAfterMs: random.chance(0.08) ? random.int(1, 400) : undefined,
    slowForMs: random.chance(0.2) ? 90_000 : random.int(10, 3_000),
    plugins,
    wantsJson: random.chance(0.2),
  };
}

function pluginsOf(random: Random): PluginTerms {
  const toolFeeNanoUsd = random.int(1, 3_000_000);
  return { feeNanoUsd: random.chance(0.5) ? random.int(1, 600_000) : 0, toolFeeNanoUsd, toolFeeNanoUsdMax: random.int(toolFeeNanoUsd, 2 * toolFeeNanoUsd), roundsMax: random.int(1, 3) };
}

/** Streams and gathered answers of one account near its cap, which outgrow their first holds. */
export function longTrafficOf(number: number, random: Random): Traffic {
  return { ...trafficOf(number, random), account: LONG_ACCOUNT, stream: random.chance(0.8), maxTokens: random.chance(0.6) ? undefined : random.int(1_100, 6_000), leavesAfterMs: random.chance(0.08) ? random.int(500, 6_000) : undefined };
}

/** Requests in rounds that are running when their edge stops, most of them with answers that are not streamed. */
export function roundsTrafficOf(number: number, edge: number, random: Random): Traffic {
  return { ...trafficOf(number, random), edge, stream: random.chance(0.3), route: [0, 0], leavesAfterMs: undefined, plugins: { ...pluginsOf(random), roundsMax: 3 } };
}

/** About a thousandth of a USD per thousand tokens; some providers charge a fee per request. */
function cardOf(provider: string, random: Random): PriceCard__Output {
  const input = random.int(200, 2_000) * 1_000_000 + random.int(0, 999_999);
  const output = random.int(1_000, 9_000) * 1_000_000 + random.int(0, 999_999);
  return {
    id: `card_${provider}`, inputUncached: String(input), cacheRead: String(Math.floor(input / 2)), cacheWrite: String(input), outputText: String(output), outputReasoning: String(output),
    audio: '0', image: '0', requestNanoUsd: random.chance(0.2) ? String(random.int(1, 5_000)) : '0',
  };
}

/** Price step in prompt tokens. For some prompts the estimate and the reported count are on the same side of it, for some not. */
const STEP_TOKENS = 150;

/** Provider alpha is more expensive from a step on; beta has a single price card. */
export function pricesOf(provider: string, random: Random): readonly PriceStep[] {
  const card = priceCardOf(cardOf(provider, random));
  const first = { fromPromptTokens: 0, card };
  if (provider !== 'alpha') return [first];
  const twice = (price: PriceCard['outputText']): PriceCard['outputText'] => asPrice(price * 2n);
  return [first, { fromPromptTokens: STEP_TOKENS, card: { ...card, id: `${card.id}_long`, inputUncached: twice(card.inputUncached), cacheRead: twice(card.cacheRead), cacheWrite: twice(card.cacheWrite), outputText: twice(card.outputText), outputReasoning: twice(card.outputReasoning) } }];
}

const messageOf = (card: PriceCard): PriceCard__Output => ({
  id: card.id, inputUncached: String(card.inputUncached), cacheRead: String(card.cacheRead), cacheWrite: String(card.cacheWrite), outputText: String(card.outputText),
  outputReasoning: String(card.outputReasoning), audio: String(card.audio), image: String(card.image), requestNanoUsd: String(card.requestNanoUsd),
});

/** The account with long answers. */
const LONG_ACCOUNT = 3;
/** The account with its own provider credentials. */
const OWN_ACCOUNT = 4;
/** The account on trial credit or on a paid tier, which changes while its requests run. */
const CHANGING_ACCOUNT = 5;
export const ACCOUNTS = [0, 1, 2, LONG_ACCOUNT, OWN_ACCOUNT, CHANGING_ACCOUNT] as const;
/** Accounts whose terms may change. */
export const CHANGEABLE = [0, OWN_ACCOUNT, CHANGING_ACCOUNT, CHANGING_ACCOUNT] as const;
/** Accounts that may have no limits at first, and some later. */
export const UNLIMITED_ACCOUNTS = [2, OWN_ACCOUNT] as const;

/** Accounts that are limited only in amounts, so that edges take advances for them. */
export const CROWDED_ACCOUNTS = [0, 1, 2, LONG_ACCOUNT] as const;

/** Accounts with a low limit. */
export const LIMITED_ACCOUNTS = [0, 1, LONG_ACCOUNT] as const;

type Terms = Pick<Caller['account'], 'tier' | 'hardCap' | 'providerKeys' | 'includedTokens' | 'trialCreditNanoUsd' | 'byokTokens' | 'requestsPerMinute' | 'burstPerSecond'>;

const PAID: Terms = { tier: 'business', hardCap: false, providerKeys: [] };

export const handleAt = (provider: string): string => `own_${provider}`;

/** Limits in tokens: a hard allotment, and one for own credentials. */
function termsOf(index: number, random: Random): Terms {
  const allotment = (): Pick<Terms, 'hardCap' | 'includedTokens'> => ({ hardCap: random.chance(0.7), includedTokens: String(random.int(1_500, 12_000)) });
  if (index === OWN_ACCOUNT) {
    const providerKeys = ['alpha', 'beta'].map((provider) => ({ handle: handleAt(provider), accountId: `acct_${index}`, provider, last4: '', zdr: false, baseUrl: '', createdAt: '1' }));
    return { ...PAID, providerKeys, ...(random.chance(0.5) ? allotment() : {}), ...(random.chance(0.7) ? { byokTokens: String(random.int(1_500, 12_000)) } : {}) };
  }
  if (index !== CHANGING_ACCOUNT) return { ...PAID, tier: 'enterprise' };
  const rates = { requestsPerMinute: 100_000, burstPerSecond: 10_000 };
  return { ...PAID, ...rates, ...(random.chance(0.5) ? allotment() : {}), ...(random.chance(0.6) ? { tier: 'free', trialCreditNanoUsd: String(random.int(1_000_000, 25_000_000)) } : {}) };
}

/**
 * Account 0 has a cap; account 1 another one, and a key with a cap; account 2 none; account 3 a cap of a few tranches; account 4
 * a cap that its requests must never reach, and a token limit; account 5 trial credit or a cap, and a token limit.
 */
export function callerOf(index: number, random: Random): Caller {
  const terms = termsOf(index, random);
  const cap = (): string => String(index === LONG_ACCOUNT ? random.int(8_000_000, 60_000_000) : random.int(1_000_000, 25_000_000));
  const costCaps = index === 2 || terms.trialCreditNanoUsd !== undefined ? [] : [{ period: 'total', capNanoUsd: cap() }];
  return {
    variant: 'A',
    account: {
      id: `acct_${index}`, name: 'simulated', variant: '', suspended: false, costCaps, baselineModel: '', policyBaselineModel: '', storeAnswers: false, allowModels: [], denyModels: [], allowProviders: [],
      denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: '1', policyCostCaps: [], policyHardCap: false, ...terms,
    },
    key: {
      id: `key_${index}`, accountId: `acct_${index}`, name: 'simulated', prefix: 'sbx_live_abcd', status: 'active', scopes: ['inference'], createdAt: '1',
      limits: index === 1 ? { costCaps: [{ capNanoUsd: cap(), period: 'total' }], costCapPeriod: '', allowedModels: [] } : null,
    },
  };
}

/** The same account without limits. */
export function withoutLimits({ account, ...caller }: Caller): Caller {
  const { includedTokens: _included, byokTokens: _own, trialCreditNanoUsd: _credit, ...rest } = account;
  return { ...caller, account: { ...rest, hardCap: false, costCaps: [] } };
}

/** The same account with a limit in tokens; some paying accounts also get one in money. */
export function withLimits({ account, ...caller }: Caller, random: Random): Caller {
  const tokens = String(random.int(1_500, 6_000));
  if (account.providerKeys.length > 0 && random.chance(0.5)) return { ...caller, account: { ...account, byokTokens: tokens } };
  const costCaps = random.chance(0.3) ? [{ period: 'total', capNanoUsd: String(random.int(1_000_000, 25_000_000)) }] : [];
  return { ...caller, account: { ...account, costCaps, hardCap: true, includedTokens: tokens } };
}

export function planOf({ route, promptBytes }: Traffic, { account }: Caller, providers: readonly { readonly name: string; readonly prices: readonly PriceStep[] }[]): DecideResponse__Output {
  const attempts = route.flatMap((position): PlannedAttempt__Output[] => {
    const { name: provider = '', prices = [] } = providers[position] ?? {};
    const card = cardFor(prices, promptTokensOf(promptBytes));
    if (card === undefined) return [];
    const steps = prices.length > 1 ? prices.map((step): PriceStep__Output => ({ fromPromptTokens: step.fromPromptTokens, card: messageOf(step.card) })) : [];
    return [
      {
        endpointId: `${provider}/m`, provider, model: 'maker/m', providerModelId: 'm', wireProtocol: 'openai-chat', card: messageOf(card), maxTokensParam: 'max_tokens', maxOutputTokens: 8_192,
        contextWindow: 0, dropParams: [], hiddenReasoning: false, temperatureMax: 0, reasoningEffort: '', firstByteTimeoutMs: 10_000, wholeTimeoutMs: 0, sunsetDate: '', byok: account.providerKeys.length > 0, modelAliases: [], steps,
      },
    ];
  });
  return { refusal: 'REFUSAL_UNSPECIFIED', excludedBy: [], attempts, referenceCard: null, decisionId: 'dec_1', fallbackModels: [], unsetProviders: [], absentProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], ignoredParams: [], untakenParams: [], contextLimit: 0, referenceSteps: [], explanationJson: Buffer.alloc(0), reuse: null };
}

const promptTokensOf = (promptBytes: number): number => Math.ceil(promptBytes / 4);

export function requestOf({ stream, maxTokens, promptBytes, plugins, wantsJson }: Traffic): ChatRequest {
  const format = wantsJson ? [{ name: 'response_format', value: Buffer.from('{"type":"json_object"}') }] : [];
  return {
    model: 'auto', models: [], stream, includeUsage: false, maxTokens, choices: 1,
    fields: [{ name: 'messages', value: Buffer.from(JSON.stringify([{ role: 'user', content: 'p'.repeat(promptBytes) }])) }, ...format],
    needs: wantsJson ? { responseFormat: 'json_object' } : {}, messageCount: 1, imageCount: 0, calledToolBytes: 0, promptBytes, inlineImageBytes: 0, inlineSoundBytes: 0, soundTokensMax: 0, promptTokens: promptTokensOf(promptBytes), mediaTokens: 0, hasUnboundedParts: false, dataCollection: '', zdr: false, preferredMaxLatency: undefined,
    preferredMinThroughput: undefined, minQuantization: '', maxQuantization: '', provider: undefined, pluginIds: plugins === undefined ? [] : ['web-search'], pluginOptions: {}, user: undefined, ignoredParams: [],
    session: 'c',
    promptText: '',
  };
}
