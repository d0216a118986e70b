/** Settings of accounts. */
import { loadConfig, logLevelField, portField, secretField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { Secret } from '@signalbox/runtime/secret';
import { z } from 'zod';

const PEPPER_LENGTH_MIN = 16;

const schema = z.object({
  /** Address of the doors; loopback unless the operator opens it. */
  HOST: z.string().default('127.0.0.1'),
  GRPC_PORT: portField(0),
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** `postgres://…`; the schema `accounts` is made there. */
  DATABASE_URL: secretField(),
  /** Digests of keys are made under it; kept outside the database, the same value as edge has. */
  KEY_PEPPER: z.string().min(PEPPER_LENGTH_MIN, `must have at least ${PEPPER_LENGTH_MIN} characters`).transform((value) => new Secret(value)),
  /** Needed unless the composition root is given a bus. */
  NATS_URL: z.string().optional(),
  /** Connections to the database at most. */
  DATABASE_POOL_MAX: wholeNumberField(1, 100, 8),
  /** The server cancels a statement after this long. */
  STATEMENT_TIMEOUT_MS: wholeNumberField(100, 60_000, 2_000),
});

export type AccountsConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError naming every wrong or missing variable. */
export function loadAccountsConfig(environment: Environment): AccountsConfig {
  return loadConfig(schema, environment);
}
