/** What is measured: each candidate as processes on the gateway's core, with what a request to it needs. */
import { freePort } from '@signalbox/local-stores/ports';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from './child.js';

const GATEWAY_CORE = 0;
export const LOAD_CORE = 1;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const PROVIDER_MODEL = 'gpt-4o-mini';

export type TargetName = 'direct' | 'pass-through' | 'pass-through twice' | 'portkey' | 'standalone' | 'split';

export interface Target {
  readonly name: TargetName;
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  /** Whose CPU and memory count, with all that they started. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

const JSON_HEADERS = { 'content-type': 'application/json' };
const PROVIDER_KEY = { ...JSON_HEADERS, authorization: 'Bearer bench' };

/** The fake provider, on the load's core; also the target `direct`. */
export async function startProvider(): Promise<Target> {
  const child = await startChild({ core: LOAD_CORE, args: [join(HERE, 'fake-provider.js')], ready: /^ready \d+/ });
  return { name: 'direct', origin: `http://127.0.0.1:${child.line.slice(6)}`, headers: PROVIDER_KEY, model: PROVIDER_MODEL, pids: [], stop: child.stop };
}

export async function startPassThrough(provider: string): Promise<Target> {
  const child = await startChild({ core: GATEWAY_CORE, args: [join(HERE, 'pass-through.js'), provider], ready: /^ready \d+/ });
  return { name: 'pass-through', origin: `http://127.0.0.1:${child.line.slice(6)}`, headers: PROVIDER_KEY, model: PROVIDER_MODEL, pids: [child.pid], stop: child.stop };
}

/** Two pass-throughs, one behind the other: what a request or chunk costs that passes two processes which do nothing with it. */
export async function startPassThroughTwice(provider: string): Promise<Target> {
  const back = await startPassThrough(provider);
  const front = await startPassThrough(back.origin).catch(async (error: unknown) => {
    await back.stop();
    throw error;
  });
  return {
    ...front,
    name: 'pass-through twice',
    pids: [...front.pids, ...back.pids],
    stop: async () => {
      await front.stop();
      await back.stop();
    },
  };
}

/** Portkey's gateway from npm, in a folder of its own: installed there when absent. */
export async function startPortkey(provider: string, folder = join(ROOT, 'bench/.portkey')): Promise<Target> {
  const main = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(main)) {
    mkdirSync(folder, { recursive: true });
    // On Node 20 its streams break with newer releases of the server adapter.
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { '@portkey-ai/gateway': '*', '@hono/node-server': '1.13.8' }, overrides: { '@hono/node-server': '1.13.8' } }));
    const { status, stderr } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(`Portkey's gateway could not be installed: ${stderr.slice(-500)}`);
  }
  const port = await freePort();
  const child = await startChild({ core: GATEWAY_CORE, cwd: folder, args: [main, `--port=${String(port)}`, '--headless'], ready: /running|ready|listening/i });
  const headers = { ...PROVIDER_KEY, 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${provider}/v1` };
  return { name: 'portkey', origin: `http://127.0.0.1:${String(port)}`, headers, model: PROVIDER_MODEL, pids: [child.pid], stop: child.stop };
}

export interface SignalboxOptions {
  readonly mode: 'standalone' | 'split';
  readonly provider: string;
  /** Kept after stop when given, with the key of its first start. */
  readonly kept?: { readonly dataDir: string; readonly key: string };
  /** Every process writes a V8 profile into it at its end; undefined = none. */
  readonly profileDir?: string | undefined;
}

export interface SignalboxTarget extends Target {
  readonly key: string;
  readonly dataDir: string;
  /** Ends the processes and leaves the data folder. */
  stopProcess(): Promise<void>;
}

/** As `npm start` has it; a profile is to be read by modules. */
function mainOf(mode: 'standalone' | 'split', isBundled: boolean): readonly string[] {
  if (mode === 'split') return [join(ROOT, 'deploy/split/dist/main.js'), '--json', ...(isBundled ? ['--bundled'] : [])];
  return [join(ROOT, 'deploy/standalone/dist', isBundled ? 'program.js' : 'main.js')];
}

export async function startSignalbox({ mode, provider, kept, profileDir }: SignalboxOptions): Promise<SignalboxTarget> {
  const dataDir = kept?.dataDir ?? mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const child = await startChild({
    core: GATEWAY_CORE,
    cwd: dataDir,
    // As `npm start` and the images have it.
    args: ['--v8-pool-size=1', '--no-memory-reducer', '--max-semi-space-size=16', ...mainOf(mode, profileDir === undefined && existsSync(join(ROOT, 'deploy/standalone/dist/program.js')))],
    environment: {
      MALLOC_ARENA_MAX: '3',
      ...(mode === 'standalone' ? { MALLOC_MMAP_THRESHOLD_: '131072' } : {}),
      LOG_LEVEL: 'error',
      SIMULATOR: 'off',
      OLLAMA: 'off',
      DATA_DIR: dataDir,
      PORT: '0',
      ADMIN_PORT: '0',
      OPENAI_API_KEY: 'bench',
      OPENAI_BASE_URL: `${provider}/v1`,
      ...(profileDir === undefined ? {} : { NODE_OPTIONS: `--import=file://${join(HERE, 'profiler.js')}?${encodeURIComponent(profileDir)}` }),
    },
    ready: mode === 'split' ? /"ready":true/ : /^ready /,
  });
  const origin = /http:\/\/[\w.:]+/.exec(child.line)?.[0] ?? '';
  const key = kept?.key ?? /sbx_live_\w+/.exec(child.line)?.[0] ?? '';
  return {
    name: mode,
    origin,
    headers: { ...JSON_HEADERS, authorization: `Bearer ${key}` },
    model: `openai/${PROVIDER_MODEL}`,
    pids: [child.pid],
    key,
    dataDir,
    stopProcess: child.stop,
    stop: async () => {
      await child.stop();
      if (kept === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
