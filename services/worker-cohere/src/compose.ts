/** Composition root of worker-cohere. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { serveWorker } from '@signalbox/worker-kit/serve';
import { createCohereAdapter } from './adapter.js';
import type { WorkerCohereConfig } from './config.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerCohere(config: WorkerCohereConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  return serveWorker({ name: 'worker-cohere', config, surroundings, adapter: createCohereAdapter(config.BASE_URL), adapterAt: createCohereAdapter, ...options });
}
