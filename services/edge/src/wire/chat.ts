/** The body of a non-streamed answer, and the objects that it shares with the stream: `usage` and `x_router`. */
import { formatUsdJson } from '@signalbox/kernel/money';
import { completionTokens, promptTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import { joinBytes } from './bytes.js';
import { renderJson, type JsonValue } from './json-text.js';

export interface UsageFigures {
  readonly tokens: TokenCounts;
  /** The provider reported how many tokens came from its cache. */
  readonly cachedKnown: boolean;
  /** The provider reported how many output tokens were reasoning. */
  readonly reasoningKnown: boolean;
}

export interface RouterFigures {
  /** Catalog id of the provider that answered. */
  readonly provider: string;
  /** Nano-USD. */
  readonly costNanoUsd: bigint;
  /** Nano-USD; negative savings are shown as 0. */
  readonly savingsNanoUsd: bigint;
  /** The model id that the client sent. */
  readonly routedFrom: string;
}

/** JSON text of `usage`; a detail appears only if the provider reported it. */
export function renderUsage({ tokens, cachedKnown, reasoningKnown }: UsageFigures): string {
  const prompt = promptTokens(tokens);
  const completion = completionTokens(tokens);
  const cached = cachedKnown ? `,"prompt_tokens_details":{"cached_tokens":${tokens.cacheRead}}` : '';
  const reasoning = reasoningKnown ? `,"completion_tokens_details":{"reasoning_tokens":${tokens.outputReasoning}}` : '';
  return `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}${cached}${reasoning}}`;
}

/** JSON text of `x_router`: exactly four fields, with amounts in exact US dollars. */
export function renderRouter({ provider, costNanoUsd, savingsNanoUsd, routedFrom }: RouterFigures): string {
  const savings = savingsNanoUsd > 0n ? savingsNanoUsd : 0n;
  return `{"provider":${JSON.stringify(provider)},"cost_usd":${formatUsdJson(costNanoUsd)},"savings_usd":${formatUsdJson(savings)},"routed_from":${JSON.stringify(routedFrom)}}`;
}

export interface Completion {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** Catalog id of the model that answered. */
  readonly model: string;
  /** JSON array text. */
  readonly choices: Uint8Array;
  readonly usage: UsageFigures;
  /** Absent in variant B. */
  readonly xRouter?: RouterFigures | undefined;
  /** '' or absent = the provider sent none. */
  readonly systemFingerprint?: string | undefined;
  readonly serviceTier?: string | undefined;
  /** Only when the client asked for it. */
  readonly routerMetadata?: JsonValue | undefined;
}

/** The whole body; `choices` is inserted unchanged. */
export function renderCompletion(completion: Completion): Buffer {
  const { id, created, model, choices, usage, xRouter, systemFingerprint = '', serviceTier = '', routerMetadata } = completion;
  const head = `{"id":${JSON.stringify(id)},"object":"chat.completion","created":${created},"model":${JSON.stringify(model)},"choices":`;
  const tail =
    `,"usage":${renderUsage(usage)}` +
    (serviceTier === '' ? '' : `,"service_tier":${JSON.stringify(serviceTier)}`) +
    (systemFingerprint === '' ? '' : `,"system_fingerprint":${JSON.stringify(systemFingerprint)}`) +
    (xRouter === undefined ? '' : `,"x_router":${renderRouter(xRouter)}`) +
    (routerMetadata === undefined ? '' : `,"router_metadata":${renderJson(routerMetadata)}`) +
    '}';
  return joinBytes(head, choices, tail);
}
