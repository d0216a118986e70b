/** Settings of worker-openai: OPENAI_API_KEY, OPENAI_BASE_URL and those of every worker. */
import type { Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';

export type WorkerOpenaiConfig = WorkerConfig;

/** Throws ConfigError. */
export function loadWorkerOpenaiConfig(environment: Environment): WorkerOpenaiConfig {
  return loadWorkerConfig(environment, { credentials: ['OPENAI_API_KEY'], baseUrl: 'OPENAI_BASE_URL', defaultBaseUrl: 'https://api.openai.com/v1' });
}
