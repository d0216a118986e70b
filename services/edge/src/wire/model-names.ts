/** What to ask for instead of a model's name that another gateway would know. */
import type { Variant } from '@signalbox/kernel/tiers';

/** Endings of OpenRouter's names, with what says the same here. Names of our own may have others, such as Ollama's `:8b`. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ['nitro', ' with `provider: {"sort": "throughput"}`'],
  ['floor', ' with `provider: {"sort": "price"}`'],
  ['online', ' with `plugins: ["web-search"]`'],
  ['free', ''],
  ['extended', ''],
  ['thinking', ' with `reasoning_effort`'],
  ['exacto', ''],
]);

const LIST = 'GET /v1/models lists the names that this key may use.';

/** A sentence that begins with a blank. `model` is the client's word, cut to what may be shown. */
export function modelHint(model: string, variant: Variant): string {
  // Variant B has neither preferences nor plugins.
  if (variant === 'B') return ` ${LIST}`;
  const colon = model.lastIndexOf(':');
  const wish = colon > 0 ? ENDINGS.get(model.slice(colon + 1)) : undefined;
  if (wish !== undefined) return ` Names have no such ending here: ask for '${model.slice(0, colon)}'${wish}.`;
  if (model.endsWith('/auto')) return " The model that leaves the choice to the gateway is called 'auto' here.";
  if (model.startsWith('@preset/')) return ` There are no presets here: what one would set stands in the request. ${LIST}`;
  return ` ${LIST} They begin with the model's maker; which provider is to serve it is said by \`provider.only\`.`;
}
