/** Settings of accounts. */
import { allowListField } from '@signalbox/net-guard/allow-list-field';
import { loadConfig, logLevelField, portField, postgresUrlField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { Secret } from '@signalbox/runtime/secret';
import { z } from 'zod';
import { valuesIn } from './domain/secrets-keys.js';

const PEPPER_LENGTH_MIN = 16;

const schema = z.object({
  /** Address of the doors; loopback unless the operator opens it. */
  HOST: z.string().default('127.0.0.1'),
  GRPC_PORT: portField(0),
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** `postgres://…`; the schema `accounts` is made there. */
  DATABASE_URL: postgresUrlField(),
  /** Digests of keys are made under it; kept outside the database, the same value as edge has. */
  KEY_PEPPER: z.string().min(PEPPER_LENGTH_MIN, `must have at least ${PEPPER_LENGTH_MIN} characters`).transform((value) => new Secret(value)),
  /** Provider credentials of accounts are sealed under it. */
  SECRETS_KEY: z.string().min(PEPPER_LENGTH_MIN, `must have at least ${PEPPER_LENGTH_MIN} characters`).transform((value) => new Secret(value)),
  /** Earlier values of SECRETS_KEY, with commas: still read, and left behind at the next start. One that had commas, or a line break at its end, is found too. */
  SECRETS_KEYS_OLD: z
    .string()
    .default('')
    .transform((text) => valuesIn(text).map((value) => new Secret(value))),
  /** What an account's own provider address may be beside the public internet, with commas, as FETCH_ALLOW of workers. */
  FETCH_ALLOW: allowListField(),
  /** Which contract's terms hold for accounts that name none. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Needed unless the composition root is given a bus. */
  NATS_URL: z.string().optional(),
  /** A session of the dashboard that is not used for this long has ended. */
  SESSION_IDLE_SECONDS: wholeNumberField(60, 604_800, 3_600),
  /** And so has one that is this old, used or not. */
  SESSION_ABSOLUTE_SECONDS: wholeNumberField(60, 2_592_000, 43_200),
  /** Connections to the database at most. */
  DATABASE_POOL_MAX: wholeNumberField(1, 100, 8),
  /** Apply what the schema lacks; `off` where `main.js migrate` does so before, under the role that owns it: a schema that is too old then stops the start. */
  MIGRATE_ON_START: z.enum(['on', 'off']).default('on'),
  /** How long a request that was sent with an Idempotency-Key counts as running after its edge was last heard of; edge renews each third of it. */
  CLAIM_LEASE_SECONDS: wholeNumberField(1, 3_600, 60),
  /** The server cancels a statement after this long. */
  STATEMENT_TIMEOUT_MS: wholeNumberField(100, 60_000, 2_000),
});

export type AccountsConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError naming every wrong or missing variable. */
export function loadAccountsConfig(environment: Environment): AccountsConfig {
  return loadConfig(schema, environment);
}
