/** Least privilege at Postgres: tables are made by roles that own them, and a gateway whose role does not does all its work. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { query } from '@signalbox/testkit/query';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { admin } from '../harness/books.js';
import { ask, until } from '../harness/client.js';
import { startGateway } from '../harness/gateway.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SERVICES = ['accounts', 'billing', 'plugins'] as const;
let url = '';

const as = (role: string): string => {
  const own = new URL(url);
  own.username = role;
  own.password = `secret of ${role}`;
  return own.href;
};

/** What psql makes of deploy/postgres/10-roles.sh. */
async function makeRoles(): Promise<void> {
  const script = /<<'SQL'\n([\s\S]*)\nSQL/.exec(readFileSync(join(ROOT, 'deploy/postgres/10-roles.sh'), 'utf8'))?.[1] ?? '';
  const text = script.replace(/^(--|\\getenv ).*$/gm, '').replaceAll(':"DBNAME"', `"${new URL(url).pathname.slice(1)}"`).replace(/:'(\w+)'/g, "'secret of $1'");
  for (const statement of text.split(/(?<=;|\\gexec)\n/)) {
    if (!statement.includes('\\gexec')) await query(url, statement);
    else for (const row of await query(url, statement.replace('\\gexec', ''))) await query(url, String(Object.values(row)[0]));
  }
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}
const run = (service: string, args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, `services/${service}/dist/main.js`), ...args], { timeout: 60_000, env: { PATH: process.env['PATH'] ?? '', ...environment } }, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }));
  });
const migrate = (service: string): Promise<Ended> => run(service, ['migrate'], { DATABASE_URL: as(`${service}_owner`), SERVICE_ROLE: service });

beforeAll(async () => {
  url = await testPostgresUrl();
  await makeRoles();
}, 30_000);
afterAll(stopTestStores, 30_000);

test('owners take over what services owned; a service whose schema is too old says so in one line and ends', async () => {
  await query(url, `grant create on database "${new URL(url).pathname.slice(1)}" to billing; reassign owned by billing_owner to billing`);
  expect(await run('billing', ['migrate'], { DATABASE_URL: as('billing') })).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^billing: applied 0001_ledger, .*\n$/) as unknown });
  await makeRoles();
  await query(url, `grant select on billing.migration to billing; delete from billing.migration where name = '0008_latency'`);
  expect(await run('billing', [], { DATABASE_URL: as('billing'), MIGRATE_ON_START: 'off' })).toEqual({
    code: 1, stdout: '', stderr: 'billing: The schema billing is older than this build, which needs 0008_latency: run `node services/billing/dist/main.js migrate` first, or start with MIGRATE_ON_START=on.\n',
  });
  await query(url, `insert into billing.migration (name) values ('0008_latency')`);
  const [billing, ...others] = await Promise.all(['billing', 'accounts', 'plugins'].map(migrate));
  expect(billing).toEqual({ code: 0, stderr: '', stdout: 'billing: the schema is as this build needs it\n' });
  for (const other of others) expect(other).toMatchObject({ code: 0, stderr: '' });
}, 120_000);

test('the script gives psql no password in its words, which every process of the machine may read, and none that is missing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-roles-'));
  try {
    writeFileSync(join(folder, 'psql'), '#!/bin/sh\nprintf "%s\\n" "$@"\ncat\n', { mode: 0o755 });
    const names = SERVICES.flatMap((service) => [`${service.toUpperCase()}_DB_PASSWORD`, `${service.toUpperCase()}_OWNER_DB_PASSWORD`]);
    const passwords = Object.fromEntries(names.map((name) => [name, `secret-${name}`]));
    const told = (environment: Readonly<Record<string, string>>) =>
      spawnSync('sh', [join(ROOT, 'deploy/postgres/10-roles.sh')], { encoding: 'utf8', timeout: 10_000, env: { PATH: `${folder}:${process.env['PATH'] ?? ''}`, POSTGRES_USER: 'postgres', POSTGRES_DB: 'signalbox', ...environment } });
    const { status, stdout } = told(passwords);
    expect(status).toBe(0);
    for (const name of names) {
      expect(stdout).not.toContain(`secret-${name}`);
      expect(stdout).toMatch(new RegExp(`^\\\\getenv \\w+ ${name}$`, 'm'));
      expect(told({ ...passwords, [name]: '' }).status).not.toBe(0);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a role that a migration makes is made by the script too: roles are of the server, and a dump that names one is not restored without it', async () => {
  const made = SERVICES.flatMap((service) => [...readFileSync(join(ROOT, `services/${service}/src/adapters/migrations.ts`), 'utf8').matchAll(/create role (\w+)/g)].map(([, role]) => role));
  expect(made).toEqual(['signalbox_memory']);
  for (const role of made) expect(readFileSync(join(ROOT, 'deploy/postgres/10-roles.sh'), 'utf8')).toContain(`create role ${String(role)} `);
  expect(await query(url, `select rolcanlogin, rolsuper, rolbypassrls from pg_roles where rolname = 'signalbox_memory'`)).toEqual([{ rolcanlogin: false, rolsuper: false, rolbypassrls: false }]);
});

test.each(SERVICES)('%s changes no table, and sees no other service’s', async (service) => {
  const other = service === 'accounts' ? 'billing' : 'accounts';
  for (const text of [`create table ${service}.mine (id integer)`, 'create table public.mine (id integer)', 'create schema mine', `alter table ${service}.migration add column mine integer`, `delete from ${service}.migration`, `drop schema ${service} cascade`, `select * from ${other}.migration`]) {
    await expect(query(as(service), text)).rejects.toMatchObject({ code: '42501' });
  }
});

test('billing adds to the ledger and to closed periods, and changes neither', async () => {
  for (const table of ['ledger_entries', 'closed_periods', 'closed_terms', 'writer_losses']) {
    for (const text of [`update billing.${table} set period = ''`, `delete from billing.${table}`, `truncate billing.${table}`].map((each) => each.replace('writer_losses set period', 'writer_losses set note'))) await expect(query(as('billing'), text)).rejects.toMatchObject({ code: '42501' });
    await query(as('billing'), `select * from billing.${table} limit 1`);
  }
});

test('a gateway on such roles answers, books, remembers and proves its ledger', async () => {
  await query(url, `drop role if exists every_service; create role every_service login password 'secret of every_service' in role accounts, billing, plugins`);
  const gateway = await startGateway({ mode: 'standalone', environment: { DATABASE_URL: as('every_service'), MIGRATE_ON_START: 'off' } });
  try {
    const { status, headers } = await ask(gateway.baseUrl, gateway.key, { model: 'auto', user: 'anna', plugins: ['memory'], messages: [{ role: 'user', content: 'My name is Anna.' }] });
    expect(status).toBe(200);
    const own = async (path: string): Promise<string> => (await fetch(`${gateway.baseUrl}${path}`, { headers: { authorization: `Bearer ${gateway.key}` } })).text();
    await until(async () => (await own(`/api/requests/${headers.get('x-request-id') ?? ''}`)).includes('"status":"completed"'), 20_000, 100, 'the ledger');
    await until(async () => (await own('/api/memory?user=anna')).includes('Anna'), 20_000, 100, 'the memory');
    expect(await own('/api/usage')).toContain('"requests":1');
    const failing = async (): Promise<readonly string[]> => (await admin<{ readonly checks: readonly { readonly invariant: string; readonly violations: number }[] }>(gateway, '/ledger/verify')).checks.filter(({ violations }) => violations > 0).map(({ invariant }) => invariant);
    expect(await failing()).toEqual([]);
    // Sums are billing's to write anew; rows are nobody's.
    await query(url, 'update billing.usage_days set requests = requests + 1');
    await query(url, `insert into billing.attempt_days select account_id, '2020-01-01', provider, attempts, tokens, cost_nano_usd, estimated_nano_usd from billing.attempt_days`);
    expect(await failing()).toEqual(['I7']);
    expect(await admin(gateway, '/ledger/recount', 'POST', {})).toMatchObject({ ok: true, accounts: [{ written: { usage_days: 1, attempt_days: 1, totals: 0 } }] });
    expect(await failing()).toEqual([]);
    expect(await admin(gateway, '/ledger/recount', 'POST', {})).toEqual({ ok: true, accounts: [] });
  } finally {
    await gateway.stop();
  }
}, 60_000);
