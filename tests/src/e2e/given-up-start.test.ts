import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isAlive } from '@signalbox/local-stores/owner';
import { until } from '../harness/client.js';
import { STANDALONE } from '../harness/gateway.js';

const MAIN = fileURLToPath(new URL(`../../../${STANDALONE}`, import.meta.url));

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'signalbox-given-up-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Of the Postgres in the data folder, once it answers. */
function postgresPid(): number | undefined {
  try {
    const lines = readFileSync(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8').split('\n');
    return lines[7]?.trim() === 'ready' ? Number(lines[0]) : undefined;
  } catch {
    return undefined;
  }
}

function start(settings: Readonly<Record<string, string>>): { readonly child: ChildProcess; readonly ended: Promise<{ readonly code: number | null; readonly said: string }> } {
  const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env['PATH'], HOME: dataDir, DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0', OLLAMA: 'off', LOG_LEVEL: 'silent', ...settings }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()));
  return { child, ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, said }))) };
}

/** Watched while it runs: the file goes with the server. */
async function postgresOf(ended: Promise<unknown>): Promise<() => boolean> {
  let pid: number | undefined;
  let isOver = false;
  void ended.then(() => (isOver = true));
  await until(() => {
    pid = postgresPid();
    return Promise.resolve(pid !== undefined || isOver);
  }, 60_000);
  return () => pid !== undefined && isAlive(pid);
}

describe('a start that is given up leaves no Postgres behind', () => {
  test.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'nonsense'],
    // Read while the first services are starting.
    ['SANDBOX_CONCURRENCY', '100'],
  ])('that a wrong %s ends, and says so in one line', async (variable, value) => {
    const { ended } = start({ [variable]: value });
    const isPostgresAlive = await postgresOf(ended);
    const { code, said } = await ended;
    expect({ code, said: said.split(': ', 2).join(': '), lines: said.trim().split('\n').length, isPostgresAlive: isPostgresAlive() }).toEqual({ code: 1, said: `signalbox could not start: ${variable}`, lines: 1, isPostgresAlive: false });
    expect(postgresPid()).toBeUndefined();
  }, 90_000);

  test.each(['SIGINT', 'SIGTERM'] as const)('that %s ends, and says nothing', async (signal) => {
    const { child, ended } = start({});
    const isPostgresAlive = await postgresOf(ended);
    child.kill(signal);
    const { code, said } = await ended;
    expect({ code, said, isPostgresAlive: isPostgresAlive() }).toEqual({ code: 0, said: '', isPostgresAlive: false });
    expect(postgresPid()).toBeUndefined();
  }, 90_000);
});
