/** Reasoning: effort to the wire's settings, thinking blocks out to the client and back. */
import type { JsonObject } from '../canonical.js';
import type { Turn } from '../chat-turns.js';
import { joinReasoningDetails } from '../reasoning-details.js';
import type { ClaudeTraits } from './claude.js';

/** Names whose blocks these are: blocks of another maker's model are never sent here, nor these elsewhere. */
export type ThoughtFormat = 'anthropic-claude-v1' | 'minimax-v1';
export const CLAUDE_THOUGHT: ThoughtFormat = 'anthropic-claude-v1';
const BUDGET_MIN = 1_024;
const BUDGET_MAX = 32_000;
/** Part of the token limit that may be thought away. */
const BUDGET_SHARES: Readonly<Record<string, number>> = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.9, max: 0.95 };

export interface ThinkingSettings {
  /** `thinking` of the body; undefined = the model's own default. */
  readonly thinking: JsonObject | undefined;
  /** `output_config.effort`. */
  readonly effort: string | undefined;
  /** The model will or may think. */
  readonly isThinking: boolean;
}

export interface ThinkingQuestion {
  /** Empty = not told. */
  readonly effort: string;
  readonly maxTokens: number;
  /** The model must call a tool. */
  readonly isToolForced: boolean;
  readonly turns: readonly Turn[];
}

/** `reasoning_details` of a thinking block: none without a signature, since the provider takes it back only with one. */
export function thinkingDetails(text: string, signature: string, index: number, format: ThoughtFormat): readonly JsonObject[] {
  return signature === '' ? [] : [{ type: 'reasoning.text', text, signature, format, index }];
}

/** `reasoning_details` item of a block that only the provider can read. */
export function redactedDetail(data: string, index: number, format: ThoughtFormat): JsonObject {
  return { type: 'reasoning.encrypted', data, format, index };
}

/** Thinking blocks of an earlier turn; those of another format stay out. Other hosts stream a block in pieces, which a client may send back as they came. */
export function thinkingBlocks(message: JsonObject, format: ThoughtFormat): readonly JsonObject[] {
  const details = message['reasoning_details'];
  if (!Array.isArray(details)) return [];
  return joinReasoningDetails(details).flatMap((detail): readonly JsonObject[] => {
    if (detail['format'] !== format) return [];
    if (detail['type'] === 'reasoning.encrypted' && typeof detail['data'] === 'string') return [{ type: 'redacted_thinking', data: detail['data'] }];
    const { text = '', signature } = detail;
    if (detail['type'] !== 'reasoning.text' || typeof text !== 'string' || typeof signature !== 'string' || signature === '') return [];
    return [{ type: 'thinking', thinking: text, signature }];
  });
}

/** Where the turn that is going on begins: behind the user's last words. Results of calls belong to it. */
export function openTurnFrom(turns: readonly Turn[]): number {
  return turns.findLastIndex((turn) => turn.role === 'user') + 1;
}

/**
 * The turn that is going on called a tool and did not begin with thinking: with a budget set, which only Claude has, the
 * provider would refuse to go on. It thinks once at the beginning; calls behind the first results come without.
 */
function lacksThinking(turns: readonly Turn[]): boolean {
  const said = turns.slice(openTurnFrom(turns)).filter((turn) => turn.role === 'assistant').filter(({ text, calls }) => text.trim() !== '' || calls.length > 0);
  const [first] = said;
  return first !== undefined && said.some(({ calls }) => calls.length > 0) && thinkingBlocks(first.message, CLAUDE_THOUGHT).length === 0;
}

function budgetOf(effort: string, maxTokens: number): number | undefined {
  const share = Object.hasOwn(BUDGET_SHARES, effort) ? BUDGET_SHARES[effort] : undefined;
  if (share === undefined) return undefined;
  const budget = Math.max(BUDGET_MIN, Math.min(BUDGET_MAX, Math.floor(maxTokens * share)));
  return budget < maxTokens ? budget : undefined;
}

/** `low` for `minimal`, the next lower for what the model lacks; undefined for words that say nothing. */
function effortOf(effort: string, known: readonly string[]): string | undefined {
  const word = effort === 'minimal' ? 'low' : effort === 'xhigh' && !known.includes(effort) ? 'high' : effort;
  return known.includes(word) ? word : undefined;
}

/** Without it the provider takes no `block_binding`. */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';
/** Thinking that does not fit to what stands before it is left out instead of refused: a client may have changed the system's words since, and a turn's thinking goes back in front of all its text. */
const DROPS_UNFIT: JsonObject = { block_binding: { prefix_mismatch_behavior: 'drop_block' } };

/** How the thinking of earlier turns goes back. */
export interface BoundThinking {
  /** `thinking` of the body. */
  readonly thinking: JsonObject | undefined;
  /** Whose blocks are sent; undefined = none are. */
  readonly thoughtFormat: ThoughtFormat | undefined;
  readonly betas: readonly string[];
}

/** A model that binds its thinking is told to leave out what does not fit. Where it is told not to think there is no word for that, so none is sent. */
export function boundThinking({ thinking }: ThinkingSettings, { bindsThinking }: ClaudeTraits, format: ThoughtFormat, turns: readonly Turn[]): BoundThinking {
  const isBound = bindsThinking && turns.some((turn) => turn.role === 'assistant' && thinkingBlocks(turn.message, format).length > 0);
  if (!isBound) return { thinking, thoughtFormat: format, betas: [] };
  if (thinking !== undefined && thinking['type'] !== 'adaptive') return { thinking, thoughtFormat: undefined, betas: [] };
  return { thinking: { type: 'adaptive', ...thinking, ...DROPS_UNFIT }, thoughtFormat: format, betas: [BINDING_BETA] };
}

/** The budget is part of the token limit: what is thought was asked for with it. */
export function thinkingSettings(traits: ClaudeTraits, { effort, maxTokens, isToolForced, turns }: ThinkingQuestion): ThinkingSettings {
  const { thinksByDefault, stopsThinkingBy } = traits;
  const off: ThinkingSettings = { thinking: thinksByDefault && stopsThinkingBy !== undefined ? { type: stopsThinkingBy } : undefined, effort: undefined, isThinking: thinksByDefault && stopsThinkingBy === undefined };
  if (isToolForced && traits.isThinkingExclusive) return off;
  if (effort === 'none') return off.isThinking ? { ...off, effort: 'low' } : off;
  const asDefault: ThinkingSettings = { thinking: undefined, effort: undefined, isThinking: thinksByDefault };
  switch (traits.thinking) {
    case 'none':
      return asDefault;
    case 'adaptive': {
      const known = effortOf(effort, traits.efforts);
      return known === undefined ? asDefault : { thinking: { type: 'adaptive', ...(traits.hidesThinking ? { display: 'summarized' } : {}) }, effort: known, isThinking: true };
    }
    case 'budget': {
      const budget = lacksThinking(turns) ? undefined : budgetOf(effort, maxTokens);
      return budget === undefined ? asDefault : { thinking: { type: 'enabled', budget_tokens: budget }, effort: undefined, isThinking: true };
    }
  }
}
