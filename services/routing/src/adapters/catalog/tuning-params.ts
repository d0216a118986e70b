/** Which tuning fields an endpoint does not take: they are dropped and named, never the fields that change the meaning. */
import type { EndpointRow, ModelRow } from './schema.js';

/** Refused together by models that fix their own sampling (PROVIDERS, section 1.2). */
const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias'] as const;
/** Fields of one maker's API. */
const MAKER_ONLY = ['service_tier', 'verbosity', 'metadata', 'modalities'] as const;
const MAKER_FIELDS_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'azure-openai', 'simulator']);
const MISTRAL_LACKS = ['logit_bias', 'user'] as const;

/** Contract names of the fields to drop. An unknown `seed` is dropped; an unknown `stop` is sent. */
export function unsupportedParams(model: ModelRow, endpoint: EndpointRow): ReadonlySet<string> {
  const lacks = new Set<string>();
  const can = model.capabilities;
  if ((endpoint.temperature_supported ?? can.temperature) === false) for (const field of SAMPLING) lacks.add(field);
  if (can.seed !== true) lacks.add('seed');
  if (can.stop === false) lacks.add('stop');
  if (can.reasoning !== true) lacks.add('reasoning_effort');
  if (!MAKER_FIELDS_PROVIDERS.has(endpoint.provider)) for (const field of MAKER_ONLY) lacks.add(field);
  if (endpoint.wire_protocol === 'mistral') for (const field of MISTRAL_LACKS) lacks.add(field);
  return lacks;
}
