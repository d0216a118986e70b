/** Settings of worker-sim: those of every worker; it has no credential and its provider is inside. */
import type { Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';

export type WorkerSimConfig = WorkerConfig;

/** Throws ConfigError. */
export function loadWorkerSimConfig(environment: Environment): WorkerSimConfig {
  // The address is replaced by the simulator's own port once that is open.
  return loadWorkerConfig(environment, { credentials: [], baseUrl: 'SIMULATOR_BASE_URL', defaultBaseUrl: 'http://127.0.0.1:1/v1' });
}
