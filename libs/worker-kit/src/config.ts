/** Settings that every worker has. */
import { allowListField } from '@signalbox/net-guard/allow-list-field';
import { addressesField, ConfigError, loadConfig, logLevelField, portField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { Secret } from '@signalbox/runtime/secret';
import { z } from 'zod';

const schema = z.object({
  /** Address to listen on. Beyond loopback the RPC door needs certificates (RPC_TLS_DIR). */
  HOST: z.string().default('127.0.0.1'),
  /** Port of the RPC door; 0 = any free one. */
  GRPC_PORT: portField(0),
  /** Port of /livez, /readyz and /metrics; 0 = any free one. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Folder of the write-ahead logs; each worker uses the subfolder named after its provider. */
  WAL_DIR: z.string().default('.data/wal'),
  /** Addresses of the replicas of quota, separated by commas. */
  QUOTA_ADDRS: addressesField('127.0.0.1:9102'),
  /** Addresses of the replicas of billing, separated by commas. */
  BILLING_ADDRS: addressesField('127.0.0.1:9104'),
  /** Addresses of the replicas of accounts, separated by commas. Accounts' own credentials come from there. */
  ACCOUNTS_ADDRS: addressesField('127.0.0.1:9101'),
  /** NATS server; not used when the composer passes a bus in. */
  NATS_URL: z.string().default('nats://127.0.0.1:4222'),
  /** Provider's credentials, separated by commas; they are used in turn. */
  API_KEYS: z
    .string()
    .default('')
    .transform((text) => text.split(',').map((key) => key.trim()).filter((key) => key !== ''))
    // With other characters every call would fail on an invalid header.
    .refine((keys) => keys.every((key) => /^[\x21-\x7e]+$/.test(key)), 'must be printable characters without blanks or line breaks')
    .transform((keys) => keys.map((key) => new Secret(key))),
  /** Provider's address, path included; `/chat/completions` and the like are appended. */
  BASE_URL: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }),
  /** Non-public addresses that may be connected to, to fetch clients' images and files and for accounts' own provider addresses: hosts, host:port, ranges such as 10.1.0.0/16, separated by commas. */
  FETCH_ALLOW: allowListField(),
  /** How long a stop (SIGTERM) waits for running streams. It then waits as long again, at most a minute, for the usage of clients that left. */
  DRAIN_MS: wholeNumberField(0, 600_000, 30_000),
});

export type WorkerConfig = Readonly<z.infer<typeof schema>>;

export interface ProviderVariables {
  /** Names of the variables that may hold the credential; the first one that is set counts. Empty = the provider needs none. */
  readonly credentials: readonly string[];
  /** Name of the variable that replaces the provider's address. */
  readonly baseUrl: string;
  readonly defaultBaseUrl: string;
}

/** An incomplete configuration of a provider: the variable that is set, and what is missing to serve the provider with the operator's credential. */
export interface Lack {
  /** Name of a variable that is set. */
  readonly given: string;
  /** Names of the missing variables, for a person: `A`, or `A or B`. */
  readonly missing: string;
}

/** Whether a list of credentials, separated by commas, has one. */
export const hasCredential = (list: string | undefined): boolean => (list ?? '').split(',').some((part) => part.trim() !== '');

/** Finds a list of credentials that has none, such as two empty variables with a comma between them. */
export function emptyListOf(credentials: readonly string[], environment: Environment): Lack | undefined {
  const given = credentials.find((name) => (environment[name] ?? '') !== '');
  return given === undefined || credentials.some((name) => hasCredential(environment[name])) ? undefined : { given, missing: 'a credential in it' };
}

/** Finds an address without a credential, or a credential without an address where there is no default. Undefined if the configuration is complete or absent. */
export function lackOf({ credentials, baseUrl, defaultBaseUrl }: ProviderVariables, environment: Environment): Lack | undefined {
  const empty = emptyListOf(credentials, environment);
  if (empty !== undefined) return empty;
  const isSet = (name: string): boolean => (environment[name] ?? '') !== '';
  const credential = credentials.find((name) => hasCredential(environment[name]));
  if (credential === undefined) return isSet(baseUrl) ? { given: baseUrl, missing: credentials.join(' or ') } : undefined;
  return defaultBaseUrl === '' && !isSet(baseUrl) ? { given: credential, missing: baseUrl } : undefined;
}

/** Throws a ConfigError that names the provider's own variables; if several may hold the credential, the one that is set. */
export function loadWorkerConfig(environment: Environment, variables: ProviderVariables): WorkerConfig {
  const credential = variables.credentials.find((name) => hasCredential(environment[name]));
  try {
    return loadConfig(schema, {
      ...environment,
      API_KEYS: credential === undefined ? undefined : environment[credential],
      BASE_URL: environment[variables.baseUrl] || variables.defaultBaseUrl,
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(error.message.replaceAll('BASE_URL', variables.baseUrl).replaceAll('API_KEYS', credential ?? variables.credentials[0] ?? 'API_KEYS'));
    throw error;
  }
}
