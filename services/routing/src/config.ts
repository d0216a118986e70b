/** Settings of the routing service. */
import { ENCODING_HINT, hasReadableUser, loadConfig, logLevelField, portField, shareField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

const listField = () =>
  z
    .string()
    .default('')
    .transform((text) => [...new Set(text.split(',').map((part) => part.trim()).filter((part) => part !== ''))]);

/** Accepts what the bus accepts. Checked here, since routing starts without the bus and would otherwise retry forever. */
function isNatsUrl(text: string): boolean {
  return text.split(',').every((server) => {
    try {
      const { protocol, host } = new URL(server.trim());
      return host !== '' && (protocol === 'nats:' || protocol === 'tls:');
    } catch {
      return false;
    }
  });
}

const schema = z.object({
  /** Address to listen on. */
  HOST: z.string().min(1).default('127.0.0.1'),
  /** 0 = any free port. */
  GRPC_PORT: portField(0),
  /** 0 = any free port. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Directory with models.json and providers.json; the shipped catalog by default. */
  CATALOG_DIR: z.string().default(''),
  /** Quality artefact of `auto`; the shipped one by default. */
  QUALITY_FILE: z.string().default(''),
  /** A canary artefact, used for QUALITY_CANARY_SHARE of conversations; empty = none. Refused if its validation is worse. */
  QUALITY_CANARY_FILE: z.string().default(''),
  /** Share of conversations that use the canary. */
  QUALITY_CANARY_SHARE: shareField(0.05),
  /** Directory for earlier catalogs, so that old decisions can be replayed after a restart. Created if missing, refused if not writable; empty = kept in memory only. */
  SNAPSHOT_DIR: z.string().default(''),
  /** Most decisions recorded per second; 0 = none. */
  DECISIONS_PER_SECOND_MAX: wholeNumberField(0, 10_000, 50),
  /** Whether `auto` may occasionally try other good models, within its bounds. */
  EXPLORATION: z.enum(['on', 'off']).default('on'),
  /** Providers with a running worker and the operator's credential, separated by commas. */
  PROVIDERS: listField(),
  /** Further providers with a running worker, served only to accounts with their own credential; `off` = none. */
  BYOK_PROVIDERS: listField().transform((ids) => (ids.length === 1 && ids[0] === 'off' ? [] : ids)),
  /** `provider/model` list for providers that have only some of their models, such as the operator's own server; their other models are not served. A provider without a model offers none. */
  OFFERED_MODELS: listField(),
  /** Providers with which the operator has a zero-retention agreement for the credential in use. */
  ZDR_AGREEMENTS: listField(),
  /** The built-in provider: `auto` = only when PROVIDERS names no other. */
  SIMULATOR: z.enum(['on', 'off', 'auto']).default('auto'),
  /** Event bus; empty = no live statistics unless a bus is handed in. */
  NATS_URL: z.string().refine((text) => text === '' || isNatsUrl(text), 'must be nats://host:port, several with commas').refine((text) => text.split(',').every((server) => hasReadableUser(server.trim())), ENCODING_HINT).default(''),
});

export type RoutingConfig = Readonly<z.infer<typeof schema>>;

/** Reads the settings; throws ConfigError naming every wrong variable. */
export function loadRoutingConfig(environment: Environment): RoutingConfig {
  return loadConfig(schema, environment);
}
