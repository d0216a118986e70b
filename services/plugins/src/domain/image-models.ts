/** Models that make images: what they cost, and whether one may serve a request. */
import { asNanoUsd, attemptCost, reservationCost, type NanoUsd, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import { createModelNames, modelsLeft } from '@signalbox/kernel/model-lists';
import type { DataPolicy, OwnCredential } from '@signalbox/plugin-kit/plugin';

export interface ImageModel {
  readonly id: string;
  readonly provider: string;
  readonly providerModelId: string;
  /** Fields that the operator sends along, JSON object text. */
  readonly parameters: Buffer;
  /** An image's price by size, such as `1024x1024`. */
  readonly unitNanoUsd: ReadonlyMap<string, NanoUsd>;
  readonly promptPrice: NanoUsdPerMillionTokens;
  readonly trainsOnData: boolean;
  /** Whoever asks, nothing is kept. */
  readonly zdrByDefault: boolean;
  /** Nothing is kept for an account with an agreement. */
  readonly zdrByAgreement: boolean;
  /** The operator has that agreement. */
  readonly hasAgreement: boolean;
}

/** Longest description, in bytes: no model counts more tokens in it than that. */
export const PROMPT_BYTES_MAX = 8_192;
const BYTES_PER_TOKEN = 4;

/** Whose credential pays: the account's own ones where its request runs on them, else the operator's. */
export type Payer = { readonly isOwn: false } | { readonly isOwn: true; readonly credentials: readonly OwnCredential[] };

export const OPERATOR: Payer = { isOwn: false };

function isProviderLeft(provider: string, { providers }: DataPolicy): boolean {
  return providers === undefined || (providers.allowed.every((list) => list.includes(provider)) && !providers.denied.includes(provider));
}

/** A policy belongs to the credential: the operator's agreement says nothing of the account's own, nor the other way. */
function keepsNothing(model: ImageModel, own: OwnCredential | undefined): boolean {
  if (own?.ownAddress === true) return own.zdr;
  return model.zdrByDefault || (model.zdrByAgreement && (own === undefined ? model.hasAgreement : own.zdr));
}

/** Who keeps nothing trains on nothing: of an account's own address its own word tells, or nobody. */
function trainsOnNothing(model: ImageModel, own: OwnCredential | undefined): boolean {
  return own?.ownAddress === true ? own.zdr : !model.trainsOnData;
}

/** As with chat models: where the client names none, the choice is left to us, and is under the lists that bound `auto`. */
function leftByLists(models: readonly ImageModel[], isChosenByUs: boolean, { models: bounds }: DataPolicy): (model: ImageModel) => boolean {
  if (bounds === undefined) return () => true;
  return modelsLeft(createModelNames(models), { allowModels: isChosenByUs ? bounds.allowedByChoice : bounds.allowedByName, denyModels: bounds.denied }, isChosenByUs);
}

/** Which model makes an image. */
export interface ImageWish {
  /** Empty = any. */
  readonly id: string;
  readonly size: string;
}

/** Each model that has the size, with what keeps it from serving the request, in the client's words; nothing = it may. */
function candidates(models: readonly ImageModel[], { id, size }: ImageWish, policy: DataPolicy, payer: Payer): readonly { readonly model: ImageModel; readonly leftOutBy: readonly string[] }[] {
  const isLeft = leftByLists(models, id === '', policy);
  return models.filter((model) => (id === '' || model.id === id) && model.unitNanoUsd.has(size)).map((model) => {
    const own = payer.isOwn ? payer.credentials.find(({ provider }) => provider === model.provider) : undefined;
    const checks = {
      credentials: !payer.isOwn || own !== undefined,
      'lists of models': isLeft(model),
      'lists of providers': isProviderLeft(model.provider, policy),
      data_collection: !policy.denyTraining || trainsOnNothing(model, own),
      zdr: !policy.zdr || keepsNothing(model, own),
    };
    return { model, leftOutBy: Object.entries(checks).flatMap(([filter, isMet]) => (isMet ? [] : [filter])) };
  });
}

/** The first that may serve the request; undefined when none may. */
export function pickModel(models: readonly ImageModel[], wish: ImageWish, policy: DataPolicy, payer: Payer): ImageModel | undefined {
  return candidates(models, wish, policy, payer).find(({ leftOutBy }) => leftOutBy.length === 0)?.model;
}

/** What keeps them all from serving it. */
export function modelsLeftOutBy(models: readonly ImageModel[], wish: ImageWish, policy: DataPolicy, payer: Payer): readonly string[] {
  return [...new Set(candidates(models, wish, policy, payer).flatMap(({ leftOutBy }) => leftOutBy))].sort();
}

const unitOf = (model: ImageModel, size: string): bigint => model.unitNanoUsd.get(size) ?? 0n;

/** What `count` images cost; `promptTokens` undefined = as many as its bytes let expect. Never above `costMax`. */
export function imagesCost(model: ImageModel, { size, count, prompt, promptTokens }: { readonly size: string; readonly count: number; readonly prompt: string; readonly promptTokens: number | undefined }): NanoUsd {
  const tokens = Math.min(promptTokens ?? Math.ceil(Buffer.byteLength(prompt) / BYTES_PER_TOKEN), PROMPT_BYTES_MAX);
  return asNanoUsd(BigInt(count) * unitOf(model, size) + attemptCost(BigInt(tokens) * model.promptPrice));
}

/** Bound of what one call may cost. */
export function costMax(model: ImageModel, size: string, count: number): NanoUsd {
  return asNanoUsd(BigInt(count) * unitOf(model, size) + reservationCost(BigInt(PROMPT_BYTES_MAX) * model.promptPrice));
}
