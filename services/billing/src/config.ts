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
  /** Maximum number of database connections; booking uses one, the rest answer calls. */
  DATABASE_POOL_MAX: wholeNumberField(2, 100, 6),
  /** Apply missing migrations at start; `off` if `main.js migrate` does so before, under the role that owns the schema: the service then refuses to start on a schema that is too old. */
  MIGRATE_ON_START: z.enum(['on', 'off']).default('on'),
  /** Time-out of the database. 8 s leaves room for two tries before the bus redelivers (30 s). */
  DATABASE_TIMEOUT_MS: wholeNumberField(100, 30_000, 8_000),
  /** Addresses of accounts, which has the terms of bills, separated by commas; empty = periods stay open and no bills are made. */
  ACCOUNTS_ADDRS: addressesField(''),
  /** Contract whose terms apply to accounts without one of their own. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Length of a period in seconds, for tests; absent = calendar months. */
  BILLING_PERIOD_SECONDS: optionalWholeNumberField(1, 31_536_000),
  /** Interval between attempts to close periods and reconcile. */
  RECONCILE_SECONDS: wholeNumberField(1, 86_400, 3_600),
  /** Routing decisions are kept this many days. */
  DECISIONS_KEPT_DAYS: wholeNumberField(1, 365, 7),
  /** Most routing decisions kept. */
  DECISIONS_KEPT_MAX: wholeNumberField(0, 10_000_000, 50_000),
  /** NATS server; not used when the composer passes a bus in. May contain a password: never logged. */
  NATS_URL: z.string().default('nats://127.0.0.1:4222'),
});

export type BillingConfig = Readonly<z.infer<typeof schema>>;

/** Throws a ConfigError naming every setting that is wrong. */
export function loadBillingConfig(environment: Environment): BillingConfig {
  return loadConfig(schema, environment);
}
