/** What containers do when they start, start again and are built by whom we do not know. */
import { expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const compose = parse(read('docker-compose.yml')) as { readonly services: Readonly<Record<string, { readonly command?: readonly string[]; readonly mem_limit?: string; readonly profiles?: readonly string[]; readonly healthcheck?: unknown }>> };

test('redis starts again in its container: the users that the earlier start left to another user are replaced, not written to', () => {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-redis-start-'));
  try {
    for (const name of ['bin', 'tmp', 'etc']) mkdirSync(join(home, name));
    writeFileSync(join(home, 'etc/users.acl'), read('deploy/redis/users.acl'));
    // Of the image: neither the user redis nor its entry point is here.
    for (const name of ['chown', 'docker-entrypoint.sh']) {
      writeFileSync(join(home, 'bin', name), '#!/bin/sh\n');
      chmodSync(join(home, 'bin', name), 0o755);
    }
    // With fs.protected_regular the kernel refuses root to open what is redis' in /tmp. Here the link tells whether it was opened.
    writeFileSync(join(home, 'earlier'), 'of redis');
    symlinkSync(join(home, 'earlier'), join(home, 'tmp/users.acl'));
    const script = (compose.services['redis']?.command?.at(-1) ?? '').replaceAll('$$', '$').replaceAll('/tmp/', `${home}/tmp/`).replaceAll('/etc/signalbox/', `${home}/etc/`);
    const { status, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8', timeout: 30_000, env: { PATH: `${home}/bin:${process.env['PATH'] ?? ''}`, QUOTA_REDIS_PASSWORD: 'pass' } });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(readFileSync(join(home, 'earlier'), 'utf8')).toBe('of redis');
    const users = join(home, 'tmp/users.acl');
    expect(lstatSync(users)).toMatchObject({ mode: 0o100600 });
    expect(readFileSync(users, 'utf8')).toMatch(/^user default off\nuser quota on #d74ff0ee8da3b9806b18c877dbf29bbde50b5bd8e4dad7a3a725000feb82e8f1 /);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test('prometheus watches every service of the compose file, workers of profiles once they run, and tells an Alertmanager that is beside it', () => {
  interface Discovery {
    readonly names: readonly string[];
    readonly type: string;
    readonly port: number;
  }
  const { scrape_configs: [job], alerting } = parse(read('deploy/prometheus/prometheus.yml')) as {
    readonly scrape_configs: readonly { readonly static_configs: readonly { readonly targets: readonly string[] }[]; readonly dns_sd_configs: readonly Discovery[] }[];
    readonly alerting: { readonly alertmanagers: readonly { readonly dns_sd_configs: readonly Discovery[] }[] };
  };
  const built = Object.entries(compose.services).filter(([name, { command }]) => /^services\//.test(command?.[0] ?? '') && !name.endsWith('-migrate'));
  // The sandbox is in a network of its own, where nobody but plugins reaches it.
  const reached = built.filter(([name]) => name !== 'sandbox');
  expect(job?.static_configs.flatMap(({ targets }) => targets).sort()).toEqual(reached.filter(([, { profiles }]) => profiles === undefined).map(([name]) => `${name}:9464`).sort());
  expect(job?.dns_sd_configs).toEqual([{ names: reached.filter(([, { profiles }]) => profiles !== undefined).map(([name]) => name), type: 'A', port: 9464 }]);
  expect(alerting.alertmanagers.flatMap(({ dns_sd_configs: found }) => found)).toEqual([{ names: ['alertmanager'], type: 'A', port: 9093 }]);
});

test('the image can be read by its user, whatever the umask was of who checked the sources out', () => {
  // What was checked out with umask 077 has none but its owner's rights, and root is the owner of all that is copied.
  const [build = '', image = ''] = read('deploy/docker/Dockerfile').split(/^FROM /m).slice(1);
  expect(build).toMatch(/&& chmod -R a\+rX \.\n/);
  for (const [, source = ''] of image.matchAll(/^COPY (.*)$/gm)) expect(source).toMatch(/^--from=build \/app\//);
});

test('the image is asked for its health without a second node: ready is 0, unready or away is not', async () => {
  const [, words = '[]'] = /^HEALTHCHECK [\s\S]*?\n\s+CMD (\[.*\])$/m.exec(read('deploy/docker/Dockerfile')) ?? [];
  const [program = '', ...args] = JSON.parse(words) as readonly string[];
  expect(program).toBe('bash');
  let ready = true;
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/readyz' && ready ? 200 : 503).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const health = (): Promise<number | null> => new Promise((resolve) => spawn(program, args, { env: { PATH: process.env['PATH'], METRICS_PORT: String(port) }, stdio: 'ignore', timeout: 30_000 }).on('close', resolve));
  expect(await health()).toBe(0);
  ready = false;
  expect(await health()).toBe(1);
  await new Promise((resolve) => server.close(resolve));
  expect(await health()).toBe(1);
});

test('memory: documents that take all that plugins allows them leave its own process half a gibibyte', () => {
  const settable = read('docs/configuration.md').split(/^## /m).find((section) => section.startsWith('Plugins\n')) ?? '';
  const defaultOf = (name: string): number => Number(new RegExp(`^\\| \`${name}\` \\|[^|]*\\| \`(\\d+)\` \\|`, 'm').exec(settable)?.[1]);
  const documents = defaultOf('PDF_MEMORY_MIB') * defaultOf('PDF_PROCESSES_MAX');
  expect(documents).toBeGreaterThan(0);
  expect(parseInt(compose.services['plugins']?.mem_limit ?? '0', 10)).toBeGreaterThanOrEqual(documents + 512);
});

test('what NATS tells of itself is told inside its container alone: it names connections, subjects and their users to whoever asks', () => {
  const { command = [], healthcheck } = compose.services['nats'] ?? {};
  expect(command.join(' ')).not.toMatch(/http_port|(^| )-m\b/);
  const [, file = ''] = /--config \/etc\/nats\/(\S+)/.exec(command.join(' ')) ?? [];
  const config = read(`deploy/nats/${file}`);
  expect(config).toMatch(/^http: "127\.0\.0\.1:8222"$/m);
  expect(config).toMatch(/^include users\.conf$/m);
  expect(JSON.stringify(healthcheck)).toContain('http://127.0.0.1:8222/healthz');
});

test('memory: edge has what its room for large bodies was measured with, and each worker what the edges hand on to it', () => {
  const limits = Object.entries(compose.services).map(([name, { mem_limit: limit }]) => ({ name, limit }));
  // services/edge/src/adapters/body.test.ts holds the room to that.
  expect(limits.filter(({ name }) => name === 'edge' || name.startsWith('worker-')).filter(({ limit }) => limit !== '512m')).toEqual([]);
});
