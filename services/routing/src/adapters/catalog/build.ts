/** Builds the indexed catalog from its rows: makes price cards, merges endpoint over model, and applies the operator's providers. */
import { createHash } from 'node:crypto';
import { asPrice, usdNumberToNano, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import type { PriceStep } from '@signalbox/kernel/tokens';
import { abilitiesOf, type Scores } from '@signalbox/router-core/ability';
import { indexNames, namedCard, QUANTIZATION_BITS, type Capabilities, type Catalog, type Endpoint, type Model } from '@signalbox/router-core/catalog';
import { isAuto } from '@signalbox/router-core/request';
import type { CatalogRows, EndpointRow, ModelRow, ProviderRow } from './schema.js';
import { sunsetOf } from './sunset.js';
import { AUTO_TOOL_CHOICE_PROVIDERS, CHOICES_PROVIDERS, NO_LOGPROBS_PROVIDERS } from '../../host-limits.js';
import { effortsOf, temperatureMaxOf, unsupportedParams } from './tuning-params.js';

export const SIMULATOR_PROVIDER = 'simulator';
/** Wires that have a worker. */
const BUILT_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'azure-openai', 'bedrock-converse', 'cohere-v2', 'google-generate-content', 'openai-chat', 'mistral', 'ollama']);
/** Wires that cannot express logprobs; below, those without audio or without several choices. */
const NO_LOGPROBS_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);
const NO_AUDIO_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse', 'cohere-v2', 'ollama']);
const ONE_CHOICE_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'ollama']);
/** Of Google's own models only the second generation returns several choices: later ones refuse it. */
const CHOICES_GEMINI = /^gemini-2\./;
/** Wires that can carry a file in a message. */
const FILE_WIRES: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse', 'google-generate-content', 'mistral']);
/** Hosts of the OpenAI wire that accept `file` parts; the others accept only text and images, whatever the model can do. */
const FILE_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'openrouter', SIMULATOR_PROVIDER]);
// 10 s × model factor: models that think before the first token, or must be loaded first, get six times as long.
const FIRST_BYTE_TIMEOUT_MS = 10_000;
const SLOW_FACTOR = 6;
/** Servers that the operator runs: free, unless a row of the operator's catalog has a price. */
const FREE_PROVIDERS: ReadonlySet<string> = new Set(['ollama', 'vllm']);
/** Factor that estimates a P75 where the catalog has only the P50. */
const P75_OVER_P50 = 1.3;

export interface OperatorTerms {
  readonly managedProviders: ReadonlySet<string>;
  readonly byokProviders: ReadonlySet<string>;
  readonly zdrAgreements: ReadonlySet<string>;
  /** For providers that have only some of their models: these models, by the provider's own names. */
  readonly offeredModels: ReadonlyMap<string, ReadonlySet<string>>;
  /** Today's ISO date, for shutdown dates. */
  readonly today: string;
}

interface PriceRow {
  readonly input?: number | null | undefined;
  readonly output?: number | null | undefined;
  readonly cached_input?: number | null | undefined;
  readonly cache_write?: number | null | undefined;
  readonly reasoning?: number | null | undefined;
  readonly audio_input?: number | null | undefined;
}

/** Parses names of the form `provider/model`; a provider without a model offers none. */
export function offersOf(names: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const offers = new Map<string, Set<string>>();
  for (const name of names) {
    const [provider = '', ...model] = name.split('/');
    const models = offers.get(provider) ?? new Set();
    offers.set(provider, models.add(model.join('/')));
  }
  return offers;
}

function toPrice(usd: number): NanoUsdPerMillionTokens {
  return asPrice(usdNumberToNano(usd));
}

function stepOf(endpointId: string, row: PriceRow, base: PriceRow, requestUsd: number, fromPromptTokens: number): PriceStep | undefined {
  const { input, output } = row;
  if (input === null || input === undefined || output === null || output === undefined) return undefined;
  return {
    fromPromptTokens,
    card: namedCard(endpointId, {
      inputUncached: toPrice(input),
      cacheRead: toPrice(row.cached_input ?? input),
      // The sources write 0 if a host charges the same as for other input; it never means free.
      cacheWrite: toPrice(row.cache_write || input),
      outputText: toPrice(output),
      outputReasoning: toPrice(row.reasoning ?? output),
      audio: toPrice(row.audio_input ?? base.audio_input ?? input),
      image: toPrice(input),
      requestNanoUsd: usdNumberToNano(requestUsd),
    }),
  };
}

/** Price steps of an endpoint; empty if its price is unknown. Throws RangeError for a price finer than a nano-dollar. */
function pricesOf(row: EndpointRow): PriceStep[] {
  const { pricing } = row;
  const request = pricing.request ?? 0;
  const isFree = row.status === 'placeholder' && FREE_PROVIDERS.has(row.provider);
  const base = isFree ? { ...pricing, input: pricing.input ?? 0, output: pricing.output ?? 0 } : pricing;
  const first = stepOf(row.id, base, base, request, 0);
  if (first === undefined) return [];
  const steps = [first];
  const tiers = [...(pricing.long_context_tiers ?? [])].sort((left, right) => left.min_context_tokens - right.min_context_tokens);
  for (const tier of tiers) {
    // Providers say "above": a prompt with exactly that many tokens still has the lower step's price.
    const step = stepOf(row.id, tier, pricing, request, tier.min_context_tokens + 1);
    if (step !== undefined) steps.push(step);
  }
  return steps;
}

function takesChoices({ provider, wire_protocol: wire, provider_model_id: name }: EndpointRow): boolean {
  if (wire === 'google-generate-content') return CHOICES_GEMINI.test(name);
  return CHOICES_PROVIDERS.has(provider) && !ONE_CHOICE_WIRES.has(wire);
}

function takesFiles(model: ModelRow, { provider, wire_protocol: wire }: EndpointRow): boolean {
  // Azure serves OpenAI's models as OpenAI does, and other makers' models as those makers' hosts do.
  if (wire === 'azure-openai') return model.owned_by === 'openai';
  return FILE_WIRES.has(wire) || (wire === 'openai-chat' && FILE_PROVIDERS.has(provider));
}

function capabilitiesOf(model: ModelRow, endpoint: EndpointRow): Capabilities {
  const of = model.capabilities;
  const tools = (endpoint.supports_tools ?? of.tools) === true;
  const jsonSchema = (endpoint.supports_json_schema ?? of.json_schema) === true;
  return {
    streaming: of.streaming === true,
    tools,
    forcedToolChoice: tools && of.tool_choice !== false && !AUTO_TOOL_CHOICE_PROVIDERS.has(endpoint.provider),
    parallelToolCalls: tools && of.parallel_tool_calls !== false,
    jsonObject: jsonSchema || (endpoint.supports_json_object ?? of.json_object) === true,
    jsonSchema,
    vision: of.vision === true,
    fileInput: of.file_input === true && takesFiles(model, endpoint),
    audioInput: of.audio_input === true && !NO_AUDIO_WIRES.has(endpoint.wire_protocol),
    logprobs: of.logprobs === true && !NO_LOGPROBS_PROVIDERS.has(endpoint.provider) && !NO_LOGPROBS_WIRES.has(endpoint.wire_protocol),
    choices: takesChoices(endpoint),
  };
}

/** Unknown precision counts as 16 bit for a closed model at its maker or licensed cloud, and fails every bound elsewhere. */
function quantizationBitsOf(model: ModelRow, endpoint: EndpointRow, provider: ProviderRow): number | null {
  if (endpoint.quantization !== null && endpoint.quantization !== undefined) return QUANTIZATION_BITS[endpoint.quantization] ?? null;
  return !model.open_weights && (provider.kind === 'first_party' || provider.kind === 'cloud') ? 16 : null;
}

function hasPassed(date: string | null | undefined, today: string): boolean {
  return date !== null && date !== undefined && date <= today;
}

/** A provider without a list of offered models has all of them. */
function isOffered({ provider, provider_model_id: model }: EndpointRow, { offeredModels }: OperatorTerms): boolean {
  return offeredModels.get(provider)?.has(model) ?? true;
}

function endpointOf(index: number, modelIndex: number, model: ModelRow, row: EndpointRow, provider: ProviderRow, prices: readonly PriceStep[], terms: OperatorTerms): Endpoint {
  const policy = provider.data_policy;
  const sunsetDate = sunsetOf(model, row, provider);
  const isShutDown = hasPassed(sunsetDate, terms.today);
  const isReasoning = model.capabilities.reasoning === true;
  const median = row.priors?.ttft_ms_p50 ?? null;
  return {
    index,
    id: row.id,
    provider: row.provider,
    modelIndex,
    model: model.id,
    providerModelId: row.provider_model_id,
    wireProtocol: row.wire_protocol,
    prices,
    maxTokensParam: row.max_tokens_param === 'max_completion_tokens' ? 'max_completion_tokens' : 'max_tokens',
    contextWindow: row.context_window ?? model.context_window ?? null,
    maxOutputTokens: row.max_output_tokens ?? model.max_output_tokens ?? null,
    capabilities: capabilitiesOf(model, row),
    unsupportedParams: unsupportedParams(model, row, provider),
    reasoningEfforts: effortsOf(model, row),
    hiddenReasoning: isReasoning,
    trainsOnData: policy.trains_on_data ?? null,
    zdr: policy.zdr_default === true || (policy.zdr_by_agreement === true && terms.zdrAgreements.has(row.provider)),
    zdrByDefault: policy.zdr_default === true,
    quantizationBits: quantizationBitsOf(model, row, provider),
    temperatureMax: temperatureMaxOf(row, provider),
    firstByteTimeoutMs: FIRST_BYTE_TIMEOUT_MS * (isReasoning || provider.kind === 'self_hosted' ? SLOW_FACTOR : 1),
    isServable: (row.status === 'active' || FREE_PROVIDERS.has(row.provider)) && isOffered(row, terms) && row.upstream_api === 'chat' && BUILT_WIRES.has(row.wire_protocol) && prices.length > 0 && !isShutDown,
    hasManagedCredential: terms.managedProviders.has(row.provider),
    takesByok: terms.managedProviders.has(row.provider) || terms.byokProviders.has(row.provider),
    priorLatencyMsP75: row.priors?.ttft_ms_p75 ?? (median === null ? null : median * P75_OVER_P50),
    priorThroughputTpsP50: row.priors?.throughput_tps_p50 ?? null,
    sunsetDate,
  };
}

function scoresOf(model: ModelRow): Scores {
  const quality = model.priors?.quality;
  const academic = quality?.academic_2025;
  const values: Record<string, number | null | undefined> = {
    artificial_analysis: quality?.artificial_analysis?.intelligence_index,
    lmarena: quality?.lmarena_text_elo?.value,
    aider: quality?.aider_polyglot?.value,
    design_arena: quality?.design_arena_code_elo?.value,
    mmlu_pro: academic?.mmlu_pro,
    gpqa: academic?.gpqa,
  };
  return Object.fromEntries(Object.entries(values).flatMap(([source, value]) => (typeof value === 'number' ? [[source, value]] : [])));
}

/** The problems of the rows, and the price steps of each endpoint, by its id. */
function checkRows(rows: CatalogRows): { readonly problems: readonly string[]; readonly prices: ReadonlyMap<string, readonly PriceStep[]> } {
  const problems: string[] = [];
  const prices = new Map<string, readonly PriceStep[]>();
  const names = new Map<string, string>();
  const endpoints = new Set<string>();
  const providers = new Set(rows.providers.map((provider) => provider.id));
  if (providers.size !== rows.providers.length) problems.push('A provider stands twice.');
  for (const model of rows.models) {
    for (const name of new Set([model.id, ...model.aliases])) {
      if (isAuto(name)) problems.push(`${model.id}: the name ${name} leaves the choice of a model to routing.`);
      if (names.has(name)) problems.push(`${model.id}: the name ${name} is taken by ${names.get(name) ?? ''}.`);
      names.set(name, model.id);
    }
    for (const endpoint of model.endpoints) {
      if (endpoints.has(endpoint.id)) problems.push(`${endpoint.id}: stands twice.`);
      endpoints.add(endpoint.id);
      if (!providers.has(endpoint.provider)) problems.push(`${endpoint.id}: unknown provider ${endpoint.provider}.`);
      const { input, output } = endpoint.pricing;
      if (endpoint.status === 'active' && (typeof input !== 'number' || typeof output !== 'number')) problems.push(`${endpoint.id}: an active endpoint needs prices of input and output.`);
      const tiers = endpoint.pricing.long_context_tiers ?? [];
      // One that was left out would be that of short prompts, at which long ones may cost the operator more than they bring.
      if (tiers.some((tier) => typeof tier.input !== 'number' || typeof tier.output !== 'number')) problems.push(`${endpoint.id}: long_context_tiers need prices of input and output, also of one that stays the same.`);
      if (new Set(tiers.map((tier) => tier.min_context_tokens)).size < tiers.length) problems.push(`${endpoint.id}: two prices begin at the same length of prompts.`);
      try {
        prices.set(endpoint.id, pricesOf(endpoint));
      } catch {
        problems.push(`${endpoint.id}: a price is finer than a nano-dollar.`);
      }
    }
  }
  return { problems, prices };
}

/** Returns the indexed catalog, or the problems of the rows. */
export function buildCatalog(rows: CatalogRows, terms: OperatorTerms): { readonly problems: readonly string[]; readonly catalog?: Catalog } {
  const { problems, prices } = checkRows(rows);
  if (problems.length > 0) return { problems };
  const providers = new Map(rows.providers.map((provider) => [provider.id, provider]));
  const abilities = abilitiesOf(rows.models.filter((model) => typeof model.simulated_ability !== 'number').map(scoresOf), 'artificial_analysis');
  let nextAbility = 0;
  const endpoints: Endpoint[] = [];
  const models = rows.models.map((row, modelIndex): Model => {
    const own = row.endpoints.flatMap((endpointRow) => {
      const provider = providers.get(endpointRow.provider);
      if (provider === undefined) return [];
      const endpoint = endpointOf(endpoints.length, modelIndex, row, endpointRow, provider, prices.get(endpointRow.id) ?? [], terms);
      endpoints.push(endpoint);
      return [endpoint];
    });
    const isSimulated = typeof row.simulated_ability === 'number';
    const isOver = hasPassed(row.deprecation_date, terms.today);
    const maker = row.endpoints.findIndex((endpoint) => isSimulated || (providers.get(endpoint.provider)?.kind === 'first_party' && (endpoint.variant ?? null) === null));
    return {
      index: modelIndex,
      id: row.id,
      ownedBy: row.owned_by,
      aliases: row.aliases,
      family: row.family ?? null,
      deprecationDate: isOver && row.open_weights ? null : (row.deprecation_date ?? null),
      isRetired: isOver && !row.open_weights,
      ability: row.simulated_ability ?? abilities[nextAbility++] ?? 0,
      isSimulated,
      endpoints: own,
      listPrices: own[maker]?.prices ?? [],
    };
  });
  const fingerprint = createHash('sha256').update(JSON.stringify([rows.digest, [...terms.managedProviders].sort(), [...terms.byokProviders].sort(), [...terms.zdrAgreements].sort(), [...terms.offeredModels].map(([provider, held]) => [provider, ...[...held].sort()]).sort(), terms.today])).digest('hex');
  return { catalog: { id: `cat_${fingerprint.slice(0, 16)}`, models, endpoints, names: indexNames(models) }, problems: [] };
}
