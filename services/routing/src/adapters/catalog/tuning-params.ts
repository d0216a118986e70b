/** Which tuning fields an endpoint does not take: they are dropped and named, never the fields that change the meaning. */
import { BLANK_STOP, CRAMPED_EFFORT, PERSONAL_USER, SECOND_SAMPLING, SECOND_STOP, SINGLE_CALLS, THINKING_SAMPLING, WHOLE_EFFORT, WIDE_PENALTIES } from '@signalbox/kernel/param-names';
import { claudeTraits, TEMPERATURE_MAX } from '@signalbox/wires/anthropic-messages/claude';
import { bedrockModel } from '@signalbox/wires/bedrock-converse/models';
import { thinkingOf } from '@signalbox/wires/google-generate-content/thinking';
import { HYBRID_QWEN } from '@signalbox/wires/openai-chat/quirks';
import { NO_SINGLE_CALLS_PROVIDERS, ONE_STOP_PROVIDERS } from '../../host-limits.js';
import type { EndpointRow, ModelRow, ProviderRow } from './schema.js';

/** Refused together by models that fix their own sampling (PROVIDERS, section 1.2). */
const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias'] as const;
/** Fields of one maker's API. */
const MAKER_ONLY = ['service_tier', 'verbosity', 'modalities'] as const;
/** They have no `verbosity`, and answer 400 to it. */
const BEFORE_GPT_5 = /^openai\/(?:gpt-[34]|gpt-oss|o\d)/;
/** They answer 400 to `parallel_tool_calls`, whatever it says. */
const O_SERIES = /^openai\/o\d/;
/** xAI's own: while they reason they answer 400 to `stop`; its penalties stand in the catalog, since none of its models takes them. */
const REASONING_GROK = /^grok-(?!.*non-reasoning)/;
/** Wires that send an effort to think as it was asked for; others have words of their own for each. */
const EFFORT_WIRES: ReadonlySet<string> = new Set(['openai-chat', 'azure-openai', 'mistral']);
/** Hosts that refuse no effort: Alibaba is told tokens instead, OpenRouter takes the nearest by itself. */
const NEAREST_EFFORT_PROVIDERS: ReadonlySet<string> = new Set(['alibaba', 'openrouter']);
/** Its models think as they see fit, or not at all where they can be stopped (quirks of its wire). */
const NO_EFFORTS_PROVIDER = 'minimax';
/** Fields that a wire has no words for. */
const WIRE_LACKS: Readonly<Record<string, readonly string[]>> = {
  'anthropic-messages': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', BLANK_STOP, PERSONAL_USER],
  'bedrock-converse': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', 'user', BLANK_STOP],
  'cohere-v2': ['logit_bias', 'top_logprobs', 'user', SINGLE_CALLS, ...Object.values(WIDE_PENALTIES)],
  'google-generate-content': ['logit_bias', 'user', SINGLE_CALLS],
  mistral: ['logit_bias', 'user'],
  ollama: ['logit_bias', 'user', SINGLE_CALLS],
};

const CLAUDE_MAKER = 'anthropic/';

/** Contract names of the fields to drop. An unknown `seed` is dropped; an unknown `stop` or sampling is sent, but to models of OpenAI's that reason. */
export function unsupportedParams(model: ModelRow, endpoint: EndpointRow, provider: ProviderRow): ReadonlySet<string> {
  const lacks = new Set<string>();
  const can = model.capabilities;
  const fixesItsOwn = isReasoningOpenAi(model);
  if (!((endpoint.temperature_supported ?? can.temperature) ?? !fixesItsOwn)) for (const field of SAMPLING) lacks.add(field);
  if (can.seed !== true) lacks.add('seed');
  if (!(can.stop ?? !fixesItsOwn) || isReasoningGrok(model, endpoint)) lacks.add('stop');
  if (can.reasoning !== true || !canSetEffort(model, endpoint)) lacks.add('reasoning_effort');
  // It describes an answer that OpenAI is to keep (`store`), which none is told from here: without that it answers 400, and nobody else has it.
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

/** Wherever they are served, all of them fix their own sampling and take no `stop`: one of which nothing is known is no other. Those with open weights are. */
const isReasoningOpenAi = ({ owned_by: maker, open_weights: isOpen, capabilities }: ModelRow): boolean => maker === 'openai' && !isOpen && capabilities.reasoning === true;

const isReasoningGrok = ({ capabilities }: ModelRow, { provider, provider_model_id: name }: EndpointRow): boolean => provider === 'xai' && capabilities.reasoning === true && REASONING_GROK.test(name);

/** Of OpenAI's own fields; the simulator takes them all. */
function makerFieldsLeftOut({ id, owned_by: maker }: ModelRow, { provider }: EndpointRow): readonly string[] {
  if (provider === 'simulator') return [];
  if (!isOpenAi(maker, provider)) return MAKER_ONLY;
  return [...(BEFORE_GPT_5.test(id) ? ['verbosity'] : []), ...(O_SERIES.test(id) ? ['parallel_tool_calls'] : [])];
}

/** Words for an effort to think: the host's, else its model's. Empty where others are not refused, or it is not known which are. */
export function effortsOf({ id, capabilities }: ModelRow, endpoint: EndpointRow): readonly string[] {
  if (endpoint.provider === NO_EFFORTS_PROVIDER) return ['none'];
  return capabilities.reasoning === true && passesEffortOn(id, endpoint) ? (endpoint.reasoning_efforts ?? capabilities.reasoning_efforts ?? []) : [];
}

/** By the wires' own knowledge of models: whether they have any words for how much one is to think. */
function canSetEffort({ id, capabilities }: ModelRow, { provider, wire_protocol: wire, provider_model_id: name }: EndpointRow): boolean {
  if (provider === NO_EFFORTS_PROVIDER) return capabilities.reasoning_mandatory !== true;
  if (wire === 'bedrock-converse') return bedrockModel(name, id).reasoning !== 'none';
  return wire !== 'google-generate-content' || thinkingOf('high', name) !== undefined;
}

/** Whether the host is sent the client's own word, and refuses those that it has not. */
function passesEffortOn(model: string, { provider, wire_protocol: wire, provider_model_id: name }: EndpointRow): boolean {
  if (wire === 'bedrock-converse') return bedrockModel(name, model).reasoning === 'effort';
  return EFFORT_WIRES.has(wire) && !NEAREST_EFFORT_PROVIDERS.has(provider);
}

/** Azure serves models of others too, as their makers' hosts. */
const isOpenAi = (maker: string, provider: string): boolean => provider === 'openai' || (provider === 'azure-openai' && maker === 'openai');

/** The highest that the endpoint is sent; 0 = as high as was asked for. */
export function temperatureMaxOf({ wire_protocol: wire }: EndpointRow, { temperature_max: told }: ProviderRow): number {
  return wire === 'anthropic-messages' ? Math.min(told ?? TEMPERATURE_MAX, TEMPERATURE_MAX) : (told ?? 0);
}

/** By the wires' own knowledge of versions, which leave that out whatever the catalog says. */
function versionsLeaveOut(model: ModelRow, { wire_protocol: wire, provider_model_id: name }: EndpointRow): readonly string[] {
  const onBedrock = wire === 'bedrock-converse' ? bedrockModel(name, model.id) : undefined;
  const claude = onBedrock?.claude ?? (wire === 'anthropic-messages' && model.id.startsWith(CLAUDE_MAKER) ? claudeTraits(name, model.id) : undefined);
  if (claude === undefined) return onBedrock === undefined ? [] : [SINGLE_CALLS, ...(onBedrock.reasoning === 'nova' ? Object.values(THINKING_SAMPLING) : [])];
  if (!claude.takesSampling) return [...SAMPLING, SECOND_SAMPLING];
  return [...(claude.takesBothSampling ? [] : [SECOND_SAMPLING]), ...(claude.thinking === 'none' ? [] : Object.values(THINKING_SAMPLING)), ...(claude.thinking === 'budget' ? [CRAMPED_EFFORT] : [])];
}
