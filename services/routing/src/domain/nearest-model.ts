/** Finds the model that an unknown name clearly means: names used by other gateways and by hosts, and names of dated releases. */
import { providersNamed } from '@signalbox/kernel/provider-names';
import { findModel, type Catalog, type Model } from '@signalbox/router-core/catalog';
import { isProviderAllowed, isReachable, modelListFilter } from '@signalbox/router-core/filters';
import type { ListQuery } from './model-list.js';

export interface NearestModel {
  /** Id of the catalog. */
  readonly model: string;
  /** The name's prefix, if it is a provider that serves this model. */
  readonly provider: string | undefined;
}

/** OpenRouter's suffixes, such as `:free`. Sizes and versions, such as `:8b` and `:0`, begin with a digit. */
const ENDING = /:[a-z][a-z-]*$/;
const PRESET = /@preset\/.*$/;
/** Suffix of a release: `-2024-08-06`, `-20250929`, `@20250929`, `@default`. */
const RELEASE = /(?:[-@](?:20\d{2}-?[01]\d-?[0-3]\d)|@default|@latest)$/;
/** Bedrock's version suffix. */
const VERSION = /-v\d+:\d+$/;
/** Prefix of Bedrock's inference profiles. */
const GEOGRAPHY = /^(?:global|us-gov|us|eu|apac|jp|au|ca)\.(?=[a-z0-9-]+\.)/;
/** Most prefixes: a provider, and a region or mode, as in `bedrock/us-east-1/…`. */
const SEGMENTS_MAX = 3;

function undated(name: string): string {
  return name.replace(VERSION, '').replace(RELEASE, '');
}

/** Models by their endpoints' names, in lower case and without geography; null if several models share a name. */
type EndpointNames = ReadonlyMap<string, Model | null>;

/** Built at the first unknown name and cached, since requests for unknown names come in floods. */
const namesByCatalog = new WeakMap<Catalog, EndpointNames>();

const plain = (name: string): string => name.toLowerCase().replace(GEOGRAPHY, '');

function endpointNames(catalog: Catalog): EndpointNames {
  const known = namesByCatalog.get(catalog);
  if (known !== undefined) return known;
  const names = new Map<string, Model | null>();
  for (const { providerModelId, model: id } of catalog.endpoints) {
    const name = plain(providerModelId);
    const model = findModel(catalog, id) ?? null;
    const before = names.get(name);
    names.set(name, before === undefined || before === model ? model : null);
  }
  namesByCatalog.set(catalog, names);
  return names;
}

function named(catalog: Catalog, name: string): Model | undefined {
  for (const one of new Set([name, undated(name)])) {
    const model = findModel(catalog, one) ?? endpointNames(catalog).get(plain(one)) ?? undefined;
    if (model !== undefined) return model;
  }
  return undefined;
}

/** Returns only a model that this request may use; undefined if the name is ambiguous or matches none. */
export function nearestModel(catalog: Catalog, providers: ReadonlySet<string>, request: ListQuery): NearestModel | undefined {
  const isAllowed = modelListFilter(catalog, request, false);
  const serving = (model: Model): readonly string[] => model.endpoints.filter((endpoint) => isReachable(endpoint, request.byokProviders) && isProviderAllowed(endpoint.provider, request)).map(({ provider }) => provider);
  const segments = request.model.trim().toLowerCase().replace(PRESET, '').replace(ENDING, '').split('/');
  const [front = ''] = segments.length > 1 ? providersNamed(segments.slice(0, 1)) : [];
  const provider = providers.has(front) ? front : undefined;
  for (let skipped = 0; skipped < Math.min(segments.length, provider === undefined ? 1 : SEGMENTS_MAX); skipped += 1) {
    const model = named(catalog, segments.slice(skipped).join('/'));
    if (model === undefined) continue;
    const at = serving(model);
    if (model.isRetired || at.length === 0 || !isAllowed(model)) return undefined;
    return { model: model.id, provider: skipped > 0 && provider !== undefined && at.includes(provider) && at.some((other) => other !== provider) ? provider : undefined };
  }
  return undefined;
}
