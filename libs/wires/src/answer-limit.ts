/** How long an answer may be whose client sets no limit, for wires that ask for one. In tokens. */

export interface AnswerBounds {
  /** The model's own limit. 0 = unknown. */
  readonly maxOutputTokens: number;
  /** Prompt and answer together. 0 or undefined = unknown. */
  readonly contextWindow?: number | undefined;
  /** Estimate. */
  readonly promptTokens?: number | undefined;
}

/** Limit for a model whose own is unknown. */
const MAX_TOKENS_DEFAULT = 8_192;
/** By what the estimate is too low for code, and for tokenizers of 2026: it counts four bytes a token. */
const ESTIMATE_LACKS = 0.25;
/** Part of the window that an answer is given at least: the estimate may be too high as well, and an answer that is cut in vain is no better than a refusal. */
const ROOM_SHARE_MIN = 1 / 16;

/** The model's own limit, or what the prompt leaves of its window: hosts refuse a limit beyond that, and say that the prompt is too long. At least 1. */
export function answerLimit({ maxOutputTokens, contextWindow = 0, promptTokens = 0 }: AnswerBounds): number {
  const own = maxOutputTokens || MAX_TOKENS_DEFAULT;
  if (contextWindow === 0) return own;
  const room = Math.max(contextWindow - Math.ceil(promptTokens * (1 + ESTIMATE_LACKS)), Math.floor(contextWindow * ROOM_SHARE_MIN), 1);
  return Math.min(own, room);
}
