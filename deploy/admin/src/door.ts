/** Address of the admin API, and its token. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The command cannot be executed: `message` is a line for a person. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** The same rule as the server's. */
const TOKEN = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

export function tokenOf(environment: Environment): string {
  const given = environment['ADMIN_TOKEN'] || undefined;
  const file = join(environment['DATA_DIR'] || '.data', 'admin-token');
  let token = given;
  try {
    token ??= readFileSync(file, 'utf8').trim();
  } catch (error) {
    const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOENT') throw new Refusal('No admin token: set ADMIN_TOKEN, or DATA_DIR to where the server keeps its own.');
    throw new Refusal(`${file} cannot be read (${code}): run this as the user of the server, or set ADMIN_TOKEN.`);
  }
  if (!TOKEN.test(token)) throw new Refusal(`${given === undefined ? file : 'ADMIN_TOKEN'}: must be one line of printable ASCII, without a line break or a blank at its ends.`);
  return token;
}

export function baseOf(environment: Environment): string {
  const port = environment['ADMIN_PORT'] || '8081';
  if (!environment['ADMIN_URL'] && (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)) throw new Refusal('ADMIN_PORT: must be a port from 0 to 65535.');
  const base = environment['ADMIN_URL'] || `http://127.0.0.1:${port}`;
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) throw new Refusal('ADMIN_URL: must be an http or https URL.');
  // The address appears in messages, and fetch refuses URLs with a password.
  const { username, password } = new URL(base);
  if (username !== '' || password !== '') throw new Refusal('ADMIN_URL: must have no name and no password in it: ADMIN_TOKEN opens the door.');
  return base;
}
