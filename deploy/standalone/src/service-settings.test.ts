import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { serviceSettings } from './service-settings.js';

/** Addresses, ports and secrets, which the start sets itself or passes on by special rules. */
const SET_BY_THE_START = new Set(['DATABASE_URL', 'KEY_PEPPER', 'SECRETS_KEY', 'ADMIN_TOKEN', 'PORT', 'ADMIN_PORT', 'WORKERS', 'PROVIDERS', 'BYOK_PROVIDERS', 'OFFERED_MODELS', 'EDGE_REPLICAS', 'DASHBOARD_DIR', 'QUOTA_STORE', 'REDIS_URL', 'WAL_DIR']);

/** Variables of a section of docs/configuration.md. */
function documented(section: string): readonly string[] {
  const text = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  return [...(text.split(`\n## ${section}\n`)[1]?.split('\n## ')[0] ?? '').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name = '']) => name);
}

test.each(['accounts', 'billing', 'edge', 'plugins', 'quota', 'routing', 'sandbox', 'worker'] as const)('npm start and start:split hand %s every setting that is documented', (service) => {
  const names = documented(service === 'worker' ? 'Every worker' : `${service.charAt(0).toUpperCase()}${service.slice(1)}`);
  expect(names).not.toEqual([]);
  const wanted = names.filter((name) => !SET_BY_THE_START.has(name) && !name.endsWith('_ADDRS'));
  const environment = { ...Object.fromEntries(names.map((name) => [name, 'given'])), STRANGER: 'given' };
  expect(Object.keys(serviceSettings(service, environment)).sort()).toEqual([...wanted].sort());
  expect(serviceSettings(service, Object.fromEntries(names.map((name) => [name, ''])))).toEqual({});
});
