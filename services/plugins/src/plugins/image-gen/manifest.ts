import { formatUsdJson } from '@signalbox/kernel/money';
import type { PluginManifest } from '@signalbox/plugin-kit/manifest';
import type { ImageModel } from '../../domain/image-models.js';

/** Most images per call. */
export const IMAGES_MAX = 4;

const pricesOf = ({ id, unitNanoUsd }: ImageModel): string => `${id} (${[...unitNanoUsd].map(([size, price]) => `${size} ${formatUsdJson(price)} USD`).join(', ')})`;

/** `models`: the installed ones, at least one. */
export function manifestOf(models: readonly ImageModel[]) {
  const sizes = [...new Set(['1024x1024', ...models.flatMap(({ unitNanoUsd }) => [...unitNanoUsd.keys()])])];
  return {
    id: 'image-gen',
    name: 'Image generation',
    description: 'Lets the model make images, which come with its answer.',
    isPaid: true,
    kind: 'tool',
    models: models.map(({ id, provider }) => ({ id, provider })),
    // The worker's limit for the provider is a little lower.
    timeoutMs: 120_000,
    options: {
      size: { type: 'string', description: 'Width and height in pixels.', default: '1024x1024', maxLength: 16, choices: sizes },
      n: { type: 'integer', description: 'Images of one description.', default: 1, min: 1, max: IMAGES_MAX },
      model: { type: 'string', description: `Model that makes them; the first that may serve the request when empty. ${models.map(pricesOf).join('; ')}.`, default: '', maxLength: 128, choices: ['', ...models.map(({ id }) => id)] },
    },
  } as const satisfies PluginManifest;
}

export type ImageGenOptions = ReturnType<typeof manifestOf>['options'];
