/** Tokens that a wire and its provider add to a prompt beside those of the client's bytes (BILLING, section 4). */
import type { ChatRequest } from './chat-request.js';

/** Instructions that a provider puts before a prompt with tools: 530 is the most that any documents. */
const TOOLS_TOKENS_MAX = 600;
/** Of a tool's definition without its name: a schema of any object. */
const DEFINITION_BYTES = 48;
/** Wires that have a JSON Schema met by a tool which must be called, where the model takes no schema. */
const FORCED_TOOL_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);
/** Wires on which the tools that earlier turns called must be defined, though the request names none. */
const CALLED_TOOLS_WIRES: ReadonlySet<string> = new Set(['anthropic-messages']);
/** What a single image counts as at most, whatever its bytes, at the most expensive setting. */
const IMAGE_TOKENS_MAX: Readonly<Record<string, number>> = {
  anthropic: 5_000,
  mistral: 5_000,
  xai: 2_000,
};
/** Where it is not known: small models of OpenAI count an image as 48,169 tokens, and no provider is known to count more. */
const UNKNOWN_IMAGE_TOKENS_MAX = 50_000;

/** Bytes of the definitions of called tools, whose parameters nobody knows any more; 0 = none. */
export function calledToolBytes(names: ReadonlySet<string> | undefined): number {
  let bytes = 0;
  for (const name of names ?? []) bytes += DEFINITION_BYTES + Buffer.byteLength(JSON.stringify(name));
  return bytes;
}

export type PromptFacts = Pick<ChatRequest, 'needs' | 'imageCount' | 'calledToolBytes'>;

/** Instructions of a request with tools, or of one that goes out with tools of ours, and the definitions of these. */
function toolTokensMax(attempts: readonly { readonly wireProtocol: string }[], { needs, calledToolBytes: called }: PromptFacts): number {
  if (needs.tools === true) return TOOLS_TOKENS_MAX;
  const goesTo = (wires: ReadonlySet<string>): boolean => attempts.some(({ wireProtocol }) => wires.has(wireProtocol));
  const defined = called > 0 && goesTo(CALLED_TOOLS_WIRES) ? called : 0;
  return defined > 0 || (needs.responseFormat === 'json_schema' && goesTo(FORCED_TOOL_WIRES)) ? TOOLS_TOKENS_MAX + defined : 0;
}

/** The most that wire and provider of any attempt add. A JSON format asked for in words adds no more tokens than it has bytes in the request. */
export function overheadTokensMax(attempts: readonly { readonly provider: string; readonly wireProtocol: string }[], facts: PromptFacts): number {
  const tools = toolTokensMax(attempts, facts);
  const { imageCount } = facts;
  if (imageCount === 0) return tools;
  const image = attempts.reduce((most, { provider }) => Math.max(most, Object.hasOwn(IMAGE_TOKENS_MAX, provider) ? (IMAGE_TOKENS_MAX[provider] ?? 0) : UNKNOWN_IMAGE_TOKENS_MAX), 0);
  return tools + imageCount * image;
}
