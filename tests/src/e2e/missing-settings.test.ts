import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { STANDALONE } from '../harness/gateway.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SPLIT = 'deploy/split/dist/main.js';

const run = (main: string, environment: Readonly<Record<string, string>>, args: readonly string[] = []): Promise<{ readonly code: number | null; readonly complaint: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [`${ROOT}/${main}`, ...args], { env: { HOME: '/nonexistent', PATH: '/nonexistent', ...environment }, stdio: ['ignore', 'ignore', 'pipe'] });
    let complaint = '';
    child.stderr.on('data', (part: Buffer) => {
      complaint += part.toString();
    });
    child.once('exit', (code) => resolve({ code, complaint }));
  });

describe('a data folder that another start has', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-claimed-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const CLAIM = `import { claimDataDir } from ${JSON.stringify(new URL('../../../deploy/standalone/dist/data-dir.js', import.meta.url).href)}; claimDataDir(process.argv[1]); process.stdout.write('claimed'); setInterval(() => {}, 60_000);`;

  test.each([STANDALONE, SPLIT])('%s says so in one line, with its process, and begins nothing', async (program) => {
    const first = spawn(process.execPath, ['--input-type=module', '-e', CLAIM, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(first.stdout, 'data');
      const before = readdirSync(folder);
      const { code, complaint } = await run(program, { DATA_DIR: folder });
      expect(code).toBe(1);
      expect(complaint.trim()).toBe(`signalbox could not start: The data folder ${folder} is in use by process ${first.pid ?? 0}: stop it, or choose another DATA_DIR.`);
      expect(readdirSync(folder)).toEqual(before);
    } finally {
      first.kill('SIGKILL');
    }
  }, 30_000);
});

describe('missing settings', () => {
  test.each([
    ['services/accounts', { KEY_PEPPER: 'p'.repeat(32) }, 'DATABASE_URL'],
    ['services/billing', {}, 'DATABASE_URL'],
    ['services/edge', {}, 'KEY_PEPPER'],
  ])('%s ends with a readable complaint and no stack', async (service, environment, variable) => {
    const { code, complaint } = await run(`${service}/dist/main.js`, environment);
    expect(code).toBe(1);
    expect(complaint).toContain(`${variable}: is required`);
    expect(complaint).not.toMatch(/\n\s+at /);
  }, 30_000);

  test.each([
    [STANDALONE, { LOG_LEVEL: 'loud', DATA_DIR: '.' }, 'LOG_LEVEL'],
    [STANDALONE, { DATA_DIR: process.execPath }, 'DATA_DIR'],
    [SPLIT, { LOG_LEVEL: 'loud', DATA_DIR: '.' }, 'LOG_LEVEL'],
    [SPLIT, { DATA_DIR: process.execPath }, 'DATA_DIR'],
    [STANDALONE, { BILLING_PERIOD_SECONDS: '1e99', DATA_DIR: '.' }, 'BILLING_PERIOD_SECONDS'],
    [SPLIT, { BILLING_PERIOD_SECONDS: '1e99', DATA_DIR: '.' }, 'BILLING_PERIOD_SECONDS'],
    [STANDALONE, { SNAPSHOT_DIR: process.execPath, DATA_DIR: '.' }, 'SNAPSHOT_DIR'],
    [SPLIT, { SNAPSHOT_DIR: process.execPath, DATA_DIR: '.' }, 'SNAPSHOT_DIR'],
    [SPLIT, { REDIS_URL: 'http://127.0.0.1:1', DATA_DIR: '.' }, 'REDIS_URL'],
    [SPLIT, { NATS_URL: '127.0.0.1:4222', DATA_DIR: '.' }, 'NATS_URL'],
  ])('%s refuses %j in a line that begins with what is wrong', async (program, environment, variable) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-settings-'));
    const { code, complaint } = await run(program, { ...environment, DATA_DIR: resolve(folder, environment.DATA_DIR) });
    rmSync(folder, { recursive: true, force: true });
    expect(code).toBe(1);
    expect(complaint.trim().split('\n')).toEqual([expect.stringContaining(`could not start: ${variable}: `)]);
  }, 30_000);

  test.each(['edg=2', 'worker-sim=2', 'worker-nobody=2'])('the launcher refuses replicas of a role that it does not run: %s', async (replicas) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-settings-'));
    const { code, complaint } = await run(SPLIT, { DATA_DIR: folder }, ['--replicas', replicas]);
    rmSync(folder, { recursive: true, force: true });
    expect(code).toBe(1);
    expect(complaint.trim().split('\n')).toEqual([expect.stringContaining(`there is no ${replicas.split('=')[0] ?? ''} here`)]);
  }, 30_000);

  test.each([
    [STANDALONE, ['REDIS_URL is set and not used', 'NATS_URL is set and not used']],
    [SPLIT, []],
  ])('%s says of stores that it does not use that it does not, and of no others', async (program, unused) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-settings-'));
    // Nobody answers at port 1.
    const { code, complaint } = await run(program, { DATA_DIR: folder, OLLAMA: 'off', DATABASE_URL: 'postgres://127.0.0.1:1/x', REDIS_URL: 'redis://127.0.0.1:1', NATS_URL: 'nats://127.0.0.1:1' });
    rmSync(folder, { recursive: true, force: true });
    expect(code).toBe(1);
    expect(complaint.trim().split('\n')).toEqual([...unused, 'could not start'].map((line) => expect.stringContaining(line)));
  }, 60_000);

  test('the launcher refuses an unknown argument in one line', async () => {
    const { code, complaint } = await run(SPLIT, {}, ['--nonsense']);
    expect(code).toBe(1);
    expect(complaint.trim().split('\n')).toEqual([expect.stringContaining('--nonsense')]);
  }, 30_000);
});

describe('secrets of another database', () => {
  afterAll(stopTestStores);

  test.each([
    ['KEY_PEPPER', 'none of its keys would be known', [
      `insert into accounts.api_key (id, account_id, name, prefix, scopes, created_at, is_disabled, limits) values ('key_1', 'acct_1', 'k', 'p', '[]', 1, false, '{}')`,
      `insert into accounts.api_key_secret (digest, pepper_id, key_id) values ('\\x01', '01234567', 'key_1')`,
    ]],
    ['SECRETS_KEY', 'none of its provider credentials could be used', [
      `insert into accounts.provider_key (handle, account_id, provider, last4, zdr, base_url, created_at, key_id, wrapped_key, sealed) values ('cred_1', 'acct_1', 'openai', '', false, '', 1, '01234567', '\\x01', '\\x01')`,
    ]],
  ])('another %s is refused in one line, as with a database that was brought back beside a new data folder: %s', async (setting, _why, rows) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-pepper-'));
    const url = await testPostgresUrl();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const settings = { DATABASE_URL: url, DATA_DIR: folder, PORT: '0', ADMIN_PORT: '0', OLLAMA: 'off' };
    try {
      expect(await run('services/accounts/dist/main.js', settings, ['migrate'])).toMatchObject({ code: 0 });
      await client.query(`insert into accounts.account (id, settings) values ('acct_1', '{}')`);
      for (const row of rows) await client.query(row);
      const { code, complaint } = await run(STANDALONE, settings);
      expect(code).toBe(1);
      expect(complaint.trim().split('\n')).toEqual([expect.stringContaining(`could not start: ${setting}: is not the one`)]);
    } finally {
      await client.end();
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
