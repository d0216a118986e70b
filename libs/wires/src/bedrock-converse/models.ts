/** What a model on Bedrock takes beyond what Converse has for all, told by its id. */
import { claudeTraits, type ClaudeTraits } from '../anthropic-messages/claude.js';

export interface BedrockModel {
  /** undefined for models of other makers. */
  readonly claude: ClaudeTraits | undefined;
  /** How the model is told how much to think. */
  readonly reasoning: 'claude' | 'nova' | 'effort' | 'none';
  /** Makes the model call a given tool; `any`: only one of all that it is shown. */
  readonly forcedTool: 'named' | 'any' | 'unknown';
  readonly takesCachePoints: boolean;
  readonly isOpenAi: boolean;
}

/** Of inference profiles: where the model runs. */
const GEOGRAPHY = /^(?:global|us-gov|us|eu|apac|jp|au|ca)\./;

/** `id` of a model or inference profile; an ARN's last part counts. */
export function bedrockModel(id: string): BedrockModel {
  const name = (id.split('/').at(-1) ?? id).replace(GEOGRAPHY, '');
  const none: BedrockModel = { claude: undefined, reasoning: 'none', forcedTool: 'unknown', takesCachePoints: false, isOpenAi: name.startsWith('openai.') };
  if (name.startsWith('anthropic.')) return { ...none, claude: claudeTraits(name), reasoning: 'claude', forcedTool: 'named', takesCachePoints: true };
  if (name.startsWith('amazon.nova')) return { ...none, reasoning: name.startsWith('amazon.nova-2') ? 'nova' : 'none', forcedTool: 'named', takesCachePoints: true };
  if (name.startsWith('mistral.')) return { ...none, forcedTool: 'any' };
  return none.isOpenAi || name.startsWith('xai.') ? { ...none, reasoning: 'effort' } : none;
}
