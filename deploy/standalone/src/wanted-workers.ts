/** Workers to start for an environment: one for each provider whose credential is set, else the simulator. */
import { isAzureWanted } from '@signalbox/worker-azure/config';
import { isBedrockWanted } from '@signalbox/worker-bedrock/config';
import { GOOGLE_PROVIDERS, isGoogleProviderWanted, type GoogleProvider } from '@signalbox/worker-google/config';
import { hasCredential } from '@signalbox/worker-kit/config';
import { isConfigured, isPresetId, PRESETS, presetOf, type PresetId } from '@signalbox/worker-openai-compatible/presets';

/** Providers with their own worker service, and the variables of their credential: the first one set counts. */
const OWN_WORKERS = [
  { service: 'worker-anthropic', provider: 'anthropic', credentials: ['ANTHROPIC_API_KEY'] },
  { service: 'worker-anthropic', provider: 'minimax', credentials: ['MINIMAX_API_KEY'] },
  { service: 'worker-cohere', provider: 'cohere', credentials: ['COHERE_API_KEY', 'CO_API_KEY'] },
  { service: 'worker-openai', provider: 'openai', credentials: ['OPENAI_API_KEY'] },
] as const;

type OwnWorker = (typeof OWN_WORKERS)[number];

export type WantedWorker =
  | Pick<OwnWorker, 'service' | 'provider'>
  | { readonly service: 'worker-azure'; readonly provider: 'azure-openai' }
  | { readonly service: 'worker-bedrock'; readonly provider: 'amazon-bedrock' }
  | { readonly service: 'worker-google'; readonly provider: GoogleProvider }
  | { readonly service: 'worker-ollama'; readonly provider: 'ollama' }
  | { readonly service: 'worker-openai-compatible'; readonly provider: PresetId }
  | { readonly service: 'worker-sim'; readonly provider: 'simulator' };

export type Environment = Readonly<Record<string, string | undefined>>;

const isSet = (environment: Environment, name: string): boolean => (environment[name] ?? '') !== '';

/** `hasOllama`: Ollama answers, or its address is configured. If it was only discovered, the simulator stays enabled. */
export function wantedWorkers(environment: Environment, hasOllama = false): readonly WantedWorker[] {
  const wanted: WantedWorker[] = [];
  for (const { service, provider, credentials } of OWN_WORKERS) if (credentials.some((name) => hasCredential(environment[name]))) wanted.push({ service, provider });
  if (isAzureWanted(environment)) wanted.push({ service: 'worker-azure', provider: 'azure-openai' });
  if (isBedrockWanted(environment)) wanted.push({ service: 'worker-bedrock', provider: 'amazon-bedrock' });
  for (const provider of GOOGLE_PROVIDERS) if (isGoogleProviderWanted(provider, environment)) wanted.push({ service: 'worker-google', provider });
  for (const provider of Object.keys(PRESETS).filter(isPresetId)) {
    if (isConfigured(presetOf(provider), environment)) wanted.push({ service: 'worker-openai-compatible', provider });
  }
  const simulator = environment['SIMULATOR'] ?? '';
  const isAnyConfigured = wanted.length > 0 || isSet(environment, 'OLLAMA_BASE_URL');
  if (hasOllama) wanted.push({ service: 'worker-ollama', provider: 'ollama' });
  if (simulator === 'on' || (!isAnyConfigured && simulator !== 'off')) wanted.push({ service: 'worker-sim', provider: 'simulator' });
  return wanted;
}

/** What the operator is told when nobody but the simulator answers, or nobody at all; undefined where that was asked for or real models are served. */
export function adviceOn(wanted: readonly WantedWorker[], environment: Environment): string | undefined {
  if (wanted.length === 0) return "no provider is enabled: set a provider's credential, such as OPENAI_API_KEY, or SIMULATOR=on; until then only accounts with their own credentials are served";
  if (environment['SIMULATOR'] === 'on' || wanted.some(({ service }) => service !== 'worker-sim')) return undefined;
  return "no provider's credential is set, so a simulator answers. For real models set one, such as OPENAI_API_KEY, in the environment or in .env, and start again";
}

/**
 * Workers that accounts' own credentials may need, besides those that are started anyway. BYOK_PROVIDERS lists them,
 * separated by commas; `off` = none; default: every provider whose address does not depend on the operator. Unknown names were refused before (provider-settings.ts).
 */
export function possibleWorkers(environment: Environment, wanted: readonly WantedWorker[]): readonly WantedWorker[] {
  const named = (environment['BYOK_PROVIDERS'] ?? '').split(',').map((part) => part.trim()).filter((part) => part !== '');
  const possible: WantedWorker[] = [
    ...OWN_WORKERS.map(({ service, provider }) => ({ service, provider })),
    { service: 'worker-bedrock', provider: 'amazon-bedrock' },
    { service: 'worker-google', provider: 'google-ai-studio' },
    // A host without a credential is the operator's own machine: an account's settings must never lead there.
    ...Object.keys(PRESETS).filter(isPresetId).filter((id) => presetOf(id).baseUrl !== '' && presetOf(id).isCredentialOptional !== true).map((provider) => ({ service: 'worker-openai-compatible', provider }) as const),
  ];
  return possible.filter(({ provider }) => !wanted.some((other) => other.provider === provider) && (named.length === 0 || named.includes(provider)));
}

/** Variables that a worker reads for its provider; presets name theirs themselves. */
const VARIABLES: Readonly<Record<Exclude<WantedWorker['provider'], PresetId>, readonly string[]>> = {
  'amazon-bedrock': ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_REGION', 'AWS_DEFAULT_REGION', 'BEDROCK_BASE_URL'],
  anthropic: ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'],
  'azure-openai': ['AZURE_API_KEY', 'AZURE_RESOURCE_NAME', 'AZURE_BASE_URL', 'AZURE_API_VERSION', 'AZURE_DEPLOYMENTS'],
  cohere: ['COHERE_API_KEY', 'CO_API_KEY', 'COHERE_BASE_URL'],
  'google-ai-studio': ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_BASE_URL'],
  'google-vertex': ['VERTEX_ACCESS_TOKEN', 'GOOGLE_APPLICATION_CREDENTIALS', 'VERTEX_BASE_URL', 'GOOGLE_VERTEX_PROJECT', 'GOOGLE_VERTEX_LOCATION'],
  minimax: ['MINIMAX_API_KEY', 'MINIMAX_BASE_URL'],
  ollama: ['OLLAMA_BASE_URL', 'OLLAMA_NUM_CTX', 'OLLAMA_KEEP_ALIVE'],
  openai: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
  simulator: [],
};

function variablesOf(provider: WantedWorker['provider']): readonly string[] {
  if (!isPresetId(provider)) return VARIABLES[provider];
  const { credentials, baseUrlVariable } = presetOf(provider);
  return [...credentials, baseUrlVariable];
}

/** Variables of all providers. */
export const PROVIDER_VARIABLES: readonly string[] = [...Object.values(VARIABLES).flat(), ...Object.keys(PRESETS).filter(isPresetId).flatMap(variablesOf)];

/** Credential, address and settings of that provider, as far as they are set, for its own worker only. */
export function providerSettings(provider: WantedWorker['provider'], environment: Environment): Readonly<Record<string, string>> {
  return Object.fromEntries(variablesOf(provider).flatMap((name): (readonly [string, string])[] => ((environment[name] ?? '') === '' ? [] : [[name, environment[name] ?? '']])));
}
