/** A chat-completion request after validation: what routing, admission and dispatch need to know of it. */
import type { Needs, ProviderPreferences } from '@signalbox/contracts/routing';

export interface ForwardedField {
  readonly name: string;
  /** JSON text as the client sent it. */
  readonly value: Buffer;
}

export interface ChatRequest {
  readonly model: string;
  /** Fallback list. */
  readonly models: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly maxTokens: number | undefined;
  /** The name that it was sent under; absent = it was not. */
  readonly maxTokensParam?: string | undefined;
  /** `n`, at least 1. */
  readonly choices: number;
  /** Allow-listed fields that are present, as sent; never model, stream, stream_options, token limits or routing fields. */
  readonly fields: readonly ForwardedField[];
  /** `tool_choice` and `parallel_tool_calls` of a request without tools: they go with those that its plugins offer, if any. */
  readonly waitingToolFields?: readonly ForwardedField[];
  readonly needs: Needs;
  /** Names the first id of what lies at a provider under a credential, such as an uploaded file; absent = there is none. */
  readonly storedParam?: string | undefined;
  readonly messageCount: number;
  readonly imageCount: number;
  /** Of the definitions of tools that earlier turns called; 0 = none was called. */
  readonly calledToolBytes: number;
  /** Bytes that become prompt: messages, each `\u` escape as the character that it stands for, tools, response_format. */
  readonly promptBytes: number;
  /** What the prompt probably is in tokens: for routing and estimates, never a bound. */
  readonly promptTokens: number;
  /** Those of them that are a guess for images, sound and files. */
  readonly mediaTokens: number;
  /** Files: neither their bytes nor anything else bounds their tokens. */
  readonly hasUnboundedParts: boolean;
  readonly dataCollection: '' | 'allow' | 'deny';
  readonly zdr: boolean;
  /** Milliseconds, P75. */
  readonly preferredMaxLatency: number | undefined;
  /** Tokens a second, P50. */
  readonly preferredMinThroughput: number | undefined;
  readonly minQuantization: string;
  readonly maxQuantization: string;
  readonly provider: ProviderPreferences | undefined;
  readonly pluginIds: readonly string[];
  readonly pluginOptions: Readonly<Record<string, unknown>>;
  readonly user: string | undefined;
  /** Unknown top-level fields: ignored, not forwarded, named in a header. */
  readonly ignoredParams: readonly string[];
  /** What routing knows the conversation by; neither its words nor the client's id of it can be read from it. */
  readonly session: string;
  /** Where the choice of a model is left to us: what it is chosen by (8,192 characters at most). Empty otherwise. Never stored. */
  readonly promptText: string;
}
