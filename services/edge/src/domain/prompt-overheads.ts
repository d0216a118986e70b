/** Bounds of the tokens that a provider and its protocol add to a prompt, beyond those of the client's bytes. */
import type { ChatRequest } from './chat-request.js';

/** Instructions that a provider puts before a prompt with tools; the highest documented number is 530. */
const TOOLS_TOKENS_MAX = 600;
/** Bytes of a tool's definition without its name: a schema of any object. */
const DEFINITION_BYTES = 48;
/** Wires that express a JSON Schema as a tool that must be called, for models that take no schema. */
const FORCED_TOOL_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);
/** Wires on which the tools that earlier turns called must be defined, though the request names none. */
const CALLED_TOOLS_WIRES: ReadonlySet<string> = new Set(['anthropic-messages']);
/** Most tokens of one image of any size, at the most expensive setting. */
const IMAGE_TOKENS_MAX: Readonly<Record<string, number>> = {
  anthropic: 5_000,
  mistral: 5_000,
  xai: 2_000,
};
/** For other providers: small models of OpenAI count an image as 48,169 tokens, and none is known to count more. */
const UNKNOWN_IMAGE_TOKENS_MAX = 50_000;

/** Bytes of the definitions that are made for tools called in earlier turns, whose parameters are not known; 0 = none. */
export function calledToolBytes(names: ReadonlySet<string> | undefined): number {
  let bytes = 0;
  for (const name of names ?? []) bytes += DEFINITION_BYTES + Buffer.byteLength(JSON.stringify(name));
  return bytes;
}

export type PromptFacts = Pick<ChatRequest, 'needs' | 'imageCount' | 'calledToolBytes'>;

/** Tokens for a request with tools, or one to which a wire adds tools: the provider's instructions and the added definitions. */
function toolTokensMax(attempts: readonly { readonly wireProtocol: string }[], { needs, calledToolBytes: called }: PromptFacts): number {
  if (needs.tools === true) return TOOLS_TOKENS_MAX;
  const goesTo = (wires: ReadonlySet<string>): boolean => attempts.some(({ wireProtocol }) => wires.has(wireProtocol));
  const defined = called > 0 && goesTo(CALLED_TOOLS_WIRES) ? called : 0;
  return defined > 0 || (needs.responseFormat === 'json_schema' && goesTo(FORCED_TOOL_WIRES)) ? TOOLS_TOKENS_MAX + defined : 0;
}

/** The most tokens that the wire and provider of any attempt add. A JSON format that is passed on as text adds no more tokens than it has bytes in the request, which are counted already. */
export function overheadTokensMax(attempts: readonly { readonly provider: string; readonly wireProtocol: string }[], facts: PromptFacts): number {
  const tools = toolTokensMax(attempts, facts);
  const { imageCount } = facts;
  if (imageCount === 0) return tools;
  const image = attempts.reduce((most, { provider }) => Math.max(most, Object.hasOwn(IMAGE_TOKENS_MAX, provider) ? (IMAGE_TOKENS_MAX[provider] ?? 0) : UNKNOWN_IMAGE_TOKENS_MAX), 0);
  return tools + imageCount * image;
}
