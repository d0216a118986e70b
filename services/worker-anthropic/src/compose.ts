/** Composition root of worker-anthropic. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createAnthropicMessagesAdapter } from '@signalbox/worker-kit/anthropic-messages-adapter';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { serveWorker } from '@signalbox/worker-kit/serve';
import type { WorkerAnthropicConfig } from './config.js';
import { PRESETS } from './presets.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerAnthropic(config: WorkerAnthropicConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const media = createGuardedMediaLoader(config.FETCH_ALLOW, surroundings.clock);
  const adapterAt = (baseUrl: string) => createAnthropicMessagesAdapter({ provider: config.PROVIDER, baseUrl, quirks: PRESETS[config.PROVIDER].quirks, auth: 'x-api-key', media });
  return serveWorker({ name: `worker-${config.PROVIDER}`, config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, ...options });
}
