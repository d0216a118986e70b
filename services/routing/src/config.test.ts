import { expect, test } from '@jest/globals';
import { loadRoutingConfig } from './config.js';

test('an address of the bus that is none is refused at once: routing starts without the bus, and would wait for it for ever', () => {
  for (const url of ['bus', 'http://bus:4222', 'nats://a:1,b']) expect(() => loadRoutingConfig({ NATS_URL: url })).toThrow(/^NATS_URL: must be nats:\/\/host:port, several with commas$/);
  expect(() => loadRoutingConfig({ NATS_URL: 'nats://user:hidden%@bus:4222' })).toThrow(/^NATS_URL: cannot be read as a URL; a user and a password write [^h]+$/);
  for (const url of ['', 'nats://user:password@bus:4222', 'nats://a:1, tls://b:2']) expect(loadRoutingConfig({ NATS_URL: url }).NATS_URL).toBe(url);
});
