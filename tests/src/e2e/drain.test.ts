import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway, type GatewayProcess } from '../harness/gateway.js';

let gateway: Gateway;
const processOf = (role: string): GatewayProcess => {
  const found = gateway.processes().find((one) => one.role === role);
  if (found === undefined) throw new Error(`There is no ${role}.`);
  return found;
};

beforeAll(async () => {
  gateway = await startGateway({ mode: 'split' });
}, 120_000);
afterAll(() => gateway.stop());

test.each(['edge', 'worker-simulator'])('SIGTERM to %s in the middle of a stream: the client gets all of it, and the service comes back', async (role) => {
  const { pid } = processOf(role);
  const response = await fetch(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: 'tell [sim:tokens=40,chunk-delay-ms=50]' }] }),
    signal: AbortSignal.timeout(60_000),
  });
  expect(response.status).toBe(200);
  let text = '';
  let isTold = false;
  for await (const part of response.body ?? []) {
    text += Buffer.from(part as Uint8Array).toString();
    if (isTold || !text.includes('"content"')) continue;
    isTold = true;
    process.kill(pid, 'SIGTERM');
  }
  expect(isTold).toBe(true);
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  expect(text).toContain('"finish_reason":"stop"');
  await until(() => Promise.resolve(processOf(role).pid !== pid), 60_000, 100, `${role} to start again`);
  await until(async () => (await ask(gateway.baseUrl, gateway.key, { model: 'simulator/fast', messages: [{ role: 'user', content: 'hello' }] })).status === 200, 30_000, 200, 'an answer');
}, 150_000);
