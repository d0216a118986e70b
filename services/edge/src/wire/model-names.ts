/** Error messages for unknown models, with hints for names that other gateways use. */
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import type { Variant } from '@signalbox/kernel/tiers';
import { autoModelId } from './models.js';

/** Endings of OpenRouter's names, with their equivalent here. Valid names may have other endings, such as Ollama's `:8b`. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ['nitro', ' with `provider: {"sort": "throughput"}`'],
  ['floor', ' with `provider: {"sort": "price"}`'],
  ['online', ' with `plugins: ["web-search"]`'],
  ['free', ''],
  ['extended', ''],
  ['thinking', ' with `reasoning_effort`'],
  ['exacto', ''],
]);

/** Suffix of the address at which OpenRouter lists a model's endpoints. */
const ENDPOINTS = '/endpoints';

const LIST = 'GET /v1/models lists the names that this key may use.';

export interface NotFound {
  /** Providers that would serve the model if they had a credential. */
  readonly unsetProviders: readonly string[];
  /** The model that the name certainly means; empty = unknown. */
  readonly nearestModel: string;
  /** The provider that the name contains; empty = none. */
  readonly nearestProvider: string;
  /** Models with similar names, if nothing else is known; absent from a routing service of an older version. */
  readonly similarModels?: readonly string[];
}

/** Characters of a client's model id that are repeated in a message. */
const ECHO_MAX = 128;

/** The client's name of a model, shortened for a message. */
export const shownModel = (model: string): string => model.slice(0, ECHO_MAX);

/** The message for a model that could not be found; `asked`: the client's name for it. */
export function modelNotFound(asked: string, found: NotFound, variant: Variant): string {
  const { unsetProviders: unset } = found;
  const model = shownModel(asked);
  if (isAutoModelId(model)) return `There is no model that '${model}' could choose: none is served here. Set up a provider, or look in the log for what one was said to hold and the catalog does not know.`;
  if (unset.length > 0) return `The model '${model}' is known, but none of its providers is set up here: ${unset.join(', ')}. The operator sets a provider's credential, or an account its own by PUT /api/providers/{provider}, for those that GET /api/providers names. ${LIST}`;
  return `The model '${model}' does not exist or is not available to this key.${modelHint(model, found, variant)}`;
}

/** A sentence with a leading blank. `model`: the client's name, shortened. */
function modelHint(model: string, { nearestModel, nearestProvider, similarModels = [] }: NotFound, variant: Variant): string {
  const small = model.trim().toLowerCase();
  const meansAuto = isAutoModelId(small) || small.endsWith('/auto');
  if (meansAuto) return ` The model that leaves the choice to the gateway is called '${autoModelId(variant)}' here.`;
  const similar = similarModels.length === 0 ? '' : ` Written alike: ${similarModels.map((id) => `'${id}'`).join(', ')}. ${LIST}`;
  // Variant B has neither preferences nor plugins.
  if (variant === 'B') return nearestModel === '' ? similar || ` ${LIST}` : ` Ask for '${nearestModel}'. ${LIST}`;
  const colon = model.lastIndexOf(':');
  const wish = colon > 0 ? ENDINGS.get(model.slice(colon + 1)) : undefined;
  if (wish !== undefined) return ` Names have no such ending here: ask for '${nearestModel || model.slice(0, colon)}'${wish}.`;
  if (model.includes('@preset/')) return ` There are no presets here: what one would set stands in the request. ${nearestModel === '' ? LIST : `Ask for '${nearestModel}'.`}`;
  if (model.endsWith(ENDPOINTS)) return ` The providers of a model, with their prices, are at GET /v1/models/${model.slice(0, -ENDPOINTS.length)}?detail=full.`;
  if (nearestProvider !== '') return ` Ask for '${nearestModel}', and for that provider alone with \`provider: {"only": ["${nearestProvider}"]}\`.`;
  if (nearestModel !== '') return ` Ask for '${nearestModel}'.`;
  if (similar !== '') return similar;
  return ` ${LIST} They begin with the model's maker; to choose the provider, use \`provider.only\`.`;
}
