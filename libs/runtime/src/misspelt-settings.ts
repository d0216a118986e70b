/** Finds variables that are nearly a setting, or have the name that LiteLLM gives it: they would otherwise have no effect, and nobody would notice. */
import { isSlip } from '@signalbox/kernel/slip';
import type { Environment } from './config.js';
import { SETTING_NAMES } from './setting-names.js';

/** Read by processes besides the settings of a schema. */
const FURTHER = ['OTEL_EXPORTER_OTLP_HEADERS', 'SSL_CERT_DIR', 'SSL_CERT_FILE'] as const;
const KNOWN: ReadonlySet<string> = new Set([...FURTHER, ...Object.values(SETTING_NAMES).flat()]);

/** LiteLLM's names of settings, besides the rule that an address `…_API_BASE` is `…_BASE_URL` here. */
const OF_LITELLM: ReadonlyMap<string, string> = new Map([
  ['AWS_REGION_NAME', 'AWS_REGION'], ['HOSTED_VLLM_API_BASE', 'VLLM_BASE_URL'], ['HOSTED_VLLM_API_KEY', 'VLLM_API_KEY'], ['TOGETHERAI_API_KEY', 'TOGETHER_API_KEY'], ['VERTEXAI_LOCATION', 'GOOGLE_VERTEX_LOCATION'], ['VERTEXAI_PROJECT', 'GOOGLE_VERTEX_PROJECT'],
]);

/** Shorter names, without `_`, are a letter away from too many others. */
const LETTERS_MIN = 7;
const NAME_CHARS_MAX = 64;

/** What Kubernetes and Docker set for each neighbour of a container. */
const OF_NEIGHBOURS = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?$/;
const ADDRESS_OF_NEIGHBOUR = /^(?:tcp|udp|sctp):\/\//;

/** Before the name of each line of a settings' file that a container is shown, but not given: with this prefix none of them is a setting. */
export const SHOWN_PREFIX = 'SHOWN_';

/** Settings that a service reads; `service` as in the folder `services/`. */
export const settingsReadBy = (service: string): readonly string[] => [...FURTHER, ...(SETTING_NAMES['process'] ?? []), ...(SETTING_NAMES[service] ?? [])];

const lettersOf = (name: string): string => name.replaceAll(/[_-]/g, '').toUpperCase();

/**
 * Of each variable that is set, is no setting and differs from one by one letter, by `_`, or by upper and lower case, or is LiteLLM's name of one:
 * its name, and the setting's. Nothing of its value. Left out: variables of settings that are set themselves, and those that an
 * orchestrator sets. `own`: the settings that may be meant, which are those that the process reads.
 */
export function misspeltSettings(environment: Environment, own: readonly string[]): readonly (readonly [given: string, meant: string])[] {
  const isSet = (name: string): boolean => (environment[name] ?? '').trim() !== '';
  const candidates = own.map((name) => ({ name, letters: lettersOf(name) })).filter(({ name, letters }) => letters.length >= LETTERS_MIN && !isSet(name));
  const isForeign = (name: string): boolean => OF_NEIGHBOURS.test(name) || ADDRESS_OF_NEIGHBOUR.test(environment[name] ?? '');
  return Object.keys(environment).filter((name) => isSet(name) && !isForeign(name)).flatMap((variable) => {
    const given = variable.startsWith(SHOWN_PREFIX) ? variable.slice(SHOWN_PREFIX.length) : variable;
    if (KNOWN.has(given) || given.length > NAME_CHARS_MAX || !/^[a-z][\w-]*$/i.test(given)) return [];
    const ofLitellm = OF_LITELLM.get(given) ?? given.replace(/_API_BASE$/, '_BASE_URL');
    const givenLetters = lettersOf(given);
    const meant = candidates.find(({ name }) => name === ofLitellm) ?? candidates.find(({ letters }) => isSlip(letters, givenLetters));
    return meant === undefined ? [] : [[given, meant.name] as const];
  });
}
