/** The catalog as routing sees it: immutable values, indexed once when they are loaded. */
import { createHash } from 'node:crypto';
import type { PriceCard, PriceStep } from '@signalbox/kernel/tokens';
import type { OutlierReason } from './outliers.js';
import type { QualityPredictor } from './quality.js';

/** Bits of each precision name of the public API. */
export const QUANTIZATION_BITS: Readonly<Record<string, number>> = { fp32: 32, fp16: 16, bf16: 16, fp8: 8, int8: 8, int4: 4 };

/** Values of the endpoint, or else of the model. Unknown is `false` unless a field says otherwise. */
export interface Capabilities {
  readonly streaming: boolean;
  readonly tools: boolean;
  /** `required` or a named function. Unknown counts as yes if tools are supported: no source ever says no. */
  readonly forcedToolChoice: boolean;
  /** Unknown counts as yes if tools are supported: no source ever says no. */
  readonly parallelToolCalls: boolean;
  readonly jsonObject: boolean;
  readonly jsonSchema: boolean;
  readonly vision: boolean;
  readonly fileInput: boolean;
  readonly audioInput: boolean;
  readonly logprobs: boolean;
  /** Supports `n` above 1. */
  readonly choices: boolean;
}

/** A model as one provider serves it: the unit of choice. */
export interface Endpoint {
  /** Position in `Catalog.endpoints`. */
  readonly index: number;
  readonly id: string;
  readonly provider: string;
  /** Position in `Catalog.models`. */
  readonly modelIndex: number;
  readonly model: string;
  readonly providerModelId: string;
  readonly wireProtocol: string;
  /** Ascending by `fromPromptTokens`, the first at 0. Empty if the price is unknown: such an endpoint is never used. */
  readonly prices: readonly PriceStep[];
  readonly maxTokensParam: 'max_tokens' | 'max_completion_tokens';
  /** Tokens; null = unknown. */
  readonly contextWindow: number | null;
  /** Tokens; null = unknown. */
  readonly maxOutputTokens: number | null;
  readonly capabilities: Capabilities;
  /** Tuning fields, by contract name, that this endpoint does not support. */
  readonly unsupportedParams: ReadonlySet<string>;
  /** Values of `reasoning_effort` that this endpoint accepts, refusing others; empty = unknown, or it picks the nearest itself. */
  readonly reasoningEfforts: readonly string[];
  readonly hiddenReasoning: boolean;
  /** null = unknown, which counts as yes. */
  readonly trainsOnData: boolean | null;
  /** A formal guarantee of zero data retention. */
  readonly zdr: boolean;
  /** Zero data retention without any agreement, so it applies to an account's own credential too. */
  readonly zdrByDefault: boolean;
  /** null = unknown, which fails every minimum. */
  readonly quantizationBits: number | null;
  /** Largest temperature that the provider accepts; 0 = no limit. */
  readonly temperatureMax: number;
  readonly firstByteTimeoutMs: number;
  /** True if active, a chat API, with a worker for its wire and a known price. */
  readonly isServable: boolean;
  /** The operator has a credential for it. */
  readonly hasManagedCredential: boolean;
  /** A worker runs that accepts accounts' own credentials. */
  readonly takesByok: boolean;
  /** Milliseconds to the first token (P75) from the catalog; null = unknown. */
  readonly priorLatencyMsP75: number | null;
  /** Tokens per second (P50) from the catalog; null = unknown. */
  readonly priorThroughputTpsP50: number | null;
  /** `YYYY-MM-DD` (UTC), from which on it no longer serves; null = none is known. */
  readonly sunsetDate: string | null;
}

export interface Model {
  readonly index: number;
  readonly id: string;
  readonly ownedBy: string;
  readonly aliases: readonly string[];
  readonly family: string | null;
  /** ISO date; null = none announced, or it has passed and other hosts go on serving the open weights. */
  readonly deprecationDate: string | null;
  /** The maker shut it down, and nobody else may serve it. */
  readonly isRetired: boolean;
  /** Measured ability in [0, 1]. */
  readonly ability: number;
  /** `auto` uses it only if no real model is eligible. */
  readonly isSimulated: boolean;
  readonly endpoints: readonly Endpoint[];
  /** The maker's own list price, ascending steps; empty = none known. */
  readonly listPrices: readonly PriceStep[];
}

export interface Catalog {
  readonly id: string;
  readonly models: readonly Model[];
  readonly endpoints: readonly Endpoint[];
  /** Ids, aliases and unique bare ids to positions in `models`. */
  readonly names: ReadonlyMap<string, number>;
}

export type BreakerState = 'closed' | 'open' | 'half-open';

/** Statistics of one endpoint over the last five minutes. */
export interface EndpointLive {
  readonly samples: number;
  /** Milliseconds to the first token; undefined without samples. */
  readonly latencyMsP75: number | undefined;
  /** Milliseconds to the end of answers that were not streamed; undefined without samples. */
  readonly totalMsP75: number | undefined;
  readonly totalSamples: number;
  /** Tokens per second; undefined without samples. */
  readonly throughputTpsP50: number | undefined;
  readonly throughputSamples: number;
  /** Share of calls that succeed, shrunk towards a prior; in (0, 1]. */
  readonly successShare: number;
  readonly breaker: BreakerState;
  /** Milliseconds until an open breaker lets a call through. */
  readonly waitMs?: number;
  /** Why it is ejected as an outlier for now; absent = it is not. */
  readonly ejectedFor?: OutlierReason;
}

/** Everything that a decision depends on besides its request and seed. */
export interface Snapshot {
  readonly catalog: Catalog;
  /** By endpoint id; absent = no samples, closed. */
  readonly live: ReadonlyMap<string, EndpointLive>;
  /** Predicts quality for the catalog's models, in their order; undefined = abilities decide. */
  readonly quality?: { readonly id: string; readonly predict: QualityPredictor } | undefined;
}

/** A price card whose id is derived from its endpoint and prices: equal prices always have the same id. */
export function namedCard(endpointId: string, prices: Omit<PriceCard, 'id'>): PriceCard {
  const text = [prices.inputUncached, prices.cacheRead, prices.cacheWrite, prices.outputText, prices.outputReasoning, prices.audio, prices.image, prices.requestNanoUsd].join('|');
  return { id: `${endpointId}@${createHash('sha256').update(text).digest('hex').slice(0, 12)}`, ...prices };
}

/** Builds the index of names: full ids first, then exact aliases, then bare ids that are unique. */
export function indexNames(models: readonly Pick<Model, 'id' | 'aliases'>[]): ReadonlyMap<string, number> {
  const names = new Map<string, number>();
  models.forEach((model, index) => names.set(model.id, index));
  models.forEach((model, index) => {
    for (const alias of model.aliases) if (!names.has(alias)) names.set(alias, index);
  });
  const bare = new Map<string, number>();
  models.forEach((model, index) => {
    const name = model.id.slice(model.id.indexOf('/') + 1);
    if (!names.has(name)) bare.set(name, bare.has(name) ? -1 : index);
  });
  for (const [name, index] of bare) if (index >= 0) names.set(name, index);
  return names;
}

/** Finds a model by id, alias or unique bare id. */
export function findModel(catalog: Catalog, name: string): Model | undefined {
  const index = catalog.names.get(name);
  return index === undefined ? undefined : catalog.models[index];
}
