/** JSON of the list of models, and of one model, in both variants. */
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import type { Variant } from '@signalbox/kernel/tiers';

export interface ListedModel {
  readonly id: string;
  readonly ownedBy: string;
  /** JSON object text with pricing, context, capabilities, policies; empty = none. */
  readonly detailJson: Uint8Array;
}

/** Owner of the automatic-routing model. */
const SERVICE_OWNER = 'signalbox';

/** Id of the automatic-routing model as the variant lists it; the other variant's id is accepted as an alias. */
export function autoModelId(variant: Variant): 'auto' | 'router-auto' {
  return variant === 'A' ? 'auto' : 'router-auto';
}

function recordText(model: ListedModel, variant: Variant, detail: boolean): string {
  const id = JSON.stringify(model.id);
  const extras = variant === 'B' ? `,"permission":[],"root":${id},"parent":null` : '';
  const inner = detail ? Buffer.from(model.detailJson).toString('utf8').trim().replace(/^\{|\}$/g, '').trim() : '';
  return `{"id":${id},"object":"model","owned_by":${JSON.stringify(model.ownedBy)}${extras}${inner === '' ? '' : `,${inner}`}}`;
}

/** The longest context of any model, from their details; null if none has one. */
function longestContext(models: readonly ListedModel[]): number | null {
  const lengths = models.map(({ detailJson }) => (detailJson.length === 0 ? null : (JSON.parse(Buffer.from(detailJson).toString('utf8')) as { readonly context_length?: number | null }).context_length));
  return Math.max(0, ...lengths.map((length) => length ?? 0)) || null;
}

/** The record of the automatic-routing model, which chooses among `models`. Its detail follows OpenRouter: a price of -1 depends on the choice. */
export function autoModel(variant: Variant, models: readonly ListedModel[]): ListedModel {
  const detail = { pricing: { prompt: '-1', completion: '-1' }, context_length: longestContext(models) };
  return { id: autoModelId(variant), ownedBy: SERVICE_OWNER, detailJson: Buffer.from(JSON.stringify(detail)) };
}

/** Body of GET /v1/models: the automatic model first, then `models` in their order. */
export function renderModelList(models: readonly ListedModel[], variant: Variant, detail: boolean): Buffer {
  const rest = models.filter((model) => !isAutoModelId(model.id));
  return Buffer.from(`{"object":"list","data":[${[autoModel(variant, rest), ...rest].map((model) => recordText(model, variant, detail)).join(',')}]}`);
}

/** Body of GET /v1/models/{id}. */
export function renderModel(model: ListedModel, variant: Variant, detail: boolean): Buffer {
  return Buffer.from(recordText(model, variant, detail));
}
