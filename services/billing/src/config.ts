/** Settings of billing. */
import { addressesField, loadConfig, logLevelField, optionalWholeNumberField, portField, postgresUrlField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

const schema = z.object({
  /** Address the doors listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** 0 = any free port. */
  GRPC_PORT: portField(0),
  /** Of /livez, /readyz and /metrics; 0 = any free port. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Such as postgres://user:password@127.0.0.1:5432/signalbox; never logged. */
  DATABASE_URL: postgresUrlField(),
  /** Connections at most; booking uses one, the rest answer calls. */
  DATABASE_POOL_MAX: wholeNumberField(2, 100, 6),
  /** Apply what the schema lacks; `off` where `main.js migrate` does so before, under the role that owns it: a schema that is too old then stops the start. */
  MIGRATE_ON_START: z.enum(['on', 'off']).default('on'),
  /** Milliseconds; 8 s leaves room for two tries before the bus delivers again (30 s). */
  DATABASE_TIMEOUT_MS: wholeNumberField(100, 30_000, 8_000),
  /** Comma-separated `host:port` of accounts, whose terms make bills; empty = periods stay open and bills are not made. */
  ACCOUNTS_ADDRS: addressesField(''),
  /** Which contract's terms hold for accounts that name none. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Length of a period in seconds, for tests; absent = calendar months. */
  BILLING_PERIOD_SECONDS: optionalWholeNumberField(1, 31_536_000),
  /** Seconds between rounds of closing and comparing. */
  RECONCILE_SECONDS: wholeNumberField(1, 86_400, 3_600),
  /** Decisions of routing are kept this many days, */
  DECISIONS_KEPT_DAYS: wholeNumberField(1, 365, 7),
  /** and at most this many of them. */
  DECISIONS_KEPT_MAX: wholeNumberField(0, 10_000_000, 50_000),
  /** Used when no bus is given. May hold a password: never logged. */
  NATS_URL: z.string().default('nats://127.0.0.1:4222'),
});

export type BillingConfig = Readonly<z.infer<typeof schema>>;

/** Throws a ConfigError naming every setting that is wrong. */
export function loadBillingConfig(environment: Environment): BillingConfig {
  return loadConfig(schema, environment);
}
