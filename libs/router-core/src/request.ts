/** The input of a decision. */

/** What the request body requires of an endpoint. */
export interface Needs {
  readonly tools: boolean;
  readonly forcedToolChoice: boolean;
  readonly parallelToolCalls: boolean;
  readonly responseFormat: '' | 'json_object' | 'json_schema';
  readonly vision: boolean;
  readonly fileInput: boolean;
  readonly audioInput: boolean;
  readonly streaming: boolean;
  readonly logprobs: boolean;
  /** `n`; 0 and 1 are the same. */
  readonly choices: number;
  /** Optional fields present in the body, by contract name. */
  readonly params: readonly string[];
  /** The body refers to something stored at a provider under a credential, such as an uploaded file: only the account's own may be used. Absent in older records. */
  readonly ownCredential?: boolean;
}

export interface ProviderWishes {
  readonly order: readonly string[];
  /** Empty = all. */
  readonly only: readonly string[];
  readonly ignore: readonly string[];
  readonly allowFallbacks: boolean;
  readonly requireParameters: boolean;
  readonly sort: '' | 'price' | 'throughput' | 'latency';
  /** Nano-USD per 1M tokens. */
  readonly maxPricePrompt: bigint | undefined;
  /** Nano-USD per 1M tokens. */
  readonly maxPriceCompletion: bigint | undefined;
}

export interface RouteRequest {
  /** Model id, bare id, alias, `auto` or `router-auto`. */
  readonly model: string;
  /** Tried in order after `model`. */
  readonly models: readonly string[];
  readonly needs: Needs;
  /** Estimate. */
  readonly promptTokens: number;
  /** The fewest that the prompt can be, whatever the tokenizer; undefined = the estimate. */
  readonly promptTokensMin: number | undefined;
  readonly maxTokens: number | undefined;
  readonly denyDataCollection: boolean;
  readonly zdr: boolean;
  /** Milliseconds, P75. */
  readonly preferredMaxLatency: number | undefined;
  /** Tokens per second, P50. */
  readonly preferredMinThroughput: number | undefined;
  readonly minQuantization: string;
  readonly maxQuantization: string;
  readonly provider: ProviderWishes;
  /** Ids, aliases, bare ids, or a prefix with a final `*`; empty = all. */
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly mode: '' | 'quality' | 'balanced' | 'economy';
  /** λ: predicted quality given up per USD saved, at least 0; replaces `mode`. Undefined = by `mode`. */
  readonly costWeight: number | undefined;
  readonly baselineModel: string;
  /** Requests of one session make the same random draws; empty = none. */
  readonly session: string;
  /** Providers for which the account has its own credential, which is then used there. */
  readonly byokProviders: readonly string[];
  /** Those of `byokProviders` with which the account itself has a zero-retention agreement. */
  readonly byokZdrProviders: readonly string[];
  /** Those of `byokProviders` whose credential has its own address: the catalog's policy of the provider does not apply there. */
  readonly byokOwnAddressProviders: readonly string[];
  /** Text that `auto` evaluates: the last user turn and a window of the rest, at most 8 KB. Empty = abilities decide. */
  readonly promptText: string;
  /** The endpoint that served the conversation's last turn; undefined = none, or unknown. */
  readonly held: HeldConversation | undefined;
  /** Nano-USD that this request may spend beyond the best choice on trying another model; undefined = no exploration. */
  readonly explorationRoomNanoUsd: number | undefined;
}

/** The endpoint that served a conversation last, where its prompt cache is probably still warm. */
export interface HeldConversation {
  readonly endpointId: string;
  /** Tokens of this prompt that the endpoint has probably cached. */
  readonly cachedTokens: number;
}

export const NO_NEEDS: Needs = { tools: false, forcedToolChoice: false, parallelToolCalls: false, responseFormat: '', vision: false, fileInput: false, audioInput: false, streaming: false, logprobs: false, choices: 1, params: [] };
export const NO_WISHES: ProviderWishes = { order: [], only: [], ignore: [], allowFallbacks: true, requireParameters: false, sort: '', maxPricePrompt: undefined, maxPriceCompletion: undefined };

/** A request for a model with all other fields at their defaults. */
export function plainRequest(model: string): RouteRequest {
  return {
    model, models: [], needs: NO_NEEDS, promptTokens: 0, promptTokensMin: undefined, maxTokens: undefined, denyDataCollection: false, zdr: false,
    preferredMaxLatency: undefined, preferredMinThroughput: undefined, minQuantization: '', maxQuantization: '', provider: NO_WISHES,
    allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], mode: '', costWeight: undefined, baselineModel: '', session: '', byokProviders: [], byokZdrProviders: [], byokOwnAddressProviders: [],
    promptText: '', held: undefined, explorationRoomNanoUsd: undefined,
  };
}

/** True for the names that leave the choice of the model to the gateway, in either contract variant. */
export { isAutoModelId as isAuto } from '@signalbox/kernel/model-lists';
