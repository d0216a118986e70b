/** Tuning fields that an endpoint does not accept: they are dropped, and named in the answer. Fields that change the meaning are never dropped. */
import { BLANK_STOP, CRAMPED_EFFORT, PERSONAL_USER, SECOND_SAMPLING, SECOND_STOP, SINGLE_CALLS, THINKING_SAMPLING, WHOLE_EFFORT, WIDE_PENALTIES } from '@signalbox/kernel/param-names';
import { claudeTraits, TEMPERATURE_MAX } from '@signalbox/wires/anthropic-messages/claude';
import { bedrockModel } from '@signalbox/wires/bedrock-converse/models';
import { thinkingOf } from '@signalbox/wires/google-generate-content/thinking';
import { HYBRID_QWEN } from '@signalbox/wires/openai-chat/quirks';
import { NO_SINGLE_CALLS_PROVIDERS, ONE_STOP_PROVIDERS } from '../../host-limits.js';
import type { EndpointRow, ModelRow, ProviderRow } from './schema.js';

/** Refused together by models with fixed sampling. */
const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias'] as const;
/** Fields that exist only in one maker's API. */
const MAKER_ONLY = ['service_tier', 'verbosity', 'modalities'] as const;
/** These models answer 400 to `verbosity`. */
const BEFORE_GPT_5 = /^openai\/(?:gpt-[34]|gpt-oss|o\d)/;
/** These models answer 400 to `parallel_tool_calls`, whatever its value. */
const O_SERIES = /^openai\/o\d/;
/** xAI's reasoning models answer 400 to `stop`. Penalties are listed in the catalog, since none of xAI's models accepts them. */
const REASONING_GROK = /^grok-(?!.*non-reasoning)/;
/** Wires that send `reasoning_effort` unchanged; the others translate each value. */
const EFFORT_WIRES: ReadonlySet<string> = new Set(['openai-chat', 'azure-openai', 'mistral']);
/** Hosts that refuse no effort: for Alibaba it becomes a number of tokens, OpenRouter picks the nearest itself. */
const NEAREST_EFFORT_PROVIDERS: ReadonlySet<string> = new Set(['alibaba', 'openrouter']);
/** Its models choose their own effort; some can be told not to think (quirks of its wire). */
const NO_EFFORTS_PROVIDER = 'minimax';
/** Fields that a wire cannot express. */
const WIRE_LACKS: Readonly<Record<string, readonly string[]>> = {
  'anthropic-messages': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', BLANK_STOP, PERSONAL_USER],
  'bedrock-converse': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', 'user', BLANK_STOP],
  'cohere-v2': ['logit_bias', 'top_logprobs', 'user', SINGLE_CALLS, ...Object.values(WIDE_PENALTIES)],
  'google-generate-content': ['logit_bias', 'user', SINGLE_CALLS],
  mistral: ['logit_bias', 'user'],
  ollama: ['logit_bias', 'user', SINGLE_CALLS],
};

const CLAUDE_MAKER = 'anthropic/';

/** Returns the contract names of the fields to drop. If support is unknown, `seed` is dropped; `stop` and sampling are sent, except to OpenAI's reasoning models. */
export function unsupportedParams(model: ModelRow, endpoint: EndpointRow, provider: ProviderRow): ReadonlySet<string> {
  const lacks = new Set<string>();
  const can = model.capabilities;
  const fixesItsOwn = isReasoningOpenAi(model);
  if (!((endpoint.temperature_supported ?? can.temperature) ?? !fixesItsOwn)) for (const field of SAMPLING) lacks.add(field);
  if (can.seed !== true) lacks.add('seed');
  if (!(can.stop ?? !fixesItsOwn) || isReasoningGrok(model, endpoint)) lacks.add('stop');
  if (can.reasoning !== true || !canSetEffort(model, endpoint)) lacks.add('reasoning_effort');
  // `metadata` describes an answer that OpenAI stores (`store`), which the gateway never requests. Without `store` OpenAI answers 400, and no other host knows the field.
  lacks.add('metadata');
  for (const field of makerFieldsLeftOut(model, endpoint)) lacks.add(field);
  for (const field of WIRE_LACKS[endpoint.wire_protocol] ?? []) lacks.add(field);
  for (const field of provider.unsupported_params ?? []) lacks.add(field);
  if (ONE_STOP_PROVIDERS.has(endpoint.provider)) lacks.add(SECOND_STOP);
  if (NO_SINGLE_CALLS_PROVIDERS.has(endpoint.provider)) lacks.add(SINGLE_CALLS);
  if (endpoint.provider === 'alibaba' && HYBRID_QWEN.test(endpoint.provider_model_id)) lacks.add(WHOLE_EFFORT);
  for (const field of versionsLeaveOut(model, endpoint)) lacks.add(field);
  return lacks;
}

/** OpenAI's reasoning models have fixed sampling and accept no `stop`, on every host; this is assumed for models with unknown support too. Those with open weights differ. */
const isReasoningOpenAi = ({ owned_by: maker, open_weights: isOpen, capabilities }: ModelRow): boolean => maker === 'openai' && !isOpen && capabilities.reasoning === true;

const isReasoningGrok = ({ capabilities }: ModelRow, { provider, provider_model_id: name }: EndpointRow): boolean => provider === 'xai' && capabilities.reasoning === true && REASONING_GROK.test(name);

/** OpenAI's own fields that the endpoint does not accept; the simulator accepts all. */
function makerFieldsLeftOut({ id, owned_by: maker }: ModelRow, { provider }: EndpointRow): readonly string[] {
  if (provider === 'simulator') return [];
  if (!isOpenAi(maker, provider)) return MAKER_ONLY;
  return [...(BEFORE_GPT_5.test(id) ? ['verbosity'] : []), ...(O_SERIES.test(id) ? ['parallel_tool_calls'] : [])];
}

/** Accepted values of `reasoning_effort`: the host's list, else the model's. Empty if no value is refused, or if it is unknown which are. */
export function effortsOf({ id, capabilities }: ModelRow, endpoint: EndpointRow): readonly string[] {
  if (endpoint.provider === NO_EFFORTS_PROVIDER) return ['none'];
  return capabilities.reasoning === true && passesEffortOn(id, endpoint) ? (endpoint.reasoning_efforts ?? capabilities.reasoning_efforts ?? []) : [];
}

/** True if the wire can tell this model how much to think, by the wire's own knowledge of models. */
function canSetEffort({ id, capabilities }: ModelRow, { provider, wire_protocol: wire, provider_model_id: name }: EndpointRow): boolean {
  if (provider === NO_EFFORTS_PROVIDER) return capabilities.reasoning_mandatory !== true;
  if (wire === 'bedrock-converse') return bedrockModel(name, id).reasoning !== 'none';
  return wire !== 'google-generate-content' || thinkingOf('high', name) !== undefined;
}

/** True if the host is sent the client's value unchanged, and refuses values that it does not know. */
function passesEffortOn(model: string, { provider, wire_protocol: wire, provider_model_id: name }: EndpointRow): boolean {
  if (wire === 'bedrock-converse') return bedrockModel(name, model).reasoning === 'effort';
  return EFFORT_WIRES.has(wire) && !NEAREST_EFFORT_PROVIDERS.has(provider);
}

/** Azure also serves other makers' models, as those makers' hosts do. */
const isOpenAi = (maker: string, provider: string): boolean => provider === 'openai' || (provider === 'azure-openai' && maker === 'openai');

/** Highest temperature sent to the endpoint; 0 = no limit. */
export function temperatureMaxOf({ wire_protocol: wire }: EndpointRow, { temperature_max: told }: ProviderRow): number {
  return wire === 'anthropic-messages' ? Math.min(told ?? TEMPERATURE_MAX, TEMPERATURE_MAX) : (told ?? 0);
}

/** Fields that the wire leaves out for this version of a model, whatever the catalog says. */
function versionsLeaveOut(model: ModelRow, { wire_protocol: wire, provider_model_id: name }: EndpointRow): readonly string[] {
  const onBedrock = wire === 'bedrock-converse' ? bedrockModel(name, model.id) : undefined;
  const claude = onBedrock?.claude ?? (wire === 'anthropic-messages' && model.id.startsWith(CLAUDE_MAKER) ? claudeTraits(name, model.id) : undefined);
  if (claude === undefined) return onBedrock === undefined ? [] : [SINGLE_CALLS, ...(onBedrock.reasoning === 'nova' ? Object.values(THINKING_SAMPLING) : [])];
  if (!claude.takesSampling) return [...SAMPLING, SECOND_SAMPLING];
  return [...(claude.takesBothSampling ? [] : [SECOND_SAMPLING]), ...(claude.thinking === 'none' ? [] : Object.values(THINKING_SAMPLING)), ...(claude.thinking === 'budget' ? [CRAMPED_EFFORT] : [])];
}
