/** Composition root of worker-bedrock. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { serveWorker } from '@signalbox/worker-kit/serve';
import { createBedrockAdapter } from './adapter.js';
import type { WorkerBedrockConfig } from './config.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerBedrock(config: WorkerBedrockConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const { clock } = surroundings;
  const adapterAt = (baseUrl: string) => createBedrockAdapter({ baseUrl, region: config.AWS_REGION, clock, media: createGuardedMediaLoader(config.FETCH_ALLOW, clock) });
  return serveWorker({ name: 'worker-bedrock', config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, ...options });
}
