/** Generates images through the workers of their providers. */
import type { GenerateImagesRequest, GenerateImagesResponse__Output } from '@signalbox/contracts/worker';
import type { RpcClient } from '@signalbox/rpc/call';
import type { ImageMaker } from '../domain/ports.js';

/** Longer than a worker waits for its provider. */
const DEADLINE_MS = 115_000;

/** `workers` by provider. */
export function createImageWorkers(workers: ReadonlyMap<string, RpcClient>): ImageMaker {
  return {
    make: async ({ requestId, accountId, model, prompt, size, count, byokHandle }, signal) => {
      const worker = workers.get(model.provider);
      if (worker === undefined) return { kind: 'failed', failureClass: 'NOT_FOUND', publicMessage: '' };
      const request: GenerateImagesRequest = { requestId, accountId, providerModelId: model.providerModelId, prompt, count, size, parameters: model.parameters, byok: byokHandle !== undefined, byokHandle: byokHandle ?? '' };
      const { failed, images, promptTokens } = await worker.unary<GenerateImagesRequest, GenerateImagesResponse__Output>('GenerateImages', request, { requestId, signal, deadlineMs: DEADLINE_MS });
      if (failed !== null) return { kind: 'failed', failureClass: failed.class, publicMessage: failed.publicMessage };
      return { kind: 'made', images: images.map((image) => Buffer.from(image.buffer, image.byteOffset, image.byteLength)), promptTokens };
    },
  };
}
