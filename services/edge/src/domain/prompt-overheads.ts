/** Bounds of the tokens that a provider and its protocol add to a prompt, beyond those of the client's bytes. */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
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
/** Providers that count images as OpenAI documents it. */
const OPENAI_COUNTERS: ReadonlySet<string> = new Set(['openai', 'azure']);
/**
 * The same by model, where OpenAI's guide to images tells it: at most eight tiles of 512 pixels at 140 to 170 tokens, with 70 to 85
 * for the whole, or 1,536 patches of 32 pixels, each 1 to 2.46 tokens. GPT-4o mini counts a tile as 5,667. Newer models may be asked
 * for images in full size.
 */
const OPENAI_IMAGE_TOKENS_MAX: Readonly<Record<string, number>> = {
  'openai/gpt-4-turbo': 2_000,
  'openai/gpt-4o': 2_000,
  'openai/gpt-4.1': 2_000,
  'openai/gpt-4.1-mini': 4_000,
  'openai/gpt-4.1-nano': 4_000,
  'openai/gpt-5': 2_000,
  'openai/gpt-5-mini': 4_000,
  'openai/gpt-5-nano': 4_000,
  'openai/o1': 2_000,
  'openai/o3': 2_000,
  'openai/o4-mini': 4_000,
};
/** For all others: GPT-4o mini counts an image as 48,169 tokens, and none is known to count more. */
const UNKNOWN_IMAGE_TOKENS_MAX = 50_000;

/** Bytes of the definitions that are made for tools called in earlier turns, whose parameters are not known; 0 = none. */
export function calledToolBytes(names: ReadonlySet<string> | undefined): number {
  let bytes = 0;
  for (const name of names ?? []) bytes += DEFINITION_BYTES + Buffer.byteLength(JSON.stringify(name));
  return bytes;
}

/** What the bounds depend on of an attempt; `model` is the catalog's id. */
type Target = Pick<PlannedAttempt__Output, 'provider' | 'model' | 'wireProtocol'>;

export type PromptFacts = Pick<ChatRequest, 'needs' | 'imageCount' | 'calledToolBytes'>;

/** Tokens for a request with tools, or one to which a wire adds tools: the provider's instructions and the added definitions. */
function toolTokensMax(attempts: readonly Target[], { needs, calledToolBytes: called }: PromptFacts): number {
  if (needs.tools === true) return TOOLS_TOKENS_MAX;
  const goesTo = (wires: ReadonlySet<string>): boolean => attempts.some(({ wireProtocol }) => wires.has(wireProtocol));
  const defined = called > 0 && goesTo(CALLED_TOOLS_WIRES) ? called : 0;
  return defined > 0 || (needs.responseFormat === 'json_schema' && goesTo(FORCED_TOOL_WIRES)) ? TOOLS_TOKENS_MAX + defined : 0;
}

function imageTokensMax({ provider, model }: Target): number {
  const [bounds, name] = OPENAI_COUNTERS.has(provider) ? [OPENAI_IMAGE_TOKENS_MAX, model] : [IMAGE_TOKENS_MAX, provider];
  return (Object.hasOwn(bounds, name) ? bounds[name] : undefined) ?? UNKNOWN_IMAGE_TOKENS_MAX;
}

/** The most tokens that the wire and provider of any attempt add. A JSON format that is passed on as text adds no more tokens than it has bytes in the request, which are counted already. */
export function overheadTokensMax(attempts: readonly Target[], facts: PromptFacts): number {
  const tools = toolTokensMax(attempts, facts);
  const { imageCount } = facts;
  if (imageCount === 0) return tools;
  return tools + imageCount * attempts.reduce((most, target) => Math.max(most, imageTokensMax(target)), 0);
}
