/** Finds variables that are nearly a setting, or have the name that LiteLLM gives it: they would otherwise have no effect, and nobody would notice. */
import { isSlip } from '@signalbox/kernel/slip';
import { SETTING_NAMES } from './service-settings.js';
import { PROVIDER_VARIABLES, type Environment } from './wanted-workers.js';

/** Those that the launchers, every process or containers read. */
const OF_LAUNCHERS = [
  'ADMIN_PORT', 'ADMIN_TOKEN', 'ADMIN_URL', 'BILLING_PERIOD_SECONDS', 'BYOK_PROVIDERS', 'DASHBOARD_DIR', 'DATABASE_URL', 'DATA_DIR', 'EDGE_REPLICAS', 'GRPC_PORT', 'KEY_PEPPER', 'LOG_LEVEL', 'METRICS_PORT', 'NATS_URL', 'NODE_EXTRA_CA_CERTS',
  'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG', 'REDIS_URL', 'RPC_TLS_DIR', 'SECRETS_KEY', 'SERVICE_ROLE', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'WAL_DIR', 'WORKERS',
] as const;
const KNOWN: readonly string[] = [...new Set([...OF_LAUNCHERS, ...SETTING_NAMES, ...PROVIDER_VARIABLES])];

/** LiteLLM's names of settings, besides the rule that an address `…_API_BASE` is `…_BASE_URL` here. */
const OF_LITELLM: ReadonlyMap<string, string> = new Map([
  ['AWS_REGION_NAME', 'AWS_REGION'], ['HOSTED_VLLM_API_BASE', 'VLLM_BASE_URL'], ['HOSTED_VLLM_API_KEY', 'VLLM_API_KEY'], ['TOGETHERAI_API_KEY', 'TOGETHER_API_KEY'], ['VERTEXAI_LOCATION', 'GOOGLE_VERTEX_LOCATION'], ['VERTEXAI_PROJECT', 'GOOGLE_VERTEX_PROJECT'],
]);

/** Shorter names, without `_`, are a letter away from too many others. */
const LETTERS_MIN = 7;
const NAME_CHARS_MAX = 64;

const lettersOf = (name: string): string => name.replaceAll(/[_-]/g, '').toUpperCase();

/** Of each variable that is set, is no setting and differs from one by one letter, by `_`, or by upper and lower case, or is LiteLLM's name of one: its name, and the setting's. Nothing of its value. Variables of settings that are set themselves are left out. */
export function misspeltSettings(environment: Environment): readonly (readonly [given: string, meant: string])[] {
  const isSet = (name: string): boolean => (environment[name] ?? '').trim() !== '';
  const known = new Set(KNOWN);
  const candidates = KNOWN.filter((name) => lettersOf(name).length >= LETTERS_MIN && !isSet(name));
  return Object.keys(environment).filter((name) => isSet(name) && !known.has(name) && name.length <= NAME_CHARS_MAX && /^[a-z][\w-]*$/i.test(name)).flatMap((given) => {
    const ofLitellm = OF_LITELLM.get(given) ?? given.replace(/_API_BASE$/, '_BASE_URL');
    const meant = candidates.find((name) => name === ofLitellm) ?? candidates.find((name) => isSlip(lettersOf(name), lettersOf(given)));
    return meant === undefined ? [] : [[given, meant] as const];
  });
}
