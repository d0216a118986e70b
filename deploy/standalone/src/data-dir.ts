/** Data that `npm start` keeps between runs: secrets generated at the first start, readable only by their owner. */
import { randomBytes } from '@signalbox/runtime/random';
import { ConfigError } from '@signalbox/runtime/config';
import { makeFolder } from '@signalbox/runtime/folder';
import { claimFolder, releaseFolder } from '@signalbox/local-stores/owner';
import { syncDirectory } from '@signalbox/worker-kit/directory-sync';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export interface KeptSecrets {
  readonly keyPepper: string;
  /** Encrypts customers' own provider keys. */
  readonly secretsKey: string;
  readonly adminToken: string;
}

/** Reads the secret in that file; creates it atomically if the file does not exist. */
function keep(directory: string, name: string): string {
  const file = join(directory, name);
  if (existsSync(file)) {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept === '') throw new ConfigError(`${file} is empty, and what is sealed or known by it would be lost: bring it back from a backup.`);
    return kept;
  }
  const secret = Buffer.from(randomBytes(32)).toString('base64url');
  // Sync the content before the rename, and the folder before the secret is used.
  const descriptor = openSync(`${file}.new`, 'w', 0o600);
  writeSync(descriptor, `${secret}\n`);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(`${file}.new`, file);
  syncDirectory(directory);
  return secret;
}

/** Traversable, since the embedded Postgres may run as another user; every secret in it is mode 0600. */
export const makeDataDir = (directory: string): void => makeFolder(directory, 'DATA_DIR', 0o755);

/** Creates the folder and locks it for this process and its children; returns a function that unlocks it. Throws a ConfigError, or a StoreError that names the process that has the lock. */
export function claimDataDir(directory: string): () => void {
  makeDataDir(directory);
  claimFolder(directory);
  return () => releaseFolder(directory);
}

export function openDataDir(directory: string, environment: Readonly<Record<string, string | undefined>>): KeptSecrets {
  makeDataDir(directory);
  return {
    keyPepper: environment['KEY_PEPPER'] || keep(directory, 'key-pepper'),
    secretsKey: environment['SECRETS_KEY'] || keep(directory, 'secrets-key'),
    adminToken: environment['ADMIN_TOKEN'] || keep(directory, 'admin-token'),
  };
}
