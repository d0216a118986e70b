/** Which tuning fields an endpoint does not take: they are dropped and named, never the fields that change the meaning. */
import { BLANK_STOP, SECOND_SAMPLING } from '@signalbox/kernel/param-names';
import { claudeTraits } from '@signalbox/wires/anthropic-messages/claude';
import type { EndpointRow, ModelRow, ProviderRow } from './schema.js';

/** Refused together by models that fix their own sampling (PROVIDERS, section 1.2). */
const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias'] as const;
/** Fields of one maker's API. */
const MAKER_ONLY = ['service_tier', 'verbosity', 'metadata', 'modalities'] as const;
const MAKER_FIELDS_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'azure-openai', 'simulator']);
/** Fields that a wire has no words for. */
const WIRE_LACKS: Readonly<Record<string, readonly string[]>> = {
  'anthropic-messages': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', BLANK_STOP],
  'bedrock-converse': ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', 'user', BLANK_STOP],
  'cohere-v2': ['logit_bias', 'top_logprobs', 'user'],
  'google-generate-content': ['logit_bias', 'user'],
  mistral: ['logit_bias', 'user'],
  ollama: ['logit_bias', 'user'],
};

/** Wires that leave out what the version of a Claude does not take, whatever the catalog knows of it. */
const CLAUDE_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);
const CLAUDE_MAKER = 'anthropic/';

/** Contract names of the fields to drop. An unknown `seed` is dropped; an unknown `stop` is sent. */
export function unsupportedParams(model: ModelRow, endpoint: EndpointRow, provider: ProviderRow): ReadonlySet<string> {
  const lacks = new Set<string>();
  const can = model.capabilities;
  if ((endpoint.temperature_supported ?? can.temperature) === false) for (const field of SAMPLING) lacks.add(field);
  if (can.seed !== true) lacks.add('seed');
  if (can.stop === false) lacks.add('stop');
  if (can.reasoning !== true) lacks.add('reasoning_effort');
  if (!MAKER_FIELDS_PROVIDERS.has(endpoint.provider)) for (const field of MAKER_ONLY) lacks.add(field);
  for (const field of WIRE_LACKS[endpoint.wire_protocol] ?? []) lacks.add(field);
  for (const field of provider.unsupported_params ?? []) lacks.add(field);
  if (CLAUDE_WIRES.has(endpoint.wire_protocol) && model.id.startsWith(CLAUDE_MAKER)) {
    const { takesSampling, takesBothSampling } = claudeTraits(endpoint.provider_model_id, model.id);
    if (!takesSampling) for (const field of SAMPLING) lacks.add(field);
    if (!takesBothSampling) lacks.add(SECOND_SAMPLING);
  }
  return lacks;
}
