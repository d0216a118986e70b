/** Selects the settings of each service from the operator's environment. Addresses, ports and secrets are set by the launcher. */
import { PLUGIN_SETTINGS } from '@signalbox/plugins/config';
import type { Environment } from './wanted-workers.js';

const SETTINGS = {
  accounts: ['CONTRACT_VARIANT', 'SECRETS_KEYS_OLD', 'FETCH_ALLOW', 'SESSION_IDLE_SECONDS', 'SESSION_ABSOLUTE_SECONDS', 'CLAIM_LEASE_SECONDS', 'DATABASE_POOL_MAX', 'MIGRATE_ON_START', 'STATEMENT_TIMEOUT_MS'],
  billing: ['CONTRACT_VARIANT', 'RECONCILE_SECONDS', 'DECISIONS_KEPT_DAYS', 'DECISIONS_KEPT_MAX', 'DATABASE_POOL_MAX', 'MIGRATE_ON_START', 'DATABASE_TIMEOUT_MS'],
  edge: ['CONTRACT_VARIANT', 'BODY_BYTES_MAX', 'IN_FLIGHT_MAX', 'HEARTBEAT_MS', 'QUOTA_DEADLINE_MS', 'PLUGINS_DEADLINE_MS', 'DRAIN_MS', 'ACCESS_LOG_PER_MILLE'],
  plugins: [...PLUGIN_SETTINGS, 'DATABASE_POOL_MAX', 'MIGRATE_ON_START', 'STATEMENT_TIMEOUT_MS'],
  quota: ['REDIS_TIMEOUT_MS'],
  routing: ['SIMULATOR', 'CATALOG_DIR', 'ZDR_AGREEMENTS', 'QUALITY_FILE', 'QUALITY_CANARY_FILE', 'QUALITY_CANARY_SHARE', 'SNAPSHOT_DIR', 'DECISIONS_PER_SECOND_MAX', 'EXPLORATION'],
  sandbox: ['SANDBOX_CONCURRENCY', 'SANDBOX_NETWORK_FENCE'],
  /** For all workers; those of a single provider are in `providerSettings`. */
  worker: ['DRAIN_MS', 'FETCH_ALLOW'],
} as const;

export const SETTING_NAMES: readonly string[] = Object.values(SETTINGS).flat();

/** The settings of that service that are set, without those of other services. */
export function serviceSettings(service: keyof typeof SETTINGS, environment: Environment): Readonly<Record<string, string>> {
  return Object.fromEntries(SETTINGS[service].flatMap((name): (readonly [string, string])[] => ((environment[name] ?? '') === '' ? [] : [[name, environment[name] ?? '']])));
}
