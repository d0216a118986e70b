/** Image models: their prices, and which may serve a request. */
import { asNanoUsd, attemptCost, reservationCost, type NanoUsd, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import { createModelNames, modelsLeft } from '@signalbox/kernel/model-lists';
import type { DataPolicy, OwnCredential } from '@signalbox/plugin-kit/plugin';

export interface ImageModel {
  readonly id: string;
  readonly provider: string;
  readonly providerModelId: string;
  /** Additional fields set by the operator, as the text of a JSON object. */
  readonly parameters: Buffer;
  /** Price of an image by size, such as `1024x1024`. */
  readonly unitNanoUsd: ReadonlyMap<string, NanoUsd>;
  readonly promptPrice: NanoUsdPerMillionTokens;
  readonly trainsOnData: boolean;
  /** Zero data retention for everybody. */
  readonly zdrByDefault: boolean;
  /** Zero data retention for customers with an agreement. */
  readonly zdrByAgreement: boolean;
  /** The operator has that agreement. */
  readonly hasAgreement: boolean;
}

/** Longest description, in bytes, which is also an upper bound of its tokens. */
export const PROMPT_BYTES_MAX = 8_192;
const BYTES_PER_TOKEN = 4;

/** Whose credential is used: the account's own if its request runs on them, else the operator's. */
export type Payer = { readonly isOwn: false } | { readonly isOwn: true; readonly credentials: readonly OwnCredential[] };

export const OPERATOR: Payer = { isOwn: false };

function isProviderLeft(provider: string, { providers }: DataPolicy): boolean {
  return providers === undefined || (providers.allowed.every((list) => list.includes(provider)) && !providers.denied.includes(provider));
}

/** True if zero data retention is guaranteed. The guarantee belongs to the credential: the operator's agreement does not cover the account's own credential, nor the reverse. */
function keepsNothing(model: ImageModel, own: OwnCredential | undefined): boolean {
  if (own?.ownAddress === true) return own.zdr;
  return model.zdrByDefault || (model.zdrByAgreement && (own === undefined ? model.hasAgreement : own.zdr));
}

/** Zero retention implies no training. For an account's own address, only the account's own agreement counts. */
function trainsOnNothing(model: ImageModel, own: OwnCredential | undefined): boolean {
  return own?.ownAddress === true ? own.zdr : !model.trainsOnData;
}

/** As with chat models: if the client names no model, the gateway chooses, within the lists that apply to `auto`. */
function leftByLists(models: readonly ImageModel[], isChosenByUs: boolean, { models: bounds }: DataPolicy): (model: ImageModel) => boolean {
  if (bounds === undefined) return () => true;
  return modelsLeft(createModelNames(models), { allowModels: isChosenByUs ? bounds.allowedByChoice : bounds.allowedByName, denyModels: bounds.denied }, isChosenByUs);
}

/** What the client wants from an image model. */
export interface ImageWish {
  /** Empty = any. */
  readonly id: string;
  readonly size: string;
}

/** Each model that supports the size, with the reasons that exclude it, as named in the API; none = it may serve the request. */
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

/** The first model that may serve the request; undefined if none may. */
export function pickModel(models: readonly ImageModel[], wish: ImageWish, policy: DataPolicy, payer: Payer): ImageModel | undefined {
  return candidates(models, wish, policy, payer).find(({ leftOutBy }) => leftOutBy.length === 0)?.model;
}

/** The reasons that exclude all models. */
export function modelsLeftOutBy(models: readonly ImageModel[], wish: ImageWish, policy: DataPolicy, payer: Payer): readonly string[] {
  return [...new Set(candidates(models, wish, policy, payer).flatMap(({ leftOutBy }) => leftOutBy))].sort();
}

const unitOf = (model: ImageModel, size: string): bigint => model.unitNanoUsd.get(size) ?? 0n;

/** Cost of `count` images; `promptTokens` undefined = estimated from the prompt's bytes. Never above `costMax`. */
export function imagesCost(model: ImageModel, { size, count, prompt, promptTokens }: { readonly size: string; readonly count: number; readonly prompt: string; readonly promptTokens: number | undefined }): NanoUsd {
  const tokens = Math.min(promptTokens ?? Math.ceil(Buffer.byteLength(prompt) / BYTES_PER_TOKEN), PROMPT_BYTES_MAX);
  return asNanoUsd(BigInt(count) * unitOf(model, size) + attemptCost(BigInt(tokens) * model.promptPrice));
}

/** Upper bound of the cost of one call. */
export function costMax(model: ImageModel, size: string, count: number): NanoUsd {
  return asNanoUsd(BigInt(count) * unitOf(model, size) + reservationCost(BigInt(PROMPT_BYTES_MAX) * model.promptPrice));
}
