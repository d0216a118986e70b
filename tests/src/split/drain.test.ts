import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startOtlpCollector, type OtlpCollector } from '@signalbox/testkit/otlp-collector';
import { admin } from '../harness/books.js';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway, type GatewayProcess } from '../harness/gateway.js';
import { expectOneTraceWithoutContent, pathOf, traceOf } from '../harness/traces.js';

let collector: OtlpCollector;
let gateway: Gateway;
const processOf = (role: string): GatewayProcess => {
  const found = gateway.processes().find((one) => one.role === role);
  if (found === undefined) throw new Error(`There is no ${role}.`);
  return found;
};

beforeAll(async () => {
  collector = await startOtlpCollector();
  gateway = await startGateway({ mode: 'split', environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint } });
}, 120_000);
afterAll(async () => {
  await gateway.stop();
  await collector.stop();
});

test('one trace shows all hops of a request through the processes, and nothing of what was said', async () => {
  // With a cap, so that the first request waits for what the ledger knows.
  const { key } = await admin<{ key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'traced', tier: 'enterprise', cost_cap_usd: '1', cost_cap_period: 'total' });
  const { status, headers } = await ask(gateway.baseUrl, key.key, { model: 'simulator/fast', messages: [{ role: 'user', content: 'a word for nobody else' }] });
  expect(status).toBe(200);
  const trace = await traceOf(collector, headers.get('x-request-id') ?? '');
  const edge = 'edge completions';
  expect(trace.map((span) => pathOf(span, trace)).filter((path) => !path.endsWith('Outcome')).sort()).toEqual(
    [edge, `${edge} > accounts Authenticate`, `${edge} > quota Admit`, `${edge} > quota Admit > billing Watermarks`, `${edge} > quota Admit > billing Totals`, `${edge} > routing Decide`, `${edge} > worker-sim fast`, `${edge} > worker-sim fast > billing book usage`].sort(),
  );
  expectOneTraceWithoutContent(collector, trace, ['for nobody else', "Signalbox's simulator", key.key, 'acct_']);
  // From here on nobody takes spans: that is what the streams below run through.
  collector.answerWith(400);
}, 60_000);

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

test('an edge that stops has told when keys were used, be it less than a minute ago', async () => {
  const { key, account } = await admin<{ key: { id: string; key: string }; account: { id: string } }>(gateway, '/accounts', 'POST', { name: 'used', tier: 'enterprise' });
  const startedAt = Math.floor(Date.now() / 1_000);
  await ask(gateway.baseUrl, key.key, { model: 'simulator/fast', messages: [{ role: 'user', content: 'hello' }] });
  const { pid } = processOf('edge');
  process.kill(pid, 'SIGTERM');
  await until(() => Promise.resolve(processOf('edge').pid !== pid), 60_000, 100, 'edge to start again');
  const lastUsed = async (): Promise<number> => {
    const { keys } = await admin<{ keys: readonly { id: string; last_used_at: number | null }[] }>(gateway, `/keys?account=${account.id}`);
    return keys.find(({ id }) => id === key.id)?.last_used_at ?? 0;
  };
  await until(() => lastUsed().then((at) => at >= startedAt, () => false), 30_000, 200, 'the time of the last use');
}, 150_000);
