/** What a model on Bedrock takes beyond what Converse has for all, told by its id. */
import { claudeTraits, type ClaudeTraits } from '../anthropic-messages/claude.js';

export interface BedrockModel {
  /** undefined for models of other makers. */
  readonly claude: ClaudeTraits | undefined;
  /** How the model is told how much to think. */
  readonly reasoning: 'claude' | 'nova' | 'effort' | 'none';
  /** Makes the model call a given tool; `any`: only one of all that it is shown. */
  readonly forcedTool: 'named' | 'any' | 'unknown';
  /** Behind what the prompt may be cached: `words` is all but tools, calls and results (Nova refuses points there). */
  readonly cachePoints: 'all' | 'words' | 'none';
  /** Words and calls, and words and results, are refused in one message: a template of the model's has turns of their own for them. */
  readonly keepsToolsApart: boolean;
  readonly isOpenAi: boolean;
}

/** Of inference profiles: where the model runs. */
const GEOGRAPHY = /^(?:global|us-gov|us|eu|apac|jp|au|ca)\./;

/** ARNs of an account's own making: their last part says nothing of a model. */
const OPAQUE = /^arn:[^/]*:(?:application-inference-profile|provisioned-model)\//;
/** Authors of the catalog as Bedrock writes them, where it has another word. */
const MAKERS: Readonly<Record<string, string>> = { mistralai: 'mistral', 'x-ai': 'xai' };

function nameOf(id: string, model: string): string {
  const [author = '', ...rest] = model.split('/');
  if (OPAQUE.test(id) && rest.length > 0) return `${MAKERS[author] ?? author}.${rest.join('/')}`;
  return (id.split('/').at(-1) ?? id).replace(GEOGRAPHY, '');
}

/** `id` of a model or inference profile; an ARN's last part counts, or where that is a name of an account's own `model`, the catalog's id. */
export function bedrockModel(id: string, model = ''): BedrockModel {
  const name = nameOf(id, model);
  const none: BedrockModel = { claude: undefined, reasoning: 'none', forcedTool: 'unknown', cachePoints: 'none', keepsToolsApart: /^(?:meta|mistral)\./.test(name), isOpenAi: name.startsWith('openai.') };
  if (name.startsWith('anthropic.')) return { ...none, claude: claudeTraits(name), reasoning: 'claude', forcedTool: 'named', cachePoints: 'all' };
  if (name.startsWith('amazon.nova')) return { ...none, reasoning: name.startsWith('amazon.nova-2') ? 'nova' : 'none', forcedTool: 'named', cachePoints: 'words' };
  if (name.startsWith('mistral.')) return { ...none, forcedTool: 'any' };
  return none.isOpenAi || name.startsWith('xai.') ? { ...none, reasoning: 'effort' } : none;
}
