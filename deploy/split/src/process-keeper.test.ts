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
