/** Reports settings that have no effect, by name, at the start. */
import { ConfigError } from '@signalbox/runtime/config';
import { PRESETS as MESSAGES_PRESETS } from '@signalbox/worker-anthropic/presets';
import { azureLack } from '@signalbox/worker-azure/config';
import { bedrockLack } from '@signalbox/worker-bedrock/config';
import { GOOGLE_PROVIDERS, googleLack } from '@signalbox/worker-google/config';
import { emptyListOf, lackOf, type Lack, type ProviderVariables } from '@signalbox/worker-kit/config';
import { isConfigured, isPresetId, PRESETS, presetOf } from '@signalbox/worker-openai-compatible/presets';
import { misspeltSettings } from '@signalbox/runtime/misspelt-settings';
import { SETTING_NAMES } from './service-settings.js';
import { possibleWorkers, PROVIDER_VARIABLES, type Environment } from './wanted-workers.js';

const OWN: Readonly<Record<string, ProviderVariables>> = {
  ...Object.fromEntries(Object.entries(MESSAGES_PRESETS).map(([provider, { credential, baseUrlVariable, baseUrl }]) => [provider, { credentials: [credential], baseUrl: baseUrlVariable, defaultBaseUrl: baseUrl }])),
  cohere: { credentials: ['COHERE_API_KEY', 'CO_API_KEY'], baseUrl: 'COHERE_BASE_URL', defaultBaseUrl: 'its own' },
  openai: { credentials: ['OPENAI_API_KEY'], baseUrl: 'OPENAI_BASE_URL', defaultBaseUrl: 'its own' },
};

/** Providers with incomplete settings, by catalog id. */
function lackingProviders(environment: Environment): ReadonlyMap<string, Lack> {
  const lacks: (readonly [string, Lack | undefined])[] = [
    ...Object.entries(OWN).map(([provider, variables]) => [provider, lackOf(variables, environment)] as const),
    ['azure-openai', azureLack(environment)],
    ['amazon-bedrock', bedrockLack(environment)],
    ...GOOGLE_PROVIDERS.map((provider) => [provider, googleLack(provider, environment)] as const),
    ...Object.keys(PRESETS).filter(isPresetId).map((id) => {
      const { credentials, baseUrl, baseUrlVariable, isCredentialOptional } = presetOf(id);
      if (isCredentialOptional === true) return [id, isConfigured(presetOf(id), environment) ? undefined : emptyListOf(credentials, environment)] as const;
      return [id, lackOf({ credentials, baseUrl: baseUrlVariable, defaultBaseUrl: baseUrl }, environment)] as const;
    }),
  ];
  return new Map(lacks.filter((entry): entry is readonly [string, Lack] => entry[1] !== undefined));
}

/** Settings that the launchers read, for themselves and for each service. */
const OF_LAUNCHERS: readonly string[] = [
  ...['ADMIN_PORT', 'ADMIN_TOKEN', 'ADMIN_URL', 'BILLING_PERIOD_SECONDS', 'BYOK_PROVIDERS', 'DASHBOARD_DIR', 'DATABASE_URL', 'DATA_DIR', 'EDGE_REPLICAS', 'GRPC_PORT', 'KEY_PEPPER', 'LOG_LEVEL', 'METRICS_PORT', 'NATS_URL', 'NODE_EXTRA_CA_CERTS',
    'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG', 'REDIS_URL', 'RPC_TLS_DIR', 'SECRETS_KEY', 'SERVICE_ROLE', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'WAL_DIR', 'WORKERS'],
  ...SETTING_NAMES,
  ...PROVIDER_VARIABLES,
];

/** Stores that only the split system uses; in the all-in-one process, counters are in memory and events stay in the process. */
const STORES_OF_THE_SPLIT = ['REDIS_URL', 'NATS_URL'] as const;

/** For the all-in-one process: prints a line for each store that is set but not used. */
export function tellUnusedStores(environment: Environment, tell: (line: string) => void): void {
  for (const name of STORES_OF_THE_SPLIT) if ((environment[name] ?? '').trim() !== '') tell(`signalbox: ${name} is set and not used: npm start counts in its own memory; npm run start:split uses it`);
}

/** Prints a line for each provider that stays off because its settings are incomplete, and for each variable that looks like a misspelt setting. Throws a ConfigError if a setting names a provider that does not exist. */
export function checkProviderSettings(environment: Environment, tell: (line: string) => void): void {
  const problems: string[] = [];
  const named = (environment['BYOK_PROVIDERS'] ?? '').split(',').map((part) => part.trim()).filter((part) => part !== '');
  const possible: readonly string[] = possibleWorkers({}, []).map(({ provider }) => provider);
  const unknown = named.filter((id) => !possible.includes(id));
  if (unknown.length > 0 && named.join() !== 'off') problems.push(`BYOK_PROVIDERS: accounts cannot bring credentials for ${unknown.join(', ')} here; expected off, or ids of ${[...possible].sort().join(', ')}`);
  if (!['', 'on', 'off'].includes(environment['OLLAMA'] ?? '')) problems.push('OLLAMA: expected on (it is looked for, the default) or off');
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  for (const [provider, { given, missing }] of lackingProviders(environment)) tell(`signalbox: ${provider} stays off: ${given} is set without ${missing}`);
  for (const [given, meant] of misspeltSettings(environment, OF_LAUNCHERS)) tell(`signalbox: ${given} is set and not used: did you mean ${meant}?`);
}
