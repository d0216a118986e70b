/** Reasoning: effort to each maker's setting, thought of earlier turns back to the model that had it. */
import { boundThinking, CLAUDE_THOUGHT, thinkingBlocks, thinkingSettings } from '../anthropic-messages/thinking.js';
import type { JsonObject } from '../canonical.js';
import type { Chat } from '../chat-request.js';
import type { BedrockModel } from './models.js';

export interface Reasoning {
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /** Of Claude: it will or may think. */
  readonly isThinking: boolean;
  /** The model may be sent what it thought in earlier turns. */
  readonly takesThought: boolean;
  /** The model will or may think in a way that fixes its sampling. */
  readonly isExclusive: boolean;
  /** Tokens that the answer may have where the client sets no limit; undefined = the model's own default. */
  readonly maxTokens: number | undefined;
}

const NOVA_EFFORTS: Readonly<Record<string, string>> = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'high', max: 'high' };

const NONE = { isThinking: false, takesThought: false, isExclusive: false, maxTokens: undefined } as const;

/** At its highest effort Nova takes no limit; the client's holds. */
function novaFields(effort: string, isLimited: boolean): JsonObject {
  if (effort === 'none') return { reasoningConfig: { type: 'disabled' } };
  const known = NOVA_EFFORTS[effort];
  return known === undefined ? {} : { reasoningConfig: { type: 'enabled', maxReasoningEffort: known === 'high' && isLimited ? 'medium' : known } };
}

/** `maxTokens`: what the answer may have, told or known. */
export function reasoningOf(chat: Chat, model: BedrockModel, maxTokens: number, isLimited: boolean, isToolForced: boolean): Reasoning {
  const { reasoningEffort: effort, turns } = chat;
  switch (model.reasoning) {
    case 'none':
      return { ...NONE, fields: {} };
    case 'effort':
      return { ...NONE, fields: effort === '' ? {} : { reasoning_effort: effort } };
    case 'nova': {
      const fields = effort === '' ? {} : novaFields(effort, isLimited);
      return { ...NONE, fields, isExclusive: effort !== '' && effort !== 'none' };
    }
    case 'claude': {
      if (model.claude === undefined) return { ...NONE, fields: {} };
      const told = thinkingSettings(model.claude, { effort, maxTokens, isToolForced, turns });
      const { thinking, thoughtFormat, betas } = boundThinking(told, model.claude, CLAUDE_THOUGHT, turns);
      const fields = { ...(thinking === undefined ? {} : { thinking }), ...(told.effort === undefined ? {} : { output_config: { effort: told.effort } }), ...(betas.length === 0 ? {} : { anthropic_beta: betas }) };
      return { fields, isThinking: told.isThinking, takesThought: thoughtFormat !== undefined, isExclusive: told.isThinking && model.claude.isThinkingExclusive, maxTokens: told.thinking === undefined ? undefined : maxTokens };
    }
  }
}

/** Blocks of Claude's thought in an earlier turn; those of other providers stay out. */
export function thoughtBlocks(message: JsonObject): readonly object[] {
  return thinkingBlocks(message, CLAUDE_THOUGHT).map(({ type, data, thinking, signature }) => ({ reasoningContent: type === 'redacted_thinking' ? { redactedContent: data } : { reasoningText: { text: thinking, signature } } }));
}
