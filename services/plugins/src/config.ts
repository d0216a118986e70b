/** Settings of plugins. */
import { parseUsd } from '@signalbox/kernel/money';
import { allowListField } from '@signalbox/net-guard/allow-list-field';
import { addressesField, ConfigError, isAddress, loadConfig, logLevelField, portField, postgresUrlField, secretField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

const MEBIBYTE = 1_024 * 1_024;
const FEE_NANO_USD_MAX = 1_000_000_000_000n;

/** List of `plugin=usd`: what the account pays for a completed run. */
const feesField = () =>
  z
    .string()
    .default('')
    .transform((text, context) => {
      const fees = new Map<string, bigint>();
      for (const part of text.split(',').map((entry) => entry.trim()).filter((entry) => entry !== '')) {
        const [id = '', usd = '', ...rest] = part.split('=');
        let nano = -1n;
        try {
          nano = parseUsd(usd);
        } catch {
          // Reported below.
        }
        if (rest.length > 0 || !/^[a-z0-9-]+$/.test(id) || nano < 0n || nano > FEE_NANO_USD_MAX) {
          context.addIssue({ code: 'custom', message: 'expected plugin=usd, several separated by commas, each from 0 to 1000' });
          return z.NEVER;
        }
        if (fees.has(id)) {
          context.addIssue({ code: 'custom', message: `expected one fee of ${id}, which is named twice` });
          return z.NEVER;
        }
        fees.set(id, nano);
      }
      return fees as ReadonlyMap<string, bigint>;
    });

/** List of `provider=host:port`; a provider with several replicas is named several times. */
function workersOf(text: string, context: z.RefinementCtx): ReadonlyMap<string, readonly string[]> {
  const workers = new Map<string, string[]>();
  for (const part of text.split(',').map((entry) => entry.trim()).filter((entry) => entry !== '')) {
    const [, provider = '', address = ''] = /^([a-z0-9-]+)=(\S+)$/.exec(part) ?? [];
    if (provider === '' || !isAddress(address)) {
      context.addIssue({ code: 'custom', message: 'expected provider=host:port, several separated by commas' });
      return z.NEVER;
    }
    workers.set(provider, [...(workers.get(provider) ?? []), address]);
  }
  return workers;
}

const listField = () => z.string().default('').transform((text) => text.split(',').map((part) => part.trim()).filter((part) => part !== ''));
/** An address chosen by the operator; may be on loopback. */
const addressField = () => z.string().optional().transform((text) => (text === '' ? undefined : text)).refine((text) => text === undefined || /^https?:\/\/\S+$/i.test(text), 'expected an http or https URL')
  // Credentials in the URL would not be sent, so every call would be refused.
  .refine((text) => text === undefined || !/^https?:\/\/[^/?#]*@/i.test(text), 'must hold no user name and no password');

const schema = z
  .object({
    HOST: z.string().default('127.0.0.1'),
    GRPC_PORT: portField(0),
    METRICS_PORT: portField(0),
    LOG_LEVEL: logLevelField(),
    /** `postgres://…`; the schema `plugins` is created there. */
    DATABASE_URL: postgresUrlField(),
    /** Maximum number of database connections. */
    DATABASE_POOL_MAX: wholeNumberField(1, 100, 4),
    /** Apply missing migrations at start; `off` if `main.js migrate` does so before, under the role that owns the schema: the service then refuses to start on a schema that is too old. */
    MIGRATE_ON_START: z.enum(['on', 'off']).default('on'),
    /** Postgres cancels a statement after this long. */
    STATEMENT_TIMEOUT_MS: wholeNumberField(100, 60_000, 5_000),
    /** Plugin fees in US dollars per completed run: `pdf-reader=0.001,memory=0.0002`. */
    PLUGIN_FEES: feesField(),
    /** What web-search searches: the built-in index, or a service. */
    WEB_SEARCH_BACKEND: z.enum(['local', 'searxng', 'brave', 'tavily']).default('local'),
    /** Address of that service; required for searxng. */
    WEB_SEARCH_URL: addressField(),
    /** Credential of that service; required for brave and tavily. */
    WEB_SEARCH_KEY: secretField().optional(),
    /** Privacy guarantee of that service. With `none`, requests with `zdr` or `data_collection: deny` may not use it. */
    WEB_SEARCH_GUARANTEE: z.enum(['zdr', 'no-training', 'none']).default('none'),
    /** A catalog of books in the format of Gutendex, in addition to the built-in books. */
    GUTENDEX_URL: addressField(),
    /** `on` states that the memory store meets zero data retention. */
    MEMORY_ZDR: z.enum(['on', 'off']).default('off'),
    /** Most facts kept per user and namespace; the oldest are dropped. */
    MEMORY_FACTS_MAX: wholeNumberField(1, 10_000, 500),
    /** Largest document that pdf-reader reads. */
    PDF_BYTES_MAX: wholeNumberField(1_024, 64 * MEBIBYTE, 20 * MEBIBYTE),
    /** Longest time to fetch and read a document; at most PLUGINS_DEADLINE_MS, after which the request goes on without it. */
    PDF_TIMEOUT_MS: wholeNumberField(500, 60_000, 8_000),
    /** Must equal edge's setting. */
    PLUGINS_DEADLINE_MS: wholeNumberField(100, 120_000, 20_000),
    /** Memory limit of a process that reads a document. */
    PDF_MEMORY_MIB: wholeNumberField(128, 4_096, 512),
    /** Most documents read at once. */
    PDF_PROCESSES_MAX: wholeNumberField(1, 16, 2),
    /** Addresses of sandbox, separated by commas; empty = no code-exec. */
    SANDBOX_ADDRS: addressesField(''),
    /** Workers, `provider=host:port` separated by commas: those with an image model make images. */
    WORKERS: z.string().default('').transform(workersOf),
    /** Providers with an operator's credential, separated by commas; image models of others are not installed. */
    PROVIDERS: listField(),
    /** Providers with which the operator has a zero-retention agreement for the credential in use. */
    ZDR_AGREEMENTS: listField(),
    /** Image models with their prices; the shipped catalog by default. */
    IMAGE_MODELS_FILE: z.string().optional().transform((text) => (text === '' ? undefined : text)),
    /** Plugins to disable, separated by commas. */
    PLUGINS_OFF: listField(),
    /** Addresses or hosts beyond the public internet that clients' URLs may lead to. */
    FETCH_ALLOW: allowListField(),
  })
  .refine((config) => config.WEB_SEARCH_BACKEND !== 'searxng' || config.WEB_SEARCH_URL !== undefined, { path: ['WEB_SEARCH_URL'], message: 'is needed by searxng' })
  .refine((config) => (config.WEB_SEARCH_BACKEND !== 'brave' && config.WEB_SEARCH_BACKEND !== 'tavily') || config.WEB_SEARCH_KEY !== undefined, { path: ['WEB_SEARCH_KEY'], message: 'is needed by this backend' });

export type PluginsConfig = Readonly<z.infer<typeof schema>>;

/** Settings that launchers pass on from the operator's environment. */
export const PLUGIN_SETTINGS = [
  'PLUGIN_FEES', 'WEB_SEARCH_BACKEND', 'WEB_SEARCH_URL', 'WEB_SEARCH_KEY', 'WEB_SEARCH_GUARANTEE', 'GUTENDEX_URL', 'MEMORY_ZDR', 'MEMORY_FACTS_MAX', 'PDF_BYTES_MAX', 'PDF_TIMEOUT_MS', 'PLUGINS_DEADLINE_MS', 'PDF_MEMORY_MIB', 'PDF_PROCESSES_MAX',
  'FETCH_ALLOW', 'ZDR_AGREEMENTS', 'IMAGE_MODELS_FILE', 'PLUGINS_OFF',
] as const;

/** Throws ConfigError naming every wrong or missing variable. */
export function loadPluginsConfig(environment: Environment): PluginsConfig {
  const config = loadConfig(schema, environment);
  // The default was not chosen by the operator, so a lower PLUGINS_DEADLINE_MS silently limits it.
  const isTold = (environment['PDF_TIMEOUT_MS'] ?? '').trim() !== '';
  if (isTold && config.PDF_TIMEOUT_MS > config.PLUGINS_DEADLINE_MS) throw new ConfigError(`PDF_TIMEOUT_MS: must not be above PLUGINS_DEADLINE_MS (${config.PLUGINS_DEADLINE_MS}), after which a request goes on without what is read`);
  return config;
}
