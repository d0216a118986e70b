/** Settings of worker-azure: AZURE_API_KEY, AZURE_RESOURCE_NAME or AZURE_BASE_URL, and those of every worker. */
import { loadConfig, type Environment } from '@signalbox/runtime/config';
import { emptyListOf, hasCredential, loadWorkerConfig, type Lack, type WorkerConfig } from '@signalbox/worker-kit/config';
import { z } from 'zod';

const pairs = (text: string): ReadonlyMap<string, string> => new Map(text.split(',').flatMap((pair) => (pair.trim() === '' ? [] : [[pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()] as const])));

const schema = z.object({
  /** Name of the resource, whose address is `https://<name>.openai.azure.com/openai`. Ignored if AZURE_BASE_URL is set. */
  AZURE_RESOURCE_NAME: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$/, 'must be the name of a resource, without its domain')
    .optional(),
  /** `api-version` of each call. Default: a version that supports reasoning models, or none if the address ends in `/v1`. */
  AZURE_API_VERSION: z.string().regex(/^[\w.-]+$/).optional(),
  /** `model=deployment` pairs, separated by commas, for deployments whose name differs from the model's. */
  AZURE_DEPLOYMENTS: z
    .string()
    .default('')
    .refine((text) => text.split(',').every((pair) => pair.trim() === '' || /^[^=]+=[^=]+$/.test(pair)), 'must be model=deployment pairs with commas')
    .transform(pairs),
});

export type WorkerAzureConfig = WorkerConfig & Readonly<z.infer<typeof schema>>;

/** Whether the environment has an address and a key for Azure. */
export function isAzureWanted(environment: Environment): boolean {
  const isSet = (name: string): boolean => (environment[name] ?? '') !== '';
  return hasCredential(environment['AZURE_API_KEY']) && (isSet('AZURE_BASE_URL') || isSet('AZURE_RESOURCE_NAME'));
}

/** Finds an incomplete configuration of Azure. */
export function azureLack(environment: Environment): Lack | undefined {
  const given = ['AZURE_API_KEY', 'AZURE_RESOURCE_NAME', 'AZURE_BASE_URL'].find((name) => (environment[name] ?? '') !== '');
  if (given === undefined || isAzureWanted(environment)) return undefined;
  return emptyListOf(['AZURE_API_KEY'], environment) ?? { given, missing: given === 'AZURE_API_KEY' ? 'AZURE_RESOURCE_NAME or AZURE_BASE_URL' : 'AZURE_API_KEY' };
}

/** Throws ConfigError. */
export function loadWorkerAzureConfig(environment: Environment): WorkerAzureConfig {
  const own = loadConfig(schema, environment);
  const defaultBaseUrl = own.AZURE_RESOURCE_NAME === undefined ? '' : `https://${own.AZURE_RESOURCE_NAME}.openai.azure.com/openai`;
  return Object.freeze({ ...loadWorkerConfig(environment, { credentials: ['AZURE_API_KEY'], baseUrl: 'AZURE_BASE_URL', defaultBaseUrl }), ...own });
}
