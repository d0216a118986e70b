/** Composition root of worker-openai-compatible. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import { serveWorker } from '@signalbox/worker-kit/serve';
import type { WorkerOpenaiCompatibleConfig } from './config.js';
import { presetOf } from './presets.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerOpenaiCompatible(config: WorkerOpenaiCompatibleConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const preset = presetOf(config.PROVIDER);
  const media = createGuardedMediaLoader(config.FETCH_ALLOW, surroundings.clock);
  const adapterAt = (baseUrl: string) => createOpenAiChatAdapter({ provider: config.PROVIDER, baseUrl, quirks: preset.quirks, media });
  return serveWorker({ name: `worker-${config.PROVIDER}`, config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, isCredentialOptional: preset.isCredentialOptional ?? false, ...options });
}
