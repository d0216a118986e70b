import { createServer } from 'node:net';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { createHealthServer } from './health.js';
import { createMetrics } from './metrics.js';

const doorAt = (host: string, port: number) => createHealthServer({ host, port, metrics: createMetrics({ service: 'test', withProcessMetrics: false }), ready: () => true });

test('a port that is taken is told by its setting', async () => {
  const other = createServer();
  await once(other.listen(0, '127.0.0.1'), 'listening');
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(doorAt('127.0.0.1', port).start()).rejects.toThrow(`METRICS_PORT: port ${port} on 127.0.0.1 is taken by another process.`);
  other.close();
});

test('an address that is not of this machine is told as HOST', async () => {
  // Documentation's own network (RFC 5737): nobody has it.
  await expect(doorAt('192.0.2.1', 0).start()).rejects.toThrow('HOST: 192.0.2.1 is no address of this machine (EADDRNOTAVAIL).');
});
