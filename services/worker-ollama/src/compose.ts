/** Composition root of worker-ollama. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { serveWorker } from '@signalbox/worker-kit/serve';
import { createOllamaAdapter } from './adapter.js';
import type { WorkerOllamaConfig } from './config.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerOllama(config: WorkerOllamaConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const media = createGuardedMediaLoader(config.FETCH_ALLOW, surroundings.clock);
  const settings = { keepAlive: config.OLLAMA_KEEP_ALIVE ?? '', contextTokensMin: config.OLLAMA_NUM_CTX };
  const adapter = createOllamaAdapter({ baseUrl: config.BASE_URL, settings, media });
  return serveWorker({ name: 'worker-ollama', config, surroundings, adapter, isCredentialOptional: true, ...options });
}
