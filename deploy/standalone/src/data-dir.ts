/** What `npm start` keeps between runs: secrets made at the first start, readable by their owner only. */
import { randomBytes } from '@signalbox/runtime/random';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface KeptSecrets {
  readonly keyPepper: string;
  /** Encrypts customers' own provider keys. */
  readonly secretsKey: string;
  readonly adminToken: string;
}

/** The secret in that file, made and written atomically when it is not there yet. */
function keep(directory: string, name: string): string {
  const file = join(directory, name);
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  const secret = Buffer.from(randomBytes(32)).toString('base64url');
  writeFileSync(`${file}.new`, `${secret}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return secret;
}

export function openDataDir(directory: string, environment: Readonly<Record<string, string | undefined>>): KeptSecrets {
  // Traversable, since the embedded Postgres may run as another user; every secret in it is mode 0600.
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  return {
    keyPepper: environment['KEY_PEPPER'] || keep(directory, 'key-pepper'),
    secretsKey: environment['SECRETS_KEY'] || keep(directory, 'secrets-key'),
    adminToken: environment['ADMIN_TOKEN'] || keep(directory, 'admin-token'),
  };
}
