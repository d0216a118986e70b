/** Composition root of worker-google. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Journal } from '@signalbox/worker-kit/journal';
import { createGuardedMediaLoader } from '@signalbox/worker-kit/media-loader';
import { serveWorker } from '@signalbox/worker-kit/serve';
import { createAccessTokens } from './access-tokens.js';
import type { WorkerGoogleConfig } from './config.js';
import { createGenerateContentAdapter } from './generate-content-adapter.js';
import { exchangeAssertion } from './token-endpoint.js';
import { createVertexAdapter } from './vertex-adapter.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. */
export function composeWorkerGoogle(config: WorkerGoogleConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const { clock } = surroundings;
  const { PROVIDER: provider } = config;
  const media = createGuardedMediaLoader(config.FETCH_ALLOW, clock);
  const adapterAt = (baseUrl: string) =>
    provider === 'google-vertex'
      ? createVertexAdapter({ baseUrl, tokens: createAccessTokens(exchangeAssertion, clock), media })
      : createGenerateContentAdapter({ provider, baseUrl, auth: 'x-goog-api-key', withCallIds: true, media });
  return serveWorker({ name: `worker-${provider}`, config, surroundings, adapter: adapterAt(config.BASE_URL), adapterAt, ...options });
}
