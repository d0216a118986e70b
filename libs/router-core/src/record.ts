/**
 * Decision records: why a request went where it did, and enough data to replay the decision (docs/auto.md).
 *
 * A record contains no prompt and no features, only the prediction made from them. It is plain JSON.
 */
import { utilityOf, type AutoChoice } from './auto.js';
import { findModel, type Catalog, type Endpoint, type EndpointLive, type Model, type Snapshot } from './catalog.js';
import { decide, isDown, isEjected, type Plan, type Refusal } from './decide.js';
import { propensities } from './exploration.js';
import { createEndpointFilter, isReachable, modelListFilter, reasonNames, type Reason } from './filters.js';
import type { Prediction } from './quality.js';
import { isAuto, type RouteRequest } from './request.js';

const CONSIDERED_MAX = 5;

/** The request without its prompt, amounts of money as decimal strings. */
export type RecordedRequest = Omit<RouteRequest, 'promptText' | 'provider'> & {
  readonly provider: Omit<RouteRequest['provider'], 'maxPricePrompt' | 'maxPriceCompletion'> & { readonly maxPricePrompt: string | undefined; readonly maxPriceCompletion: string | undefined };
};

export interface RecordedPrediction extends Pick<Prediction, 'cluster' | 'difficulty' | 'familiarity'> {
  /** By model id: quality, deviation, expected tokens of an answer. */
  readonly models: Readonly<Record<string, readonly [number, number, number]>>;
}

/** One of the models that were compared, at its best endpoint. */
export interface Considered {
  readonly model: string;
  readonly endpoint: string;
  readonly quality: number;
  /** Nano-USD including the expected cost of retries; a score for ordering. */
  readonly effectiveCost: number;
  readonly latencyMsP75: number | null;
  readonly successShare: number;
  readonly tier: number;
  /** Quality minus weighted cost; null if a margin decided. */
  readonly utility: number | null;
  readonly propensity: number;
}

export interface DecisionRecord {
  readonly snapshotId: string;
  /** null = abilities decided. */
  readonly artefactId: string | null;
  readonly seed: number;
  readonly request: RecordedRequest;
  readonly prediction: RecordedPrediction | null;
  /** Live statistics at the time, by endpoint id. */
  readonly live: Readonly<Record<string, EndpointLive>>;
  /** Number of endpoints by reason of rejection; filters may give several reasons for one endpoint. */
  readonly rejected: Readonly<Partial<Record<Reason | 'breaker' | 'outlier', number>>>;
  readonly considered: readonly Considered[];
  /** null = no floor: a model was pinned, or λ decides. */
  readonly floor: number | null;
  readonly reason: AutoChoice['reason'] | null;
  /** Endpoint ids in order; empty = refused. */
  readonly attempts: readonly string[];
  readonly reference: string | null;
  /** The reason in one plain sentence. */
  readonly sentence: string;
}

/** False for a request whose data must not be kept: nothing about it is stored, not even the prediction. */
export function mayKeep(request: Pick<RouteRequest, 'zdr' | 'denyDataCollection'>): boolean {
  return !request.zdr && !request.denyDataCollection;
}

/** The record of a decision, or undefined for a request whose data must not be kept. */
export function recordOf(request: RouteRequest, snapshot: Snapshot, seed: number, result: Plan | Refusal): DecisionRecord | undefined {
  return mayKeep(request) ? describe(request, snapshot, seed, result) : undefined;
}

/** Makes a record of any request, to show it to the client. Store it only if `mayKeep`. */
export function describe(request: RouteRequest, snapshot: Snapshot, seed: number, result: Plan | Refusal): DecisionRecord {
  const auto = result.kind === 'plan' ? result.auto : undefined;
  // What `auto` compared is recorded where it is only a fallback too, but not as the reason for the first attempt.
  const leading = result.kind === 'plan' && result.isByAuto ? auto : undefined;
  const { promptText: _, provider, ...rest } = request;
  return {
    snapshotId: snapshot.catalog.id,
    artefactId: auto?.prediction === undefined ? null : (snapshot.quality?.id ?? null),
    seed,
    request: { ...rest, provider: { ...provider, maxPricePrompt: provider.maxPricePrompt?.toString(), maxPriceCompletion: provider.maxPriceCompletion?.toString() } },
    prediction: auto?.prediction === undefined ? null : recordedPrediction(auto.prediction, auto),
    live: liveOf(request, snapshot),
    rejected: rejectedOf(request, snapshot, result),
    considered: auto === undefined ? [] : consideredOf(auto, request),
    floor: leading === undefined || request.costWeight !== undefined ? null : leading.floor,
    reason: leading?.reason ?? null,
    attempts: result.kind === 'plan' ? result.attempts.map(({ endpoint }) => endpoint.id) : [],
    reference: result.kind === 'plan' ? (result.reference?.model ?? null) : null,
    sentence: sentenceOf(result, request, snapshot.catalog),
  };
}

function recordedPrediction({ cluster, difficulty, familiarity, quality, deviation, outputTokens }: Prediction, { groups }: AutoChoice): RecordedPrediction {
  const models = Object.fromEntries(groups.map(({ model: { id, index } }) => [id, [quality[index] ?? 0, deviation[index] ?? 0, outputTokens[index] ?? 0] as const]));
  return { cluster, difficulty, familiarity, models };
}

/** Statistics of the endpoints that this account can reach and that the request could use. */
function liveOf(request: RouteRequest, { catalog, live }: Snapshot): Record<string, EndpointLive> {
  const kept: Record<string, EndpointLive> = {};
  if (live.size === 0) return kept;
  for (const model of modelsOf(request, catalog)) {
    for (const endpoint of model.endpoints) {
      const stats = live.get(endpoint.id);
      if (stats !== undefined && isReachable(endpoint, request.byokProviders)) kept[endpoint.id] = stats;
    }
  }
  return kept;
}

/** The models that a request could use: all for `auto`, else those it names. */
function modelsOf(request: RouteRequest, catalog: Catalog): readonly Model[] {
  const names = [request.model, ...request.models];
  if (names.some(isAuto)) return catalog.models;
  return [...new Set(names.flatMap((name) => findModel(catalog, name) ?? []))];
}

function rejectedOf(request: RouteRequest, { catalog, live }: Snapshot, result: Plan | Refusal): DecisionRecord['rejected'] {
  const counts: Partial<Record<keyof DecisionRecord['rejected'], number>> = {};
  const planned = new Set(result.kind === 'plan' ? result.attempts.map(({ endpoint }) => endpoint.id) : []);
  const count = (reason: keyof DecisionRecord['rejected']): void => {
    counts[reason] = (counts[reason] ?? 0) + 1;
  };
  const filter = createEndpointFilter(request);
  const isAllowed = modelListFilter(catalog, request, [request.model, ...request.models].some(isAuto));
  for (const model of modelsOf(request, catalog)) {
    if (model.isRetired) continue;
    for (const endpoint of model.endpoints) {
      if (!isReachable(endpoint, request.byokProviders)) continue;
      // Planned by the lower bound of the prompt's length, an endpoint was not rejected by the estimate.
      const mask = planned.has(endpoint.id) ? 0 : filter(endpoint, isAllowed(model));
      for (const reason of reasonNames(mask)) count(reason);
      if (mask !== 0) continue;
      const stats = live.get(endpoint.id);
      if (isDown(endpoint, stats, request)) count('breaker');
      else if (!planned.has(endpoint.id) && isEjected(endpoint, stats, request)) count('outlier');
    }
  }
  return counts;
}

function consideredOf(auto: AutoChoice, request: RouteRequest): Considered[] {
  const shares = propensities(auto.peers, request);
  return auto.groups.slice(0, CONSIDERED_MAX).flatMap((group): Considered[] => {
    const { best } = group;
    const propensity = auto.reason === 'stayed' ? Number(group === auto.groups[0]) : (shares[auto.peers.indexOf(group)] ?? 0);
    return [{
      model: group.model.id,
      endpoint: best.endpoint.id,
      quality: group.quality,
      effectiveCost: best.effectiveCost,
      latencyMsP75: best.latencyMs ?? null,
      successShare: best.successShare,
      tier: best.tier,
      utility: request.costWeight === undefined ? null : utilityOf(group.quality, group.cost, request.costWeight),
      propensity,
    }];
  });
}

/** Why a model serves that the client named: it was the first, or none of those before it can. */
function sentenceOfNamed({ model, provider }: Endpoint, request: RouteRequest, catalog: Catalog): string {
  const [asked = ''] = request.model === '' ? request.models : [request.model];
  if (findModel(catalog, asked)?.id === model) return `${asked} was asked for and is served by ${provider}.`;
  return `${asked} was asked for and cannot serve this request now; ${model}, a fallback that the request lists, is served by ${provider}.`;
}

function sentenceOf(result: Plan | Refusal, request: RouteRequest, catalog: Catalog): string {
  if (result.kind !== 'plan') return `Refused: ${result.kind.replaceAll('-', ' ')}.`;
  const [first] = result.attempts;
  const auto = result.isByAuto ? result.auto : undefined;
  const [chosen, ...others] = auto?.groups ?? [];
  if (first === undefined) return 'No endpoint has a price.';
  if (auto === undefined || chosen === undefined) return sentenceOfNamed(first.endpoint, request, catalog);
  if (auto.reason === 'stayed') return `The conversation stays with ${chosen.model.id}: moving it would lose more than it gains.`;
  if (auto.reason === 'explored') return `${chosen.model.id} was tried to learn how good it is; it is above the floor.`;
  const ablest = others.reduce<(typeof others)[number] | undefined>((top, group) => (group.quality > (top?.quality ?? chosen.quality) ? group : top), undefined);
  if (ablest === undefined) return `${chosen.model.id} has the best predicted quality of all that may serve this request.`;
  const points = ((ablest.quality - chosen.quality) * 100).toFixed(1);
  const times = ablest.cost / chosen.cost;
  return times >= 1 ? `${ablest.model.id} is ${times.toFixed(1)}× dearer for +${points} points of predicted quality, so ${chosen.model.id} was taken.` : `${chosen.model.id} was taken for the client's wishes; ${ablest.model.id} has +${points} points of predicted quality.`;
}

/** What changes in a rerun of stored decisions. */
export type Changes = Partial<Pick<RouteRequest, 'mode' | 'costWeight' | 'baselineModel' | 'allowModels' | 'denyModels' | 'allowProviders' | 'denyProviders'>>;

function requestOf(record: DecisionRecord): RouteRequest {
  const { provider, ...rest } = record.request;
  const amount = (text: string | undefined): bigint | undefined => (text === undefined ? undefined : BigInt(text));
  return { ...UNSET, ...rest, promptText: '', provider: { ...provider, maxPricePrompt: amount(provider.maxPricePrompt), maxPriceCompletion: amount(provider.maxPriceCompletion) } };
}

/** Defaults for fields that are missing in a record: JSON drops undefined values, and older records lack newer fields. */
const UNSET = { byokOwnAddressProviders: [], promptTokensMin: undefined, maxTokens: undefined, preferredMaxLatency: undefined, preferredMinThroughput: undefined, costWeight: undefined, held: undefined, explorationRoomNanoUsd: undefined } as const;
/** For a model that was not eligible then and so has no prediction: it gets the catalog's ability. */
const DEVIATION_UNKNOWN = 1;

function predictionOf(record: DecisionRecord, catalog: Catalog): Prediction | undefined {
  const { prediction } = record;
  if (prediction === null) return undefined;
  const known = Object.values(prediction.models);
  const outputTokens = known.reduce((sum, [, , tokens]) => sum + tokens, 0) / Math.max(1, known.length);
  const of = (id: string, ability: number): readonly [number, number, number] => prediction.models[id] ?? [ability, DEVIATION_UNKNOWN, outputTokens];
  const rows = catalog.models.map((model) => of(model.id, model.ability));
  return { cluster: prediction.cluster, difficulty: prediction.difficulty, familiarity: prediction.familiarity, quality: rows.map(([quality]) => quality), deviation: rows.map(([, deviation]) => deviation), outputTokens: rows.map(([, , tokens]) => tokens) };
}

/** Replays a recorded decision. With the catalog of its snapshot and no changes, the plan is exactly the same. */
export function replay(record: DecisionRecord, catalog: Catalog, changes: Changes = {}): Plan | Refusal {
  const stillHeld = Object.keys(changes).length === 0;
  const request = { ...requestOf(record), ...changes };
  // Under another policy the conversation would have been served elsewhere before, so the recorded endpoint does not count.
  return decide(stillHeld ? request : { ...request, held: undefined }, { catalog, live: new Map(Object.entries(record.live)) }, record.seed, predictionOf(record, catalog));
}

/** One side of a comparison; all undefined if the request is refused. Nano-USD are expectations, never billed. */
export interface Expected {
  readonly model: string | undefined;
  readonly quality: number | undefined;
  readonly cost: number | undefined;
  /** Cost of the reference minus cost. */
  readonly savings: number | undefined;
}

/** Expected cost, quality and savings of a plan that begins with the choice of `auto`; fields are undefined for a pinned model or a refusal. */
export function expectedOf(result: Plan | Refusal): Expected {
  const chosen = result.kind === 'plan' && result.isByAuto ? result.auto?.groups[0] : undefined;
  if (chosen === undefined || result.kind !== 'plan') return { model: undefined, quality: undefined, cost: undefined, savings: undefined };
  const reference = result.auto?.groups.find((group) => group.model.id === result.reference?.model);
  return { model: chosen.model.id, quality: chosen.quality, cost: chosen.cost, savings: reference === undefined ? undefined : reference.cost - chosen.cost };
}
