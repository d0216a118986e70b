/** The list of models and one record of it, in both variants (contract, section 12). */
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
function autoModelId(variant: Variant): 'auto' | 'router-auto' {
  return variant === 'A' ? 'auto' : 'router-auto';
}

function recordText(model: ListedModel, variant: Variant, detail: boolean): string {
  const id = JSON.stringify(model.id);
  const extras = variant === 'B' ? `,"permission":[],"root":${id},"parent":null` : '';
  const inner = detail ? Buffer.from(model.detailJson).toString('utf8').trim().replace(/^\{|\}$/g, '').trim() : '';
  return `{"id":${id},"object":"model","owned_by":${JSON.stringify(model.ownedBy)}${extras}${inner === '' ? '' : `,${inner}`}}`;
}

/** The record of the automatic-routing model. */
export function autoModel(variant: Variant): ListedModel {
  return { id: autoModelId(variant), ownedBy: SERVICE_OWNER, detailJson: new Uint8Array() };
}

/** Body of GET /v1/models: the automatic model first, then `models` in their order. */
export function renderModelList(models: readonly ListedModel[], variant: Variant, detail: boolean): Buffer {
  const rest = models.filter((model) => !isAutoModelId(model.id));
  return Buffer.from(`{"object":"list","data":[${[autoModel(variant), ...rest].map((model) => recordText(model, variant, detail)).join(',')}]}`);
}

/** Body of GET /v1/models/{id}. */
export function renderModel(model: ListedModel, variant: Variant, detail: boolean): Buffer {
  return Buffer.from(recordText(model, variant, detail));
}
