/** Settings of worker-bedrock: the AWS variables or AWS_BEARER_TOKEN_BEDROCK, BEDROCK_BASE_URL and those of every worker. */
import { loadConfig, type Environment } from '@signalbox/runtime/config';
import { emptyListOf, hasCredential, loadWorkerConfig, type Lack, type WorkerConfig } from '@signalbox/worker-kit/config';
import { z } from 'zod';

const region = z.string().regex(/^[a-z]{2}(?:-[a-z]+)+-\d$/, 'must be a region such as eu-central-1');

const schema = z.object({
  /** Bedrock API key; takes precedence over the key pair. */
  AWS_BEARER_TOKEN_BEDROCK: z.string().optional(),
  /** Key pair, instead of a Bedrock API key. */
  AWS_ACCESS_KEY_ID: z.string().optional(),
  /** The secret half of the pair. */
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  /** Only for temporary key pairs, which are not renewed. */
  AWS_SESSION_TOKEN: z.string().optional(),
  /** Region of requests and their signatures. Default: AWS_DEFAULT_REGION, else us-east-1. */
  AWS_REGION: region.default('us-east-1'),
});

export type WorkerBedrockConfig = WorkerConfig & { readonly AWS_REGION: string };

/** Whether an environment has a credential for Bedrock. */
export function isBedrockWanted(environment: Environment): boolean {
  const isSet = (name: string): boolean => (environment[name] ?? '') !== '';
  return hasCredential(environment['AWS_BEARER_TOKEN_BEDROCK']) || (isSet('AWS_ACCESS_KEY_ID') && isSet('AWS_SECRET_ACCESS_KEY'));
}

/** Finds an incomplete configuration of Bedrock: half a key pair, or only an address. A region alone does not count, since it may be set for other tools. */
export function bedrockLack(environment: Environment): Lack | undefined {
  const isSet = (name: string): boolean => (environment[name] ?? '') !== '';
  if (isBedrockWanted(environment)) return undefined;
  const empty = emptyListOf(['AWS_BEARER_TOKEN_BEDROCK'], environment);
  if (empty !== undefined) return empty;
  if (isSet('AWS_ACCESS_KEY_ID')) return { given: 'AWS_ACCESS_KEY_ID', missing: 'AWS_SECRET_ACCESS_KEY' };
  if (isSet('AWS_SECRET_ACCESS_KEY')) return { given: 'AWS_SECRET_ACCESS_KEY', missing: 'AWS_ACCESS_KEY_ID' };
  const given = ['AWS_SESSION_TOKEN', 'BEDROCK_BASE_URL'].find(isSet);
  return given === undefined ? undefined : { given, missing: 'AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY' };
}

/** Throws ConfigError. The credential is one text: an API key, or a key pair as `id:secret` or `id:secret:session`. */
export function loadWorkerBedrockConfig(environment: Environment): WorkerBedrockConfig {
  const own = loadConfig(schema, { ...environment, AWS_REGION: environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'] });
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: session } = own;
  const pair = id === undefined || secret === undefined ? undefined : [id, secret, session].filter((part) => part !== undefined).join(':');
  // Named after the variable that the operator has set, for error messages.
  const [name, credential] = !hasCredential(own.AWS_BEARER_TOKEN_BEDROCK) ? ['AWS_SECRET_ACCESS_KEY', pair] : ['AWS_BEARER_TOKEN_BEDROCK', own.AWS_BEARER_TOKEN_BEDROCK];
  const config = loadWorkerConfig(
    { ...environment, [name]: credential },
    { credentials: [name], baseUrl: 'BEDROCK_BASE_URL', defaultBaseUrl: `https://bedrock-runtime.${own.AWS_REGION}.amazonaws.com` },
  );
  return Object.freeze({ ...config, AWS_REGION: own.AWS_REGION });
}
