/** Checks of routing preferences and plugins. */
import type { ProviderPreferences } from '@signalbox/contracts/routing';
import { usdNumberToNano } from '@signalbox/kernel/money';
import { isPluginId, PLUGINS } from '../../domain/plugins.js';
import { apiError } from '../../wire/errors.js';
import { asArray, asBoolean, asNumber, asObject, asOneOf, asString, asStrings, Invalid, isAbsent, isObject, own, required, wrongType, wrongValue, type JsonObject } from './checks.js';

const QUANTIZATIONS = ['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'int4'] as const;
const BITS: Record<(typeof QUANTIZATIONS)[number], number> = { fp32: 32, fp16: 16, bf16: 16, fp8: 8, int8: 8, int4: 4 };
const PROVIDERS_MAX = 64;
const PLUGINS_MAX = 32;
const ALL_PLUGINS = Object.keys(PLUGINS);
/** Names beside plugins that `plugin_options` accepts: healing is on by default and can be switched off. */
const OTHER_OPTIONS: ReadonlySet<string> = new Set(['json-healing']);
/** Dollars per million tokens. A higher bound would limit nothing, and could exceed 64 bits. */
const MAX_PRICE_USD = 1_000_000;

/** Both bounds; '' = absent. Refused if min has more bits than max. */
export function readQuantization(body: JsonObject): { readonly min: string; readonly max: string } {
  const min = quantization(body, 'min_quantization');
  const max = quantization(body, 'max_quantization');
  if (min !== undefined && max !== undefined && BITS[min] > BITS[max]) throw wrongValue('min_quantization', 'no more bits than max_quantization');
  return { min: min ?? '', max: max ?? '' };
}

function quantization(body: JsonObject, name: string): (typeof QUANTIZATIONS)[number] | undefined {
  const value = own(body, name);
  return isAbsent(value) ? undefined : asOneOf(value, name, QUANTIZATIONS);
}

/** A finite number above zero, or undefined. */
export function readPositive(body: JsonObject, name: string): number | undefined {
  const value = own(body, name);
  if (isAbsent(value)) return undefined;
  const number = asNumber(value, name, 0, Number.MAX_VALUE);
  if (number <= 0) throw wrongValue(name, 'a number above 0');
  return number;
}

export function readProvider(value: unknown): ProviderPreferences | undefined {
  if (isAbsent(value)) return undefined;
  const object = asObject(value, 'provider');
  const preferences: ProviderPreferences = {};
  for (const name of ['order', 'only', 'ignore'] as const) {
    const list = own(object, name);
    if (!isAbsent(list)) preferences[name] = [...asStrings(list, `provider.${name}`, PROVIDERS_MAX)];
  }
  const fallbacks = own(object, 'allow_fallbacks');
  if (!isAbsent(fallbacks)) preferences.allowFallbacks = asBoolean(fallbacks, 'provider.allow_fallbacks');
  const strict = own(object, 'require_parameters');
  if (!isAbsent(strict)) preferences.requireParameters = asBoolean(strict, 'provider.require_parameters');
  const sort = own(object, 'sort');
  if (!isAbsent(sort)) preferences.sort = asOneOf(sort, 'provider.sort', ['price', 'throughput', 'latency']);
  const maxPrice = own(object, 'max_price');
  if (!isAbsent(maxPrice)) {
    const prices = asObject(maxPrice, 'provider.max_price');
    const prompt = readPrice(prices, 'prompt');
    const completion = readPrice(prices, 'completion');
    if (prompt !== undefined) preferences.maxPricePrompt = prompt;
    if (completion !== undefined) preferences.maxPriceCompletion = completion;
  }
  return preferences;
}

export interface PrivacyWishes {
  readonly dataCollection: '' | 'allow' | 'deny';
  readonly zdr: boolean;
}

/** Privacy wishes at the top level and within `provider`: the stricter one counts, in both variants. */
export function readPrivacy(body: JsonObject): PrivacyWishes {
  const top = privacyOf(body, '');
  const provider = own(body, 'provider');
  const within = isObject(provider) ? privacyOf(provider, 'provider.') : NO_PRIVACY;
  return { zdr: top.zdr || within.zdr, dataCollection: within.dataCollection === 'deny' || top.dataCollection === '' ? within.dataCollection : top.dataCollection };
}

const NO_PRIVACY: PrivacyWishes = { dataCollection: '', zdr: false };

function privacyOf(object: JsonObject, prefix: string): PrivacyWishes {
  const collection = own(object, 'data_collection');
  const zdr = own(object, 'zdr');
  return { dataCollection: isAbsent(collection) ? '' : asOneOf(collection, `${prefix}data_collection`, ['allow', 'deny']), zdr: isAbsent(zdr) ? false : asBoolean(zdr, `${prefix}zdr`) };
}

const PROVIDER_FIELDS: ReadonlySet<string> = new Set(['order', 'only', 'ignore', 'allow_fallbacks', 'require_parameters', 'sort', 'max_price', 'data_collection', 'zdr']);

const PRICE_FIELDS: ReadonlySet<string> = new Set(['prompt', 'completion']);

/** Unknown names within `provider` and `provider.max_price`; the client is told that they have no effect. */
export function unknownPreferences(provider: unknown): readonly string[] {
  if (!isObject(provider)) return [];
  const unknownIn = (object: JsonObject, known: ReadonlySet<string>): readonly string[] => Object.keys(object).filter((name) => !known.has(name) && !isAbsent(object[name]));
  const unknown = unknownIn(provider, PROVIDER_FIELDS).map((name) => `provider.${name}`);
  const maxPrice = own(provider, 'max_price');
  return isObject(maxPrice) ? [...unknown, ...unknownIn(maxPrice, PRICE_FIELDS).map((name) => `provider.max_price.${name}`)] : unknown;
}

function readPrice(prices: JsonObject, name: string): string | undefined {
  const value = own(prices, name);
  if (isAbsent(value)) return undefined;
  const param = `provider.max_price.${name}`;
  const usd = asNumber(value, param, 0, MAX_PRICE_USD);
  try {
    return usdNumberToNano(usd).toString();
  } catch (error) {
    if (error instanceof RangeError) throw wrongValue(param, 'US dollars per million tokens with at most nine decimals');
    throw error;
  }
}

export interface PluginWishes {
  /** Known ids, each once, in the client's order. */
  readonly ids: readonly string[];
  /** By plugin id. */
  readonly options: Readonly<Record<string, unknown>>;
}

const NO_WISHES: PluginWishes = { ids: [], options: {} };

/** Merges options: later ones win, except that null changes nothing. */
function mergedOptions(before: JsonObject | undefined, given: JsonObject): JsonObject {
  return Object.fromEntries([...Object.entries(before ?? {}), ...Object.entries(given).filter(([name, value]) => !isAbsent(value) || before === undefined || !Object.hasOwn(before, name))]);
}

/** Plugins by id or as `{id, …options}`, each option merged with that of `plugin_options`, which wins. */
export function readPlugins(plugins: unknown, pluginOptions: unknown): PluginWishes {
  if (isAbsent(plugins) && isAbsent(pluginOptions)) return NO_WISHES;
  const ids = new Set<string>();
  const options = new Map<string, JsonObject>();
  if (!isAbsent(plugins)) {
    asArray(plugins, 'plugins', PLUGINS_MAX).forEach((item, index) => {
      const param = `plugins.[${index}]`;
      if (typeof item === 'string') {
        ids.add(knownPlugin(item));
        return;
      }
      if (typeof item !== 'object' || item === null || Array.isArray(item)) throw wrongType(param, 'a plugin id or an object with an id');
      const { id, ...rest } = asObject(item, param);
      const name = knownPlugin(asString(required(id, `${param}.id`), `${param}.id`));
      ids.add(name);
      if (Object.keys(rest).length > 0) options.set(name, mergedOptions(options.get(name), rest));
    });
  }
  if (!isAbsent(pluginOptions)) {
    for (const [id, value] of Object.entries(asObject(pluginOptions, 'plugin_options'))) {
      if (!isPluginId(id) && !OTHER_OPTIONS.has(id)) throw noSuchPlugin(id, `plugin_options.${id.slice(0, 64)}`, [...ALL_PLUGINS, ...OTHER_OPTIONS]);
      if (!isAbsent(value)) options.set(id, mergedOptions(options.get(id), asObject(value, `plugin_options.${id}`)));
    }
  }
  checkHealing(options.get('json-healing'));
  return { ids: [...ids], options: Object.fromEntries(options) };
}

function checkHealing(wish: unknown): void {
  if (!isObject(wish)) return;
  const unknown = Object.keys(wish).find((name) => name !== 'enabled');
  if (unknown !== undefined) throw wrongValue(`plugin_options.json-healing.${unknown.slice(0, 64)}`, "no option but 'enabled'");
  const enabled = own(wish, 'enabled');
  if (!isAbsent(enabled)) asBoolean(enabled, 'plugin_options.json-healing.enabled');
}

/** OpenRouter's plugins, with their counterparts here (docs/migrate.md). */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['web', "What it does, 'web-search' does here."],
  ['file-parser', "What it does, 'pdf-reader' does here."],
  ['response-healing', 'Leave it out: with `response_format` JSON is healed by itself here.'],
]);

function noSuchPlugin(id: string, param: string, known: readonly string[]): Invalid {
  const hint = ELSEWHERE.get(id);
  return new Invalid(apiError('unknown_plugin', { param, message: `There is no plugin '${id.slice(0, 64)}'; known are ${known.join(', ')}.${hint === undefined ? '' : ` ${hint}`}` }));
}

function knownPlugin(id: string): string {
  if (isPluginId(id)) return id;
  throw noSuchPlugin(id, 'plugins', ALL_PLUGINS);
}
