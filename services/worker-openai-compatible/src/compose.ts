/** Composition root of worker-openai-compatible. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import { serveWorker } from '@signalbox/worker-kit/serve';
import type { WorkerOpenaiCompatibleConfig } from './config.js';
import { presetOf } from './presets.js';

/** Without a `bus` the service connects to NATS_URL by itself. */
export function composeWorkerOpenaiCompatible(config: WorkerOpenaiCompatibleConfig, surroundings: Surroundings, options: { readonly bus?: Bus } = {}): Service {
  const preset = presetOf(config.PROVIDER);
  const adapter = createOpenAiChatAdapter({ provider: config.PROVIDER, baseUrl: config.BASE_URL, quirks: preset.quirks });
  return serveWorker({ name: `worker-${config.PROVIDER}`, config, surroundings, adapter, isCredentialOptional: preset.isCredentialOptional ?? false, ...options });
}
