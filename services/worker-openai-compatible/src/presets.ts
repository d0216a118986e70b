/** Hosts that speak the OpenAI chat wire: one row each. Ids, addresses and variables are those of the catalog. */
import { NO_QUIRKS, type ChatQuirks } from '@signalbox/wires/openai-chat/request';

export interface Preset {
  readonly baseUrl: string;
  /** Variables of the credential, the first one set counts. */
  readonly credentials: readonly string[];
  readonly baseUrlVariable: string;
  /** The host works without a credential. */
  readonly isCredentialOptional?: boolean;
  readonly quirks: ChatQuirks;
}

const HOST: ChatQuirks = { ...NO_QUIRKS, developerAsSystem: true };

export const PRESETS = {
  groq: { baseUrl: 'https://api.groq.com/openai/v1', credentials: ['GROQ_API_KEY'], baseUrlVariable: 'GROQ_BASE_URL', quirks: { ...HOST, dropFields: ['logprobs', 'top_logprobs', 'logit_bias'] } },
  // Mistral tells usage unasked and refuses unknown fields.
  mistral: {
    baseUrl: 'https://api.mistral.ai/v1',
    credentials: ['MISTRAL_API_KEY'],
    baseUrlVariable: 'MISTRAL_BASE_URL',
    quirks: { ...HOST, noStreamOptions: true, renameFields: { seed: 'random_seed' }, requiredToolChoice: 'any', dropFields: ['user', 'logprobs', 'top_logprobs', 'logit_bias', 'service_tier', 'modalities', 'verbosity'] },
  },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1', credentials: ['DEEPSEEK_API_KEY'], baseUrlVariable: 'DEEPSEEK_BASE_URL', quirks: HOST },
  together: { baseUrl: 'https://api.together.xyz/v1', credentials: ['TOGETHER_API_KEY'], baseUrlVariable: 'TOGETHER_BASE_URL', quirks: HOST },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1', credentials: ['FIREWORKS_API_KEY'], baseUrlVariable: 'FIREWORKS_BASE_URL', quirks: HOST },
  xai: { baseUrl: 'https://api.x.ai/v1', credentials: ['XAI_API_KEY'], baseUrlVariable: 'XAI_BASE_URL', quirks: HOST },
  deepinfra: { baseUrl: 'https://api.deepinfra.com/v1/openai', credentials: ['DEEPINFRA_API_KEY', 'DEEPINFRA_TOKEN'], baseUrlVariable: 'DEEPINFRA_BASE_URL', quirks: HOST },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', credentials: ['CEREBRAS_API_KEY'], baseUrlVariable: 'CEREBRAS_BASE_URL', quirks: HOST },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', credentials: ['OPENROUTER_API_KEY'], baseUrlVariable: 'OPENROUTER_BASE_URL', quirks: HOST },
  perplexity: { baseUrl: 'https://api.perplexity.ai', credentials: ['PERPLEXITY_API_KEY'], baseUrlVariable: 'PERPLEXITY_BASE_URL', quirks: HOST },
  vllm: { baseUrl: 'http://localhost:8000/v1', credentials: ['VLLM_API_KEY'], baseUrlVariable: 'VLLM_BASE_URL', isCredentialOptional: true, quirks: HOST },
} as const satisfies Record<string, Preset>;

export type PresetId = keyof typeof PRESETS;

export function isPresetId(text: string): text is PresetId {
  return Object.hasOwn(PRESETS, text);
}

export function presetOf(id: PresetId): Preset {
  return PRESETS[id];
}
