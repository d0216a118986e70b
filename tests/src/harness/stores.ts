/** Redis and NATS of a split gateway. It starts its own if it can, since two gateways on one bus would book each other's usage. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const STORES = [
  { variable: 'REDIS_URL', program: 'redis-server' },
  { variable: 'NATS_URL', program: 'nats-server' },
] as const;

const isInstalled = (program: string): boolean => (process.env['PATH'] ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, program)));
/** `npm test` sets TEST_OWN_STORES if the launcher can start them; a suite that is run by itself checks what is installed. */
const isOwn = (program: string): boolean => process.env['TEST_OWN_STORES'] === '1' || isInstalled(program);
const givenUrl = (variable: string): string => process.env[`TEST_${variable}`] ?? '';

/** Addresses of stores that all gateways of a test run must share. */
export function sharedStoreUrls(): Readonly<Record<string, string>> {
  return Object.fromEntries(STORES.filter(({ variable, program }) => !isOwn(program) && givenUrl(variable) !== '').map(({ variable }) => [variable, givenUrl(variable)]));
}

/** Names of stores that can neither be started nor are given. */
export function missingStores(): readonly string[] {
  return STORES.filter(({ variable, program }) => !isOwn(program) && givenUrl(variable) === '').map(({ program }) => program);
}
