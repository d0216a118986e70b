/** Settings of worker-cohere: COHERE_API_KEY (or CO_API_KEY), COHERE_BASE_URL and those of every worker. */
import type { Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';

export type WorkerCohereConfig = WorkerConfig;

/** Throws ConfigError. */
export function loadWorkerCohereConfig(environment: Environment): WorkerCohereConfig {
  return loadWorkerConfig(environment, { credentials: ['COHERE_API_KEY', 'CO_API_KEY'], baseUrl: 'COHERE_BASE_URL', defaultBaseUrl: 'https://api.cohere.com/v2' });
}
