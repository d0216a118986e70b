/** Reads the catalog of image models: the shipped one, or the operator's file. */
import { asNanoUsd, asPrice, usdNumberToNano } from '@signalbox/kernel/money';
import { ConfigError } from '@signalbox/runtime/config';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { ImageModel } from '../domain/image-models.js';

const SHIPPED = fileURLToPath(new URL('../../catalog/image-models.json', import.meta.url));

/** Dollars with at most nine decimals. */
const usd = z.number().min(0).max(1_000).refine((value) => {
  try {
    return usdNumberToNano(value) >= 0n;
  } catch {
    return false;
  }
}, 'expected US dollars with at most nine decimals');
const name = z.string().min(1).max(200);
const flag = z.boolean().nullish();

const schema = z.object({
  models: z
    .array(
      z.object({
        id: z.string().regex(/^[^/\s]+\/\S+$/).max(128),
        provider: name,
        provider_model_id: name,
        parameters: z.record(z.string(), z.unknown()).default({}),
        pricing: z.object({
          image_per_unit: z.record(z.string().regex(/^[1-9]\d{0,3}x[1-9]\d{0,3}$/), usd).refine((sizes) => Object.keys(sizes).length > 0, 'expected at least one size'),
          input: usd.nullish(),
        }),
        data_policy: z.object({ trains_on_data: flag, zdr_default: flag, zdr_by_agreement: flag }),
      }),
    )
    .max(200)
    .refine((models) => new Set(models.map(({ id }) => id)).size === models.length, 'expected each id once'),
});

/** All models of the file, in order. `path` undefined = the shipped catalog. Throws a ConfigError. */
export function readImageModels(path: string | undefined, zdrAgreements: readonly string[]): readonly ImageModel[] {
  let text: unknown;
  try {
    text = JSON.parse(readFileSync(path ?? SHIPPED, 'utf8'));
  } catch (cause) {
    throw new ConfigError(`IMAGE_MODELS_FILE: ${cause instanceof SyntaxError ? 'is no JSON' : 'cannot be read'}`);
  }
  const read = schema.safeParse(text);
  if (!read.success) throw new ConfigError(`IMAGE_MODELS_FILE: ${read.error.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; ')}`);
  return read.data.models.map(({ id, provider, provider_model_id: providerModelId, parameters, pricing, data_policy: policy }) => ({
    id, provider, providerModelId,
    parameters: Buffer.from(JSON.stringify(parameters)),
    unitNanoUsd: new Map(Object.entries(pricing.image_per_unit).map(([size, price]) => [size, asNanoUsd(usdNumberToNano(price))])),
    promptPrice: asPrice(usdNumberToNano(pricing.input ?? 0)),
    // Unknown counts as yes.
    trainsOnData: policy.trains_on_data !== false,
    zdrByDefault: policy.zdr_default === true,
    zdrByAgreement: policy.zdr_by_agreement === true,
    hasAgreement: zdrAgreements.includes(provider),
  }));
}
