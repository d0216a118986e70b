import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { silentLog, type Log } from '@signalbox/runtime/log';
import { findStores } from './find.js';
import { startNats } from './nats.js';
import { startPostgres } from './postgres.js';
import { startRedis } from './redis.js';
import { findExecutable } from './child.js';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-local-stores-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

describe('private Postgres', () => {
  test('keeps committed rows over a stop and a start, and over a server that outlived its owner', async () => {
    const dataDir = join(folder, 'kept');
    const first = await startPostgres({ dataDir });
    await query(first.url, 'create table kept (value int)');
    await query(first.url, 'insert into kept values (1)');
    await first.stop();
    await first.stop();
    const second = await startPostgres({ dataDir });
    await query(second.url, 'insert into kept values (2)');
    const orphan = Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0]);
    // The owner is gone without a word: only its server is left.
    rmSync(join(dataDir, 'owner.json'));
    const third = await startPostgres({ dataDir });
    expect(await query(third.url, 'select value from kept order by value')).toEqual([{ value: 1 }, { value: 2 }]);
    expect(Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0])).not.toBe(orphan);
    await third.stop();
  }, 60_000);

  test('tells when nothing is left but to wait: for a new server, and for the end of one that outlived its owner', async () => {
    const dataDir = join(folder, 'waited-for');
    const told: string[] = [];
    const start = async (): Promise<{ readonly stop: () => Promise<void> }> => {
      const server = await startPostgres({ dataDir, onWait: () => void told.push(existsSync(join(dataDir, 'postgres.log')) ? 'new' : 'earlier') });
      told.push('answers');
      return server;
    };
    await start();
    expect(told).toEqual(['new', 'answers']);
    told.length = 0;
    rmSync(join(dataDir, 'owner.json'));
    rmSync(join(dataDir, 'postgres.log'));
    const second = await start();
    expect(new Set(told)).toEqual(new Set(['earlier', 'new', 'answers']));
    expect([told[0], ...told.slice(-2)]).toEqual(['earlier', 'new', 'answers']);
    await second.stop();
  }, 60_000);

  test('a server that was killed is started again where it was, with what was committed, and stops when it is told to', async () => {
    const dataDir = join(folder, 'killed');
    const server = await startPostgres({ dataDir });
    await query(server.url, 'create table kept (value int)');
    await query(server.url, 'insert into kept values (1)');
    const killed = Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0]);
    process.kill(killed, 'SIGKILL');
    let rows: readonly Record<string, unknown>[] | undefined;
    while (rows === undefined) rows = await query(server.url, 'select value from kept').catch(() => undefined);
    expect(rows).toEqual([{ value: 1 }]);
    await server.stop();
    await expect(query(server.url, 'select 1')).rejects.toThrow();
  }, 60_000);

  test('a stop ends a server that is on its way up again', async () => {
    const dataDir = join(folder, 'on-its-way');
    let heard = (): void => undefined;
    const isOnItsWay = new Promise<void>((resolve) => (heard = resolve));
    const log: Log = { ...silentLog, error: heard, child: () => log };
    const server = await startPostgres({ dataDir, log });
    const pidOf = (): number => Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0]);
    process.kill(pidOf(), 'SIGKILL');
    await isOnItsWay;
    await server.stop();
    await expect(query(server.url, 'select 1')).rejects.toThrow();
    expect(existsSync(join(dataDir, 'cluster/postmaster.pid'))).toBe(false);
  }, 60_000);

  test('waits for a server that was killed with its owner and is not gone yet', async () => {
    const dataDir = join(folder, 'leaving');
    await (await startPostgres({ dataDir })).stop();
    const leaving = spawn('sleep', ['60']);
    writeFileSync(join(dataDir, 'cluster/postmaster.pid'), `${leaving.pid ?? 0}\n${join(dataDir, 'cluster')}\n`, { mode: 0o600 });
    const { uid, gid } = statSync(join(dataDir, 'cluster'));
    chownSync(join(dataDir, 'cluster/postmaster.pid'), uid, gid);
    const starting = startPostgres({ dataDir });
    let isGivenUp = false;
    starting.catch(() => (isGivenUp = true));
    const refusals = (): number => readFileSync(join(dataDir, 'postgres.log'), 'utf8').split('already exists').length - 1;
    while (!isGivenUp && (!existsSync(join(dataDir, 'postgres.log')) || refusals() < 4)) await new Promise((resolve) => setImmediate(resolve));
    leaving.kill('SIGKILL');
    const server = await starting;
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.stop();
  }, 60_000);

  test('refuses a folder that a live process owns and leaves its server alone', async () => {
    const dataDir = join(folder, 'owned');
    const owner = spawn('sleep', ['60']);
    const mine = await startPostgres({ dataDir, durability: 'fast' });
    const note = JSON.parse(readFileSync(join(dataDir, 'owner.json'), 'utf8')) as { pid: number };
    expect(note.pid).toBe(process.pid);
    const birth = readFileSync(`/proc/${owner.pid ?? 0}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19];
    writeFileSync(join(dataDir, 'owner.json'), JSON.stringify({ pid: owner.pid, birth }));
    await expect(startPostgres({ dataDir, durability: 'fast' })).rejects.toThrow(/in use by process/);
    expect(await query(mine.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    owner.kill();
    await mine.stop();
  }, 60_000);

  test('a folder that Postgres cannot start from is told with the reason that Postgres gives', async () => {
    const dataDir = join(folder, 'damaged');
    await (await startPostgres({ dataDir, durability: 'fast' })).stop();
    rmSync(join(dataDir, 'cluster/global/pg_control'));
    await expect(startPostgres({ dataDir, durability: 'fast' })).rejects.toThrow(/ended while starting: .*pg_control.*No such file or directory/);
  }, 60_000);

  test.each([
    ['gone', (file: string) => rmSync(file)],
    ['empty', (file: string) => writeFileSync(file, '')],
    ['unreadable', (file: string) => {
      rmSync(file);
      mkdirSync(file);
    }],
  ])('a database whose version is %s is told with its folder, and none is made in its place', async (what, damage) => {
    const dataDir = join(folder, `version ${what}`);
    const cluster = join(dataDir, 'cluster');
    await (await startPostgres({ dataDir, durability: 'fast' })).stop();
    damage(join(cluster, 'PG_VERSION'));
    const before = readdirSync(dataDir);
    await expect(startPostgres({ dataDir, durability: 'fast' })).rejects.toThrow(`What is in ${cluster} cannot be read as a database (`);
    expect(readdirSync(dataDir).filter((name) => !before.includes(name))).toEqual([]);
  }, 60_000);

  test.each(['gone', 'empty'])('a database whose password is %s is told with the file, and gets no other one', async (what) => {
    const dataDir = join(folder, `password-${what}`);
    await (await startPostgres({ dataDir, durability: 'fast' })).stop();
    const file = join(dataDir, 'password');
    const kept = readFileSync(file);
    if (what === 'gone') rmSync(file);
    else writeFileSync(file, '');
    await expect(startPostgres({ dataDir, durability: 'fast' })).rejects.toThrow(`${file} any more: bring that file back from a backup.`);
    expect(existsSync(file) && readFileSync(file).length > 0).toBe(false);
    writeFileSync(file, kept);
    const server = await startPostgres({ dataDir, durability: 'fast' });
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.stop();
  }, 60_000);

  test('is reached whatever PGSSLMODE says, which is meant for another database', async () => {
    const server = await startPostgres({ dataDir: join(folder, 'without-tls'), durability: 'fast' });
    const before = process.env['PGSSLMODE'];
    process.env['PGSSLMODE'] = 'require';
    try {
      expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      if (before === undefined) delete process.env['PGSSLMODE'];
      else process.env['PGSSLMODE'] = before;
      await server.stop();
    }
  }, 60_000);

  test.each(['"', '$', '`', '\\'])('a path with %s, from which it makes no database, is told as such', async (character) => {
    const binaries = { folder: join(folder, `a${character}b`), origin: 'embedded', major: 17 } as const;
    await expect(startPostgres({ dataDir: mkdtempSync(join(folder, 'unmade-')), binaries })).rejects.toThrow(`Postgres makes no database from ${binaries.folder}: a path with`);
  });

  test('asks for its generated password', async () => {
    const server = await startPostgres({ dataDir: join(folder, 'guarded'), durability: 'fast' });
    const wrong = new URL(server.url);
    wrong.password = 'guess';
    await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password/);
    await server.stop();
  }, 60_000);
});

const path = process.env['PATH'] ?? '';
const servers = [
  { name: 'Redis', store: 'redis', program: 'redis-server', start: startRedis },
  { name: 'NATS', store: 'nats', program: 'nats-server', start: startNats },
] as const;

/** Redis writes its address over its arguments. */
function pidOf(program: string, port: number): number {
  const found = readdirSync('/proc').find((entry) => {
    try {
      const line = /^\d+$/.test(entry) ? readFileSync(`/proc/${entry}/cmdline`, 'utf8') : '';
      return line.includes(program) && line.includes(String(port));
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`no ${program} at ${port}`);
  return Number(found);
}

describe.each(servers)('private $name', ({ name, store, program, start }) => {
  const there = findExecutable(program, path) === undefined ? test.skip : test;

  there('answers until it is stopped', async () => {
    const server = await start({ path });
    expect(await isOpen(server.port)).toBe(true);
    await server.stop();
    expect(await isOpen(server.port)).toBe(false);
  });

  there('whose data are kept answers again at its port after a kill, tells of both, and stops when it is told to', async () => {
    const told: string[] = [];
    let heard = (): void => undefined;
    const isBack = new Promise<void>((resolve) => (heard = resolve));
    const log: Log = {
      ...silentLog,
      error: (text) => void told.push(text),
      warn: (text) => {
        told.push(text);
        heard();
      },
      child: () => log,
    };
    const found = await findStores({ dataDir: join(folder, `with-${store}`), wanted: [store], path, log });
    const port = Number(new URL(found[`${store}Url`]).port);
    process.kill(pidOf(program, port), 'SIGKILL');
    await isBack;
    expect(await isOpen(port)).toBe(true);
    await found.stop();
    expect(await isOpen(port)).toBe(false);
    expect(told).toEqual([`${name} ended by itself; it is started again.`, `${name} answers again.`]);
  }, 60_000);
});
