/** Tokens that a provider adds to a prompt beside those of the bytes sent (BILLING, section 4). */

/** Instructions that a provider puts before a prompt with tools: 530 is the most that any documents. */
const TOOLS_TOKENS_MAX = 600;
/** What a single image counts as at most, whatever its bytes, at the most expensive setting. */
const IMAGE_TOKENS_MAX: Readonly<Record<string, number>> = {
  anthropic: 5_000,
  mistral: 5_000,
  xai: 2_000,
};
/** Where it is not known: small models of OpenAI count an image as 48,169 tokens, and no provider is known to count more. */
const UNKNOWN_IMAGE_TOKENS_MAX = 50_000;

/** The most that the provider of any attempt adds. */
export function overheadTokensMax(attempts: readonly { readonly provider: string }[], hasTools: boolean, imageCount: number): number {
  const tools = hasTools ? TOOLS_TOKENS_MAX : 0;
  if (imageCount === 0) return tools;
  const image = attempts.reduce((most, { provider }) => Math.max(most, Object.hasOwn(IMAGE_TOKENS_MAX, provider) ? (IMAGE_TOKENS_MAX[provider] ?? 0) : UNKNOWN_IMAGE_TOKENS_MAX), 0);
  return tools + imageCount * image;
}
