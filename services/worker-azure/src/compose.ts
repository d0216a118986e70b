/** Composition root of worker-azure. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { serveWorker } from '@signalbox/worker-kit/serve';
import { createAzureAdapter } from './adapter.js';
import type { WorkerAzureConfig } from './config.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerAzure(config: WorkerAzureConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const media = createGuardedMediaLoader(config.FETCH_ALLOW, surroundings.clock);
  const adapterAt = (baseUrl: string) => createAzureAdapter({ baseUrl, apiVersion: config.AZURE_API_VERSION, deployments: config.AZURE_DEPLOYMENTS, media });
  return serveWorker({ name: 'worker-azure', config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, ...options });
}
