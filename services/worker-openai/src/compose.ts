/** Composition root of worker-openai. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import { OPENAI } from '@signalbox/wires/openai-chat/quirks';
import { serveWorker } from '@signalbox/worker-kit/serve';
import type { WorkerOpenaiConfig } from './config.js';

/** Without a `bus` the service connects to NATS_URL by itself. */
export function composeWorkerOpenai(config: WorkerOpenaiConfig, surroundings: Surroundings, options: { readonly bus?: Bus } = {}): Service {
  const adapterAt = (baseUrl: string) => createOpenAiChatAdapter({ provider: 'openai', baseUrl, quirks: OPENAI });
  return serveWorker({ name: 'worker-openai', config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, ...options });
}
