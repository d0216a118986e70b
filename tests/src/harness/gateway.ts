/** Starts a gateway as an operator would: the built product, as processes, in a separate data folder. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { sharedStoreUrls } from './stores.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** `npm test` bundles first; a suite that is run by itself uses the output of `tsc -b`. */
const isBundled = process.env['TEST_BUNDLED'] === '1';
/** Program of the all-in-one process, relative to the root. */
export const STANDALONE = `deploy/standalone/dist/${isBundled ? 'program.js' : 'main.js'}`;

export type GatewayMode = 'standalone' | 'split';

export interface GatewayOptions {
  readonly mode: GatewayMode;
  /** Settings besides the harness's own, such as provider keys and addresses, variant, periods. */
  readonly environment?: Readonly<Record<string, string>>;
  /** If given, kept between starts; else a fresh folder, removed at stop. */
  readonly dataDir?: string;
  readonly replicas?: string;
}

export interface GatewayProcess {
  readonly role: string;
  readonly replica: number;
  readonly pid: number;
  readonly ports: Readonly<Record<string, number>>;
}

export interface Gateway {
  readonly baseUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  /** Key of account `dev`, tier enterprise; empty if the data folder was not fresh. */
  readonly key: string;
  readonly dataDir: string;
  /** The launcher, or the all-in-one itself. */
  readonly pid: number;
  /** Split only. */
  processes(): readonly GatewayProcess[];
  /** Sends SIGKILL to the all-in-one process or the launcher. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Generous time-outs for a dozen processes on two busy cores: these tests check behaviour, not speed. */
const PATIENCE = { REDIS_TIMEOUT_MS: '1000', QUOTA_DEADLINE_MS: '2500' };
/** A start or stop that takes longer fails with a reason, so that the test run does not hang. */
const START_MS_MAX = 90_000;
const STOP_MS_MAX = 45_000;

const exited = (child: ChildProcess): Promise<void> => (child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => child.once('exit', () => resolve())));

/** Parses the ready line, the first line on stdout; throws if it is something else. */
function readReadyLine(mode: GatewayMode, line: string): { baseUrl: string; adminUrl: string; key: string } {
  if (mode === 'split') {
    const { base_url: baseUrl, admin_url: adminUrl, key = '' } = JSON.parse(line) as { base_url: string; admin_url: string; key?: string };
    return { baseUrl, adminUrl, key };
  }
  const match = /^ready (\S+) admin (\S+)(?: key (sbx_live_\w+))?/.exec(line);
  if (match === null) throw new Error('The first line is not a ready line.');
  return { baseUrl: match[1] ?? '', adminUrl: match[2] ?? '', key: match[3] ?? '' };
}

export async function startGateway({ mode, environment = {}, dataDir = mkdtempSync(join(tmpdir(), 'signalbox-test-')), replicas }: GatewayOptions): Promise<Gateway> {
  const main = join(ROOT, mode === 'split' ? 'deploy/split/dist/main.js' : STANDALONE);
  const child = spawn(process.execPath, [main, ...(mode === 'split' ? ['--json', ...(isBundled ? ['--bundled'] : []), ...(replicas === undefined ? [] : ['--replicas', replicas])] : [])], {
    cwd: dataDir,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', LOG_LEVEL: 'error', DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0', OLLAMA: 'off', ...PATIENCE, ...(mode === 'split' ? sharedStoreUrls() : {}), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.on('data', (part: Buffer) => {
    complaints = (complaints + part.toString()).slice(-8_000);
  });
  let processes: readonly GatewayProcess[] = [];
  const firstLine = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => {
      if (line.startsWith('{')) {
        const parsed = JSON.parse(line) as { processes?: readonly GatewayProcess[] };
        if (parsed.processes !== undefined) processes = parsed.processes;
      }
      clearTimeout(tooLong);
      resolve(line);
    });
    const tooLong = setTimeout(() => {
      child.kill('SIGTERM');
      reject(new Error(`The gateway was not ready within ${START_MS_MAX} ms:\n${complaints}`));
    }, START_MS_MAX);
    child.once('exit', (code) => reject(new Error(`The gateway ended with ${code ?? 'a signal'} before it was ready:\n${complaints}`)));
  });
  const adminToken = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim();
  const { baseUrl, adminUrl, key } = readReadyLine(mode, firstLine);
  return {
    baseUrl,
    adminUrl,
    adminToken,
    key,
    dataDir,
    pid: child.pid ?? 0,
    processes: () => processes,
    kill: async () => {
      child.kill('SIGKILL');
      await exited(child);
    },
    stop: async () => {
      child.kill('SIGTERM');
      const tooLong = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
      await exited(child);
      clearTimeout(tooLong);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
