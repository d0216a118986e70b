/** Prometheus and its checker, for tests of rules and dashboards: found here, or downloaded and unpacked as the stores are. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findExecutable, freePort } from './child.js';
import { unpackDebianPackage } from './debian.js';

export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
  /** For LD_LIBRARY_PATH; empty when not needed. */
  readonly libraryPath: string;
}

export interface RunningPrometheus {
  readonly url: string;
  stop(): Promise<void>;
}

/** Undefined when this machine has none and cannot get one. */
export function findPrometheus(path = process.env['PATH'] ?? '', cacheDir = join(homedir(), '.cache', 'signalbox/stores')): PrometheusPrograms | undefined {
  const [prometheus, promtool] = [findExecutable('prometheus', path), findExecutable('promtool', path)];
  if (prometheus !== undefined && promtool !== undefined) return { prometheus, promtool, libraryPath: '' };
  const unpacked = unpackDebianPackage('prometheus', cacheDir, path);
  if (unpacked === undefined) return undefined;
  const bin = join(unpacked.root, 'usr/bin');
  const own = ['prometheus', 'promtool'].map((name) => findExecutable(name, bin));
  const [server, tool] = own;
  return server === undefined || tool === undefined || dirname(server) !== bin || dirname(tool) !== bin ? undefined : { prometheus: server, promtool: tool, libraryPath: unpacked.libraryPath };
}

/** Scrapes `targets` (`host:port`) each second, in a folder of its own below `folder`. */
export async function startPrometheus({ prometheus, libraryPath }: PrometheusPrograms, folder: string, targets: readonly string[], rulesFile: string): Promise<RunningPrometheus> {
  const port = await freePort();
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: '1s', evaluation_interval: '1s' }, rule_files: [rulesFile], scrape_configs: [{ job_name: 'signalbox', honor_labels: true, static_configs: [{ targets }] }] }));
  const child = spawn(prometheus, [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'] ?? '', ...(libraryPath === '' ? {} : { LD_LIBRARY_PATH: libraryPath }) },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let isOver = false;
  void exited.then(() => (isOver = true));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 300 && !isOver; i += 1) {
    const isReady = await fetch(`${url}/-/ready`).then(({ ok }) => ok, () => false);
    if (isReady) return { url, stop };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  if (!isOver) await stop();
  throw new Error('Prometheus did not start.');
}
