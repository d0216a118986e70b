/** What `npm start` keeps between runs: secrets made at the first start, readable by their owner only. */
import { randomBytes } from '@signalbox/runtime/random';
import { ConfigError } from '@signalbox/runtime/config';
import { claimFolder, releaseFolder } from '@signalbox/local-stores/owner';
import { accessSync, constants, existsSync, mkdirSync, opendirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

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

/** The folder and those above it, one by one: where the system refuses to make any, as below /proc, Node's own way never ends. */
function makeFolders(directory: string, mode: number): void {
  if (existsSync(directory)) return;
  makeFolders(dirname(directory), mode);
  if (!existsSync(directory)) mkdirSync(directory, { mode });
}

/** Makes the folder that the setting `variable` names when it is missing. Throws ConfigError where it cannot be written. */
export function makeFolder(directory: string, variable: string, mode: number): void {
  try {
    makeFolders(resolve(directory), mode);
    // Of a file it says that it is none.
    opendirSync(directory).closeSync();
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new ConfigError(`${variable}: ${directory} is not a folder that can be written (${error instanceof Error && 'code' in error ? String(error.code) : 'unknown'}).`, { cause: error });
  }
}

/** As makeFolder. Traversable, since the embedded Postgres may run as another user; every secret in it is mode 0600. */
export const makeDataDir = (directory: string): void => makeFolder(directory, 'DATA_DIR', 0o755);

/** Makes the folder and takes it for this process and all that it starts; answers what gives it back. Throws ConfigError, and StoreError naming the process that has it. */
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
