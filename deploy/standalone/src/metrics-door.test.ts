import { afterEach, expect, test } from '@jest/globals';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { request } from 'undici';
import { joinExpositions, openMetricsDoor } from './metrics-door.js';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function service(name: string, isReady: boolean, count: number): Promise<Service> {
  const metrics = createMetrics({ service: name, withProcessMetrics: false });
  metrics.counter('requests_total', 'Requests.', ['status']).inc({ status: '200' }, count);
  const health = createHealthServer({ host: '127.0.0.1', port: 0, metrics, ready: () => isReady });
  const port = await health.start();
  stops.push(() => health.stop());
  return { name, start: () => Promise.resolve(), stop: () => Promise.resolve(), ready: () => isReady, ports: () => ({ metrics: port }) };
}

async function get(port: number, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode, body } = await request(`http://127.0.0.1:${String(port)}${path}`);
  return { status: statusCode, text: await body.text() };
}

test('a scrape holds the samples of every service, each metric with its type once', async () => {
  const services = [await service('edge', true, 3), await service('quota', true, 5)];
  const door = await openMetricsDoor({ host: '127.0.0.1', port: 0, services });
  stops.push(() => door.stop());
  const { status, text } = await get(door.port, '/metrics');
  expect(status).toBe(200);
  expect(text.match(/^# TYPE requests_total /gm)).toHaveLength(1);
  expect(text).toContain('requests_total{status="200",service="edge"} 3\nrequests_total{status="200",service="quota"} 5\n');
});

test('a service that is gone is left out, and the rest is told', async () => {
  const edge = await service('edge', true, 3);
  const gone: Service = { ...edge, name: 'quota', ports: () => ({ metrics: 1 }) };
  const door = await openMetricsDoor({ host: '127.0.0.1', port: 0, services: [gone, edge] });
  stops.push(() => door.stop());
  expect((await get(door.port, '/metrics')).text).toContain('service="edge"} 3');
});

test('it is ready when all are, and names who is not', async () => {
  const services = [await service('edge', true, 0), await service('quota', false, 0)];
  const door = await openMetricsDoor({ host: '127.0.0.1', port: 0, services });
  stops.push(() => door.stop());
  expect(await get(door.port, '/readyz')).toEqual({ status: 503, text: 'not ready: quota\n' });
  services.pop();
  expect(await get(door.port, '/readyz')).toEqual({ status: 200, text: 'ready\n' });
  expect((await get(door.port, '/livez')).status).toBe(200);
  expect((await get(door.port, '/')).status).toBe(404);
});

test('a port that is taken is told by the name of the setting', async () => {
  const door = await openMetricsDoor({ host: '127.0.0.1', port: 0, services: [] });
  stops.push(() => door.stop());
  await expect(openMetricsDoor({ host: '127.0.0.1', port: door.port, services: [] })).rejects.toThrow(/^METRICS_PORT: port \d+ on 127\.0\.0\.1 is taken by another process\.$/);
});

test('blocks stay whole where services have different metrics', () => {
  const one = '# HELP a_total A.\n# TYPE a_total counter\na_total{service="x"} 1\n# HELP b B.\n# TYPE b gauge\nb{service="x"} 2\n';
  const two = '# HELP b B.\n# TYPE b gauge\nb{service="y"} 3\n\n# HELP a_total A.\n# TYPE a_total counter\na_total{service="y"} 4\n';
  expect(joinExpositions([one, two])).toBe('# HELP a_total A.\n# TYPE a_total counter\na_total{service="x"} 1\na_total{service="y"} 4\n# HELP b B.\n# TYPE b gauge\nb{service="x"} 2\nb{service="y"} 3\n');
});
