/** Settings of accounts. */
import { allowListField } from '@signalbox/net-guard/allow-list-field';
import { loadConfig, logLevelField, portField, postgresUrlField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { Secret } from '@signalbox/runtime/secret';
import { z } from 'zod';
import { valuesIn } from './domain/secrets-keys.js';

const PEPPER_LENGTH_MIN = 16;

const schema = z.object({
  /** Address to listen on; loopback unless the operator opens it. */
  HOST: z.string().default('127.0.0.1'),
  GRPC_PORT: portField(0),
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** `postgres://…`; the schema `accounts` is created there. */
  DATABASE_URL: postgresUrlField(),
  /** Key of the HMAC of API keys. Keep it outside the database; edge and accounts need the same value. */
  KEY_PEPPER: z.string().min(PEPPER_LENGTH_MIN, `must have at least ${PEPPER_LENGTH_MIN} characters`).transform((value) => new Secret(value)),
  /** Encrypts accounts' own provider credentials. */
  SECRETS_KEY: z.string().min(PEPPER_LENGTH_MIN, `must have at least ${PEPPER_LENGTH_MIN} characters`).transform((value) => new Secret(value)),
  /** Earlier values of SECRETS_KEY, separated by commas: still accepted for reading; the next start re-encrypts under SECRETS_KEY. A value that contained commas, or ended in a line break, works too. */
  SECRETS_KEYS_OLD: z
    .string()
    .default('')
    .transform((text) => valuesIn(text).map((value) => new Secret(value))),
  /** Where an account's own provider address may lead beyond the public internet, separated by commas; as FETCH_ALLOW of workers. */
  FETCH_ALLOW: allowListField(),
  /** Contract whose terms apply to accounts without one of their own. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Required unless the composition root gets a bus. */
  NATS_URL: z.string().optional(),
  /** A dashboard session ends after this long without use. */
  SESSION_IDLE_SECONDS: wholeNumberField(60, 604_800, 3_600),
  /** A dashboard session ends at this age, used or not. */
  SESSION_ABSOLUTE_SECONDS: wholeNumberField(60, 2_592_000, 43_200),
  /** Maximum number of database connections. */
  DATABASE_POOL_MAX: wholeNumberField(1, 100, 8),
  /** Apply missing migrations at start; `off` if `main.js migrate` does so before, under the role that owns the schema: the service then refuses to start on a schema that is too old. */
  MIGRATE_ON_START: z.enum(['on', 'off']).default('on'),
  /** How long a request with an Idempotency-Key counts as running after the last sign of life of its edge; edge renews it every third of this time. */
  CLAIM_LEASE_SECONDS: wholeNumberField(1, 3_600, 60),
  /** Postgres cancels a statement after this long. */
  STATEMENT_TIMEOUT_MS: wholeNumberField(100, 60_000, 2_000),
});

export type AccountsConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError naming every wrong or missing variable. */
export function loadAccountsConfig(environment: Environment): AccountsConfig {
  return loadConfig(schema, environment);
}
