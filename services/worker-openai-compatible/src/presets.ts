/** Hosts that speak the OpenAI chat wire: one row each. Ids, addresses and variables are those of the catalog. */
import { hasCredential } from '@signalbox/worker-kit/config';
import { FROM_GPT_5_6, HYBRID_QWEN, NO_QUIRKS, type ChatQuirks } from '@signalbox/wires/openai-chat/quirks';

export interface Preset {
  /** Empty: the host has no fixed address, so `baseUrlVariable` must be set. */
  readonly baseUrl: string;
  /** Variables that may hold the credential; the first one that is set counts. */
  readonly credentials: readonly string[];
  readonly baseUrlVariable: string;
  /** The host works without a credential. */
  readonly isCredentialOptional?: boolean;
  readonly quirks: ChatQuirks;
}

const HOST: ChatQuirks = { ...NO_QUIRKS, developerAsSystem: true };
/** Hosts of open models, some of which continue their reasoning only if they are sent their earlier reasoning. */
const OPEN_HOST: ChatQuirks = { ...HOST, thoughtFields: ['reasoning', 'reasoning_content'], joinsTexts: true };
/** Hosts that miss a model's earlier thought unless it comes under this name. */
const THINKING_HOST: ChatQuirks = { ...OPEN_HOST, thoughtFields: ['reasoning_content'], thoughtName: 'reasoning_content' };
/** By OpenRouter's names: models whose makers answer 400 without earlier thoughts. */
const WANTING_THOUGHTS = /^(?:deepseek\/deepseek-v4|moonshotai\/kimi-k2\.[56])/;
/** Parameters of OpenAI's own platform that strict hosts refuse. */
const PLATFORM = ['service_tier', 'metadata', 'verbosity', 'modalities'];
const LOGPROBS = ['logprobs', 'top_logprobs'];
const PENALTIES = ['presence_penalty', 'frequency_penalty', 'logit_bias'];

export const PRESETS = {
  // Thinking has a switch and a budget in tokens, but no effort. The first models that have it refuse it without streaming.
  alibaba: { baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1', credentials: ['DASHSCOPE_API_KEY'], baseUrlVariable: 'DASHSCOPE_BASE_URL', quirks: { ...OPEN_HOST, thinking: 'budget', thinksInStreams: HYBRID_QWEN, takesCacheMarks: true, dropFields: [...PLATFORM, 'logit_bias', 'frequency_penalty', 'user'] } },
  baseten: { baseUrl: 'https://inference.baseten.co/v1', credentials: ['BASETEN_API_KEY'], baseUrlVariable: 'BASETEN_BASE_URL', quirks: OPEN_HOST },
  // Answers 400 to each of these, and to fields of messages that it does not know, `reasoning_content` among them.
  cerebras: {
    baseUrl: 'https://api.cerebras.ai/v1',
    credentials: ['CEREBRAS_API_KEY'],
    baseUrlVariable: 'CEREBRAS_BASE_URL',
    quirks: { ...HOST, thoughtFields: ['reasoning'], thoughtName: 'reasoning', joinsTexts: true, messageFields: ['role', 'content', 'name', 'reasoning', 'tool_calls', 'tool_call_id'], dropFields: [...PENALTIES, ...PLATFORM] },
  },
  deepinfra: { baseUrl: 'https://api.deepinfra.com/v1/openai', credentials: ['DEEPINFRA_API_KEY', 'DEEPINFRA_TOKEN'], baseUrlVariable: 'DEEPINFRA_BASE_URL', quirks: { ...OPEN_HOST, takesCacheKey: true } },
  // Thinks by default, and then answers 400 to a forced call, and if thoughts of a turn with calls do not come back. All its models can be told not to.
  deepseek: { baseUrl: 'https://api.deepseek.com/v1', credentials: ['DEEPSEEK_API_KEY'], baseUrlVariable: 'DEEPSEEK_BASE_URL', quirks: { ...THINKING_HOST, thinking: 'switch', stilled: { models: /^deepseek/, by: 'thinking', withoutThoughts: 'turns', forForcedCalls: true } } },
  // Answers 400 to a field of a message that is not one of these, such as the empty `annotations` of OpenAI's SDK.
  fireworks: {
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    credentials: ['FIREWORKS_API_KEY'],
    baseUrlVariable: 'FIREWORKS_BASE_URL',
    quirks: { ...THINKING_HOST, messageFields: ['role', 'content', 'name', 'reasoning_content', 'tool_calls', 'tool_call_id'] },
  },
  // Answers 400 to a `name` in a message, to fields it does not know, and to thoughts where the model has none.
  groq: {
    baseUrl: 'https://api.groq.com/openai/v1',
    credentials: ['GROQ_API_KEY'],
    baseUrlVariable: 'GROQ_BASE_URL',
    quirks: { ...HOST, thoughtFields: ['reasoning'], joinsTexts: true, thoughtModels: /^(?:openai\/gpt-oss|qwen\/qwen3)/, messageFields: ['role', 'content', 'reasoning', 'tool_calls', 'tool_call_id'], dropFields: [...LOGPROBS, 'logit_bias', 'metadata', 'verbosity', 'modalities'] },
  },
  meta: { baseUrl: '', credentials: ['META_API_KEY'], baseUrlVariable: 'META_BASE_URL', quirks: HOST },
  // Reports usage unasked. Refuses unknown fields in bodies and messages, a `name` of a message that is no tool's result, ids of tool calls in another form than its own, a user message right after tool results, and assistant messages that are empty or the last.
  mistral: {
    baseUrl: 'https://api.mistral.ai/v1',
    credentials: ['MISTRAL_API_KEY'],
    baseUrlVariable: 'MISTRAL_BASE_URL',
    quirks: {
      ...HOST,
      noStreamOptions: true,
      renameFields: { seed: 'random_seed' },
      toolChoice: 'any',
      shortToolCallIds: true,
      answersResults: true,
      leavesOutMute: true,
      endsWithUser: true,
      filePart: 'document_url',
      messageFields: ['role', 'content', 'tool_calls', 'tool_call_id'],
      namesResults: true,
      dropFields: [...PLATFORM, ...LOGPROBS, 'logit_bias', 'user'],
    },
  },
  // Does not fetch images from URLs, and refuses empty messages of the assistant. Answers 400 to `thinking` beside `reasoning_effort`; efforts are for K3, which always thinks, and the switch is for the others. Wants thoughts of calls back.
  moonshot: {
    baseUrl: 'https://api.moonshot.ai/v1',
    credentials: ['MOONSHOT_API_KEY'],
    baseUrlVariable: 'MOONSHOT_BASE_URL',
    quirks: { ...THINKING_HOST, thinking: 'switch-alone', leavesOutMute: true, effortModels: /^kimi-k3/, stilled: { models: /^kimi-k2\.[56]/, by: 'thinking', withoutThoughts: 'calls', forForcedCalls: false }, inlinesImages: true, dropFields: PLATFORM },
  },
  nebius: { baseUrl: 'https://api.tokenfactory.nebius.com/v1', credentials: ['NEBIUS_API_KEY'], baseUrlVariable: 'NEBIUS_BASE_URL', quirks: OPEN_HOST },
  novita: { baseUrl: 'https://api.novita.ai/openai/v1', credentials: ['NOVITA_API_KEY'], baseUrlVariable: 'NOVITA_BASE_URL', quirks: OPEN_HOST },
  // Data policy and price depend on the host that it picks. Routing therefore sends it no requests with privacy preferences, and it reports what it charges with the usage. It passes on that DeepSeek and Moonshot answer 400 without earlier thoughts, and DeepSeek to a forced call of a model that thinks.
  openrouter: {
    baseUrl: 'https://openrouter.ai/api/v1',
    credentials: ['OPENROUTER_API_KEY'],
    baseUrlVariable: 'OPENROUTER_BASE_URL',
    quirks: {
      ...HOST,
      takesCacheMarks: true,
      takesCacheKey: true,
      breakpointModels: FROM_GPT_5_6,
      tellsCost: true,
      shortensPrompts: true,
      thoughtFields: ['reasoning', 'reasoning_content', 'reasoning_details'],
      thoughtName: 'reasoning_content',
      thoughtNameModels: WANTING_THOUGHTS,
      stilled: { models: WANTING_THOUGHTS, by: 'reasoning', withoutThoughts: 'turns', forForcedCalls: true },
    },
  },
  // An answer engine over web search: no tools, roles must alternate, no sampling parameters beyond temperature and top_p, usage unasked.
  perplexity: {
    baseUrl: 'https://api.perplexity.ai',
    credentials: ['PERPLEXITY_API_KEY'],
    baseUrlVariable: 'PERPLEXITY_BASE_URL',
    quirks: { ...HOST, noStreamOptions: true, alternates: true, messageFields: ['role', 'content'], dropFields: [...PLATFORM, ...LOGPROBS, 'logit_bias', 'stop', 'seed', 'n', 'user', 'tools', 'tool_choice', 'parallel_tool_calls'] },
  },
  // Takes logprobs as a number, and returns them in a different form.
  together: { baseUrl: 'https://api.together.xyz/v1', credentials: ['TOGETHER_API_KEY'], baseUrlVariable: 'TOGETHER_BASE_URL', quirks: { ...OPEN_HOST, dropFields: LOGPROBS } },
  // Would fetch image URLs from inside the operator's network.
  vllm: { baseUrl: 'http://localhost:8000/v1', credentials: ['VLLM_API_KEY'], baseUrlVariable: 'VLLM_BASE_URL', isCredentialOptional: true, quirks: { ...OPEN_HOST, inlinesImages: true } },
  // Answers 400 to penalties and, for reasoning models, to `stop`, which routing leaves out.
  xai: { baseUrl: 'https://api.x.ai/v1', credentials: ['XAI_API_KEY'], baseUrlVariable: 'XAI_BASE_URL', quirks: { ...HOST, dropFields: [...PLATFORM, ...PENALTIES] } },
  // Wants thoughts of calls back, as Moonshot.
  xiaomi: { baseUrl: 'https://api.xiaomimimo.com/v1', credentials: ['XIAOMI_API_KEY'], baseUrlVariable: 'XIAOMI_BASE_URL', quirks: { ...THINKING_HOST, thinking: 'switch', stilled: { models: /^mimo/, by: 'thinking', withoutThoughts: 'calls', forForcedCalls: false }, dropFields: [...PLATFORM, ...LOGPROBS, 'logit_bias'] } },
  // Supports only `auto` or no tools as tool choice, and one stop sequence; reports usage unasked.
  zai: {
    baseUrl: 'https://api.z.ai/api/paas/v4',
    credentials: ['ZAI_API_KEY', 'ZHIPU_API_KEY'],
    baseUrlVariable: 'ZAI_BASE_URL',
    quirks: { ...OPEN_HOST, noStreamOptions: true, toolChoice: 'auto-only', thinking: 'switch', stopMax: 1, renameFields: { user: 'user_id' }, dropFields: [...PLATFORM, ...LOGPROBS, ...PENALTIES, 'seed', 'n', 'parallel_tool_calls'] },
  },
} as const satisfies Record<string, Preset>;

export type PresetId = keyof typeof PRESETS;

export function isPresetId(text: string): text is PresetId {
  return Object.hasOwn(PRESETS, text);
}

export function presetOf(id: PresetId): Preset {
  return PRESETS[id];
}

/** Whether the environment has all that the host needs: its credential or, for hosts that need none, its address. */
export function isConfigured(preset: Preset, environment: Readonly<Record<string, string | undefined>>): boolean {
  const isSet = (name: string): boolean => (environment[name] ?? '') !== '';
  if (preset.baseUrl === '' && !isSet(preset.baseUrlVariable)) return false;
  return preset.credentials.some((name) => hasCredential(environment[name])) || (preset.isCredentialOptional === true && isSet(preset.baseUrlVariable));
}
