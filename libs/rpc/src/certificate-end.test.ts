import { afterAll, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { createMetrics } from '@signalbox/runtime/metrics';
import { openRpcTls, type TlsFiles } from '@signalbox/runtime/tls-files';
import { createAuthority } from '@signalbox/testkit/certificates';
import { createFakeClock } from '@signalbox/testkit/clock';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = mkdtempSync(join(tmpdir(), 'signalbox-certificate-end-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Days until the certificate ends, as a scrape reports it; undefined = not reported. */
async function daysTold(): Promise<number | undefined> {
  const metrics = createMetrics({ service: 'edge', withProcessMetrics: true });
  const text = await metrics.registry.metrics();
  const [, seconds] = /^signalbox_rpc_certificate_end_timestamp_seconds\{service="edge"\} (\S+)$/m.exec(text) ?? [];
  return seconds === undefined ? undefined : Math.round((Number(seconds) * 1_000 - Date.now()) / 86_400_000);
}

test('a process tells when its certificate ends, or what signed it, as soon as it has another', async () => {
  expect(await daysTold()).toBeUndefined();
  const clock = createFakeClock();
  const directory = join(root, 'edge');
  createAuthority('ours', 365).issue(directory, 'edge', 30);
  const tls = openRpcTls({ RPC_TLS_DIR: directory }, { clock, log: silentLog }) as TlsFiles;
  expect(await daysTold()).toBe(30);
  createAuthority('soon', 5).issue(directory, 'edge', 60);
  clock.advance(10_000);
  expect(await daysTold()).toBe(5);
  // A second trusted CA that signed no certificate here may expire at any time.
  const earlier = readFileSync(join(directory, 'ca.crt'));
  createAuthority('next', 400).issue(directory, 'edge', 90);
  writeFileSync(join(directory, 'ca.crt'), Buffer.concat([earlier, readFileSync(join(directory, 'ca.crt'))]));
  clock.advance(10_000);
  expect(await daysTold()).toBe(90);
  tls.stop();
  expect(await daysTold()).toBeUndefined();
});
