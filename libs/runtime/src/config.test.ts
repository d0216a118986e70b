import { createServer } from 'node:net';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { addressesField, ConfigError, emptyBlanks, hasReadableUser, hostInUrl, loadConfig, portField, wholeNumberField } from './config.js';
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
  // A network reserved for documentation (RFC 5737), which no machine has.
  await expect(doorAt('192.0.2.1', 0).start()).rejects.toThrow('HOST: 192.0.2.1 is no address of this machine (EADDRNOTAVAIL).');
});

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['gateway.example', 'gateway.example'],
  ['::1', '[::1]'],
  ['[::1]', '[::1]'],
  // All addresses of the machine, including loopback.
  ['0.0.0.0', '127.0.0.1'],
  ['::', '127.0.0.1'],
])('what listens on %s is reached at %s', (host, shown) => {
  expect(hostInUrl(host)).toBe(shown);
  expect(new URL(`http://${hostInUrl(host)}:8080`).port).toBe('8080');
});

test('a variable that is empty or blank counts as absent, and is not read as 0', () => {
  const schema = z.object({ DRAIN_MS: wholeNumberField(0, 600_000, 30_000), NAME: z.string().optional() });
  for (const blank of ['', ' ', '\t\n']) expect(loadConfig(schema, { DRAIN_MS: blank, NAME: blank })).toEqual({ DRAIN_MS: 30_000 });
});

test.each([['abc', 'a text of 3 characters'], ['-1', '-1'], ['70000', '70000'], ['1.5', '1.5'], ['1e10', '1e10'], ['0.5e9', '0.5e9'], ['0x10', '0x10'], ['8080 8081', 'a text of 9 characters']])('%s is no port, and is told so in one line', (text, found) => {
  expect(() => loadConfig(z.object({ PORT: portField(8080), DRAIN_MS: wholeNumberField(0, 600, 30) }), { PORT: text, DRAIN_MS: '601.5' })).toThrow(
    new ConfigError(`PORT: must be a port from 0 to 65535, found ${found}\nDRAIN_MS: must be a whole number from 0 to 600, found 601.5`),
  );
});

test('of one setting only the first problem is told', () => {
  expect(() => loadConfig(z.object({ NAME: z.string().min(5, 'is short').regex(/^a/, 'has no a') }), { NAME: 'b' })).toThrow(/^NAME: is short$/);
});

const neighbours = (fallback: string | undefined, text: string | undefined) => loadConfig(z.object({ BILLING_ADDRS: addressesField(fallback) }), { BILLING_ADDRS: text }).BILLING_ADDRS;

test.each(['billing', 'billing:', 'billing:grpc', 'http://billing:9100', 'a:1,b', 'billing:123456', 'billing:65536', 'billing:0', '[::1]:99999'])('a neighbour at %s is refused by its setting, not waited for', (text) => {
  for (const fallback of [undefined, '', '127.0.0.1:9104']) expect(() => neighbours(fallback, text)).toThrow('BILLING_ADDRS: expected host:port, several separated by commas');
});

test('neighbours are listed; whether there must be one is said by the fallback', () => {
  expect(neighbours(undefined, 'billing:9100, [::1]:9100,')).toEqual(['billing:9100', '[::1]:9100']);
  expect(neighbours('', undefined)).toEqual([]);
  expect(neighbours('127.0.0.1:9104', undefined)).toEqual(['127.0.0.1:9104']);
  expect(neighbours(undefined, '[::ffff:10.0.0.7]:9104,[fe80::1%eth0]:9104')).toEqual(['[::ffff:10.0.0.7]:9104', '[fe80::1%eth0]:9104']);
  expect(() => neighbours(undefined, undefined)).toThrow('BILLING_ADDRS: is required, and is not set');
  expect(() => neighbours(undefined, ',')).toThrow('BILLING_ADDRS: expected host:port');
});

test('a blank is emptied for whoever only asks whether a variable is set', () => {
  const environment = { OPENAI_API_KEY: ' ', OPENAI_BASE_URL: '\t', HOST: ' a ', PORT: '' };
  emptyBlanks(environment);
  expect(environment).toEqual({ OPENAI_API_KEY: '', OPENAI_BASE_URL: '', HOST: ' a ', PORT: '' });
});

test.each([['redis://quota:50%25@127.0.0.1:6379', true], ['nats://127.0.0.1:4222', true], ['no URL', true], ['redis://quota:50%@127.0.0.1:6379', false], ['nats://a%zz:b@127.0.0.1:4222', false]])('a user and a password of %s can be decoded: %s', (url, can) => {
  expect(hasReadableUser(url)).toBe(can);
});
