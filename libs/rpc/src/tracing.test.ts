import { afterEach, describe, expect, test } from '@jest/globals';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { createFakeClock } from '@signalbox/testkit/clock';
import { startOtlpCollector, type CollectedSpan, type OtlpCollector } from '@signalbox/testkit/otlp-collector';
import { until } from '@signalbox/testkit/until';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog, type Log } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import type { Span, Tracer, Tracing } from '@signalbox/runtime/span';
import { loadTracingConfig, openTracing } from '@signalbox/runtime/tracing';
import type { Handlers, RpcClient } from './call.js';
import { createRpcClient } from './client.js';
import { createRpcServer } from './server.js';

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const STRANGER = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';

async function collector(): Promise<OtlpCollector> {
  const started = await startOtlpCollector();
  open.push(() => started.stop());
  return started;
}

async function tracingTo(endpoint: string, share = '1', log: Log = silentLog, clock: Clock = systemClock): Promise<Tracing> {
  const tracing = await openTracing(loadTracingConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: share }), { clock, log });
  if (tracing === undefined) throw new Error('There is an endpoint, but no tracing.');
  open.push(() => tracing.stop());
  return tracing;
}

const rootOf = (tracer: Tracer, requestId: string, link?: string): Span | undefined => tracer.start({ name: 'root', kind: 'server', requestId, link, attributes: {} });

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('Nothing is there.');
  return value;
}

test('without an endpoint there is no tracing at all', async () => {
  expect(await openTracing(loadTracingConfig({}), { clock: systemClock, log: silentLog })).toBeUndefined();
});

test('an endpoint that is no URL and a share that is none are told together', () => {
  expect(() => loadTracingConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'otel-collector:4318', OTEL_TRACES_SAMPLER_ARG: '2' })).toThrow(/OTEL_EXPORTER_OTLP_ENDPOINT: .*\nOTEL_TRACES_SAMPLER_ARG: /);
});

test("a stranger's trace is linked to and not continued; one that cannot be read is passed over", async () => {
  const { endpoint, spans } = await collector();
  const tracing = await tracingTo(endpoint);
  const tracer = tracing.tracer('edge');
  rootOf(tracer, 'r1', STRANGER)?.end();
  rootOf(tracer, 'r2', '00-zz')?.end();
  expect(tracer.start({ name: 'x', kind: 'server', requestId: 'r', parent: 'no trace', attributes: {} })).toBeUndefined();
  await tracing.stop();
  expect(spans().map(({ parentSpanId, linkedTraceIds }) => ({ parentSpanId, linkedTraceIds }))).toEqual([
    { parentSpanId: '', linkedTraceIds: [STRANGER.slice(3, 35)] },
    { parentSpanId: '', linkedTraceIds: [] },
  ]);
  expect(spans()[0]?.traceId).not.toBe(STRANGER.slice(3, 35));
});

test('what the sampler passes over at the door is recorded nowhere behind it', async () => {
  const { endpoint } = await collector();
  const tracer = (await tracingTo(endpoint, '0')).tracer('edge');
  expect(rootOf(tracer, 'r')).toBeUndefined();
  expect(tracer.traceparentOf('r')).toBe('');
});

test('spans beyond the queue are dropped: memory is bounded whatever comes', async () => {
  const { endpoint, spans } = await collector();
  const tracing = await tracingTo(endpoint);
  const tracer = tracing.tracer('edge');
  // Within one turn, so that nothing is sent meanwhile: a batch of 512 is being sent, and 2,048 wait.
  for (let i = 0; i < 6_000; i += 1) rootOf(tracer, `r${i}`)?.end();
  await tracing.stop();
  expect(spans()).toHaveLength(512 + 2_048);
});

test('a collector that never answers holds up the stop of a process for two seconds, not longer', async () => {
  const silent = await collector();
  silent.answerWith('never');
  const clock = createFakeClock();
  const tracing = await tracingTo(silent.endpoint, '1', silentLog, clock);
  rootOf(tracing.tracer('edge'), 'r')?.end();
  const stopping = tracing.stop();
  await until(() => silent.unanswered() > 0);
  clock.advance(2_000);
  await stopping;
  expect(silent.spans()).toEqual([]);
});

test('a collector that refuses is told of once and costs spans alone', async () => {
  const refusing = await collector();
  refusing.answerWith(400);
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (text) => void warnings.push(text) };
  const tracing = await tracingTo(refusing.endpoint, '1', log);
  const tracer = tracing.tracer('edge');
  for (let i = 0; i < 1_024; i += 1) rootOf(tracer, `r${i}`)?.end();
  await tracing.stop();
  expect(warnings).toHaveLength(1);
  expect(refusing.spans()).toEqual([]);
});

describe.each(['link', 'unary', 'in-process'] as const)('through the %s door', (door) => {
  interface World {
    readonly edge: Tracer;
    readonly client: RpcClient;
    /** What the collector holds once everything is sent. */
    collected(): Promise<readonly CollectedSpan[]>;
  }
  async function connect(handlers: Handlers): Promise<World> {
    const { endpoint, spans } = await collector();
    const tracing = await tracingTo(endpoint);
    const edge = tracing.tracer('edge');
    const doors = door === 'in-process' ? new Map<string, object>() : undefined;
    const server = createRpcServer({ area: 'quota', handlers, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, doors, tracer: tracing.tracer('quota') });
    const port = await server.start();
    open.push(() => server.stop(0));
    const client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String(port)}`], door: door === 'unary' ? door : 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000, doors, tracer: edge });
    open.push(() => client.close());
    return {
      edge,
      client,
      collected: async () => {
        await tracing.stop();
        return spans();
      },
    };
  }

  test('a call for a request that is recorded is a child of its span, and what its handler calls is a child of the call', async () => {
    const seen: string[] = [];
    const { edge, client, collected } = await connect({
      unary: {
        Admit: (_request: object, call) => {
          call.span?.set({ 'signalbox.attempt': 1 });
          seen.push(call.traceparent);
          return {};
        },
      },
    });
    const root = present(rootOf(edge, 'req'));
    await client.unary('Admit', {}, { requestId: 'req' });
    root.end();
    await client.unary('Admit', {}, { requestId: 'req' });
    await client.unary('Admit', {}, { requestId: 'another' });
    const spans = await collected();
    expect(spans.map(({ service, name }) => `${service} ${name}`)).toEqual(['quota signalbox.quota.v1.QuotaService/Admit', 'edge root']);
    const [call, first] = spans;
    expect(call).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId, isError: false, attributes: { 'rpc.service': 'signalbox.quota.v1.QuotaService', 'rpc.method': 'Admit', 'signalbox.attempt': '1' } });
    expect(seen).toEqual([`00-${String(call?.traceId)}-${String(call?.spanId)}-01`, '', '']);
  });

  test('a call that fails is an error with the code of its fault and without its message', async () => {
    const { edge, client, collected } = await connect({
      unary: {
        Admit: () => {
          throw new Fault('store_unavailable', 'text that may hold anything');
        },
      },
    });
    const root = present(rootOf(edge, 'req'));
    await expect(client.unary('Admit', {}, { requestId: 'req' })).rejects.toMatchObject({ code: 'store_unavailable' });
    root.end();
    const [call] = await collected();
    expect(call).toMatchObject({ isError: true, attributes: { 'error.type': 'store_unavailable' } });
    expect(JSON.stringify(call)).not.toContain('anything');
  });
});
