/** Checks settings that name providers: a name that no catalog has would silently do nothing. */
import { ConfigError } from '@signalbox/runtime/config';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RoutingConfig } from '../../config.js';
import { SIMULATOR_PROVIDER } from './build.js';
import { SHIPPED_DIR } from './files.js';
import { providersFileSchema } from './schema.js';

const idsOf = async (directory: string): Promise<readonly string[]> => providersFileSchema.parse(JSON.parse(await readFile(join(directory, 'providers.json'), 'utf8'))).providers.map(({ id }) => id);

/**
 * Call it with a valid catalog. Throws a ConfigError with a line for each setting that names a provider which is neither in the
 * catalog in use nor in the shipped one. The shipped one counts too, since a launcher may have keys for providers that an operator's catalog leaves out.
 */
export async function refuseUnknownProviders(config: Pick<RoutingConfig, 'CATALOG_DIR' | 'PROVIDERS' | 'BYOK_PROVIDERS' | 'ZDR_AGREEMENTS' | 'OFFERED_MODELS'>): Promise<void> {
  const own = await idsOf(config.CATALOG_DIR === '' ? SHIPPED_DIR : config.CATALOG_DIR);
  const known = new Set([...own, ...(config.CATALOG_DIR === '' ? [] : await idsOf(SHIPPED_DIR)), SIMULATOR_PROVIDER]);
  const named = {
    PROVIDERS: config.PROVIDERS,
    BYOK_PROVIDERS: config.BYOK_PROVIDERS,
    ZDR_AGREEMENTS: config.ZDR_AGREEMENTS,
    OFFERED_MODELS: config.OFFERED_MODELS.map((name) => name.split('/')[0] ?? ''),
  };
  const problems = Object.entries(named).flatMap(([variable, ids]) => {
    const unknown = [...new Set(ids.filter((id) => !known.has(id)))];
    return unknown.length === 0 ? [] : [`${variable}: there is no provider ${unknown.join(', ')}; expected ids of ${[...own].sort().join(', ')}`];
  });
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}
