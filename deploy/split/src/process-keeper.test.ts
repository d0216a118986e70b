import { expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepProcess } from './process-keeper.js';

test('a service that dies is started again, and the operator is told which, and of what', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'keeper-'));
  const main = join(folder, 'main.mjs');
  writeFileSync(main, 'process.on("SIGTERM", () => process.exit(0)); process.send({ ready: true, ports: {} }); setInterval(() => undefined, 1000);');
  let restarted: () => void = () => undefined;
  const again = new Promise<void>((resolve) => (restarted = resolve));
  const told: string[] = [];
  const keeper = keepProcess({ role: 'quota', replica: 1, main, environment: {}, onRestarted: () => restarted(), tell: (line) => told.push(line) });
  try {
    await keeper.start();
    const { pid } = keeper.state();
    process.kill(pid, 'SIGKILL');
    await again;
    expect(told).toEqual([`signalbox: quota 1 (pid ${String(pid)}) was ended by SIGKILL and is started again`]);
    expect(keeper.state().pid).not.toBe(pid);
  } finally {
    await keeper.stop(5_000);
    rmSync(folder, { recursive: true });
  }
  expect(told).toHaveLength(1);
});

test('a service has the environment that was made for it, and nothing of who starts it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'keeper-'));
  const main = join(folder, 'main.mjs');
  // Reports the names of its environment variables, as ports.
  writeFileSync(main, 'process.send({ ready: true, ports: Object.fromEntries(Object.keys(process.env).map((name) => [name, 1])) }); setInterval(() => undefined, 1000);');
  const keeper = keepProcess({ role: 'sandbox', replica: 0, main, environment: { HOST: '127.0.0.1' }, onRestarted: () => undefined, tell: () => undefined });
  try {
    expect(process.env['PATH']).toBeDefined();
    await keeper.start();
    expect(keeper.state().ports).toEqual({ HOST: 1 });
  } finally {
    await keeper.stop(5_000);
    rmSync(folder, { recursive: true });
  }
});
