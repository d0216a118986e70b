/**
 * Settings of worker-google: PROVIDER picks the Gemini API (GEMINI_API_KEY or GOOGLE_API_KEY, GEMINI_BASE_URL) or Vertex
 * (VERTEX_ACCESS_TOKEN or GOOGLE_APPLICATION_CREDENTIALS, VERTEX_BASE_URL or GOOGLE_VERTEX_PROJECT and _LOCATION),
 * beside those of every worker.
 */
import { readFileSync } from 'node:fs';
import { ConfigError, type Environment } from '@signalbox/runtime/config';
import { Secret } from '@signalbox/runtime/secret';
import { emptyListOf, hasCredential, lackOf, loadWorkerConfig, type Lack, type WorkerConfig } from '@signalbox/worker-kit/config';
import { readServiceAccount } from './service-account.js';

export const GOOGLE_PROVIDERS = ['google-ai-studio', 'google-vertex'] as const;

export type GoogleProvider = (typeof GOOGLE_PROVIDERS)[number];

export type WorkerGoogleConfig = WorkerConfig & { readonly PROVIDER: GoogleProvider };

const STUDIO = { credentials: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'], baseUrl: 'GEMINI_BASE_URL', defaultBaseUrl: 'https://generativelanguage.googleapis.com/v1beta' } as const;
const VERTEX_CREDENTIALS = ['VERTEX_ACCESS_TOKEN', 'GOOGLE_APPLICATION_CREDENTIALS'] as const;
const VERTEX_PLACES = ['GOOGLE_VERTEX_PROJECT', 'VERTEX_BASE_URL'] as const;

/** Newer models are served only there. */
const LOCATION_DEFAULT = 'global';

const valueOf = (environment: Environment, name: string): string => environment[name] ?? '';

/** True if the environment has a credential and, for Vertex, an address for this provider. A key file alone does not count, since it may be set for other tools. */
export function isGoogleProviderWanted(provider: GoogleProvider, environment: Environment): boolean {
  const isSet = (name: string): boolean => valueOf(environment, name) !== '';
  const isGiven = (name: string): boolean => hasCredential(environment[name]);
  if (provider === 'google-ai-studio') return STUDIO.credentials.some(isGiven);
  return VERTEX_CREDENTIALS.some(isGiven) && VERTEX_PLACES.some(isSet);
}

/** Finds an incomplete configuration of this provider. */
export function googleLack(provider: GoogleProvider, environment: Environment): Lack | undefined {
  if (provider === 'google-ai-studio') return lackOf(STUDIO, environment);
  if (isGoogleProviderWanted(provider, environment)) return undefined;
  const empty = emptyListOf(VERTEX_CREDENTIALS, environment);
  if (empty !== undefined) return empty;
  const isSet = (name: string): boolean => valueOf(environment, name) !== '';
  const place = VERTEX_PLACES.find(isSet);
  if (place !== undefined) return { given: place, missing: VERTEX_CREDENTIALS.join(' or ') };
  return isSet('VERTEX_ACCESS_TOKEN') ? { given: 'VERTEX_ACCESS_TOKEN', missing: VERTEX_PLACES.join(' or ') } : undefined;
}

function vertexBaseUrl(project: string, location: string): string {
  const host = location === 'global' ? 'aiplatform.googleapis.com' : `${location}-aiplatform.googleapis.com`;
  return `https://${host}/v1/projects/${encodeURIComponent(project)}/locations/${location}`;
}

/** The text of the key file, if that is the credential. */
function keyFileOf(environment: Environment): string | undefined {
  const path = valueOf(environment, 'GOOGLE_APPLICATION_CREDENTIALS');
  if (path === '' || hasCredential(environment['VERTEX_ACCESS_TOKEN'])) return undefined;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new ConfigError('GOOGLE_APPLICATION_CREDENTIALS: the file cannot be read');
  }
  if (readServiceAccount(text) === undefined) throw new ConfigError("GOOGLE_APPLICATION_CREDENTIALS: must be a service account's key file");
  return text;
}

function loadVertexConfig(environment: Environment): WorkerConfig {
  const keyFile = keyFileOf(environment);
  const project = valueOf(environment, 'GOOGLE_VERTEX_PROJECT') || (keyFile === undefined ? '' : (readServiceAccount(keyFile)?.projectId ?? ''));
  const location = valueOf(environment, 'GOOGLE_VERTEX_LOCATION') || LOCATION_DEFAULT;
  if (!/^[a-z0-9-]+$/.test(location)) throw new ConfigError('GOOGLE_VERTEX_LOCATION: must be a location such as global or europe-west4');
  if (project === '' && valueOf(environment, 'VERTEX_BASE_URL') === '') throw new ConfigError('GOOGLE_VERTEX_PROJECT: must be set, or VERTEX_BASE_URL with the project in its path');
  const config = loadWorkerConfig(environment, { credentials: ['VERTEX_ACCESS_TOKEN'], baseUrl: 'VERTEX_BASE_URL', defaultBaseUrl: vertexBaseUrl(project, location) });
  return keyFile === undefined ? config : { ...config, API_KEYS: [new Secret(keyFile)] };
}

/** Throws ConfigError. */
export function loadWorkerGoogleConfig(environment: Environment): WorkerGoogleConfig {
  const PROVIDER = GOOGLE_PROVIDERS.find((provider) => provider === environment['PROVIDER']);
  if (PROVIDER === undefined) throw new ConfigError(`PROVIDER: must be one of ${GOOGLE_PROVIDERS.join(', ')}`);
  const config = PROVIDER === 'google-vertex' ? loadVertexConfig(environment) : loadWorkerConfig(environment, STUDIO);
  return Object.freeze({ ...config, PROVIDER });
}
