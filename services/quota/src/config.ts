/** Settings of quota. */
import { addressesField, ConfigError, ENCODING_HINT, hasReadableUser, loadConfig, logLevelField, optionalWholeNumberField, portField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

function isRedisUrl(text: string): boolean {
  try {
    const { protocol, host } = new URL(text);
    return host !== '' && (protocol === 'redis:' || protocol === 'rediss:');
  } catch {
    return false;
  }
}

const schema = z.object({
  /** Address to listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** 0 = any free port. */
  GRPC_PORT: portField(0),
  /** Of /livez, /readyz and /metrics; 0 = any free port. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** `memory` works with one replica only and is lost at exit. */
  QUOTA_STORE: z.enum(['redis', 'memory']).default('redis'),
  /** Such as redis://127.0.0.1:6379; required for the Redis store. May hold a password: never logged. */
  REDIS_URL: z.string().refine(isRedisUrl, 'must be redis://host:port, or rediss://host:port').refine(hasReadableUser, ENCODING_HINT).optional(),
  /** Longest wait for Redis after a command is sent, not counting stalls of this process (at most twice as long in total): bounds the delay of a request when Redis is frozen. */
  REDIS_TIMEOUT_MS: wholeNumberField(10, 10_000, 50),
  /** Addresses of billing, separated by commas; empty = no ledger, and totals start at zero. */
  BILLING_ADDRS: addressesField(''),
  /** Where the ledger's totals are announced; needed unless a bus is handed in. */
  NATS_URL: z.string().optional(),
  /** Length of month and plan periods, for tests; absent = calendar months. */
  BILLING_PERIOD_SECONDS: optionalWholeNumberField(1, 31_536_000),
});

export type QuotaConfig = Readonly<z.infer<typeof schema>>;

/** Throws a ConfigError with one line per problem. */
export function loadQuotaConfig(environment: Environment): QuotaConfig {
  const config = loadConfig(schema, environment);
  if (config.QUOTA_STORE === 'redis' && config.REDIS_URL === undefined) {
    throw new ConfigError('REDIS_URL: is required when QUOTA_STORE is redis (the default); set QUOTA_STORE=memory to run without Redis');
  }
  return config;
}
