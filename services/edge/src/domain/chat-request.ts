/** A validated chat-completion request: what routing, admission and dispatch need to know. */
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
  /** The field that set `maxTokens`; absent = none. */
  readonly maxTokensParam?: string | undefined;
  /** `n`, at least 1. */
  readonly choices: number;
  /** Allow-listed fields that are present, as sent; never model, stream, stream_options, token limits or routing fields. */
  readonly fields: readonly ForwardedField[];
  /** `tool_choice` and `parallel_tool_calls` of a request without tools: sent only if its plugins offer tools. */
  readonly waitingToolFields?: readonly ForwardedField[];
  readonly needs: Needs;
  /** Path of the first field with an id of something stored at a provider under a credential, such as an uploaded file; absent = none. */
  readonly storedParam?: string | undefined;
  readonly messageCount: number;
  readonly imageCount: number;
  /** Bytes of the definitions of tools that earlier turns called; 0 = none was called. */
  readonly calledToolBytes: number;
  /** Bytes that become prompt: messages, each `\u` escape as the character that it stands for, tools, response_format. */
  readonly promptBytes: number;
  /** The part of `promptBytes` that is images: they are bounded by their number (prompt-overheads.ts), and their bytes are no text. */
  readonly inlineImageBytes: number;
  /** The part of `promptBytes` that is sound of a known length, whose bytes are no text either, and the most tokens that it counts as. */
  readonly inlineSoundBytes: number;
  readonly soundTokensMax: number;
  /** Estimated tokens of the prompt, for routing and estimates; not a bound. */
  readonly promptTokens: number;
  /** The part of `promptTokens` guessed for images, sound and files. */
  readonly mediaTokens: number;
  /** The request has files: nothing bounds their tokens, not even their bytes. */
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
  /** Unknown top-level fields: not forwarded, and named in a header. */
  readonly ignoredParams: readonly string[];
  /** A digest by which routing recognizes the conversation; neither its text nor the client's id can be read from it. */
  readonly session: string;
  /** Text by which `auto` chooses the model, at most 8,192 characters; empty for other models. Never stored. */
  readonly promptText: string;
}
