import { expect, test } from '@jest/globals';
import { createMetrics, LABEL_VALUES_MAX } from './metrics.js';

const lines = async (metrics: ReturnType<typeof createMetrics>): Promise<string[]> => (await metrics.registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

test('a scrape shows counters by label, each time the same until something is counted', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: false });
  const counter = metrics.counter('c_total', 'c', ['a', 'b']);
  const none = metrics.counter('n_total', 'n', []);
  counter.inc({ a: 'x', b: 'y' });
  counter.labels({ b: 'y', a: 'x' }).inc(2);
  counter.inc({ a: 'x', b: 'z' }, 5);
  const shown = ['c_total{a="x",b="y",service="s"} 3', 'c_total{a="x",b="z",service="s"} 5', 'n_total{service="s"} 0'];
  expect(await lines(metrics)).toEqual(shown);
  expect(await lines(metrics)).toEqual(shown);
  none.inc({});
  expect(await lines(metrics)).toContain('n_total{service="s"} 1');
});

test('junk in a label fills no store of metrics: past the bound it counts as other, and nothing is lost', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: false });
  const counter = metrics.counter('junk_total', 'j', ['model', 'result']);
  for (let i = 0; i < 10_000; i += 1) counter.inc({ model: `model-${i}`, result: 'ok' });
  counter.inc({ model: 'model-3', result: 'ok' }, 5);
  const shown = await lines(metrics);
  expect(shown).toHaveLength(LABEL_VALUES_MAX + 1);
  expect(shown).toContain('junk_total{model="model-3",result="ok",service="s"} 6');
  expect(shown).toContain(`junk_total{model="other",result="ok",service="s"} ${10_000 - LABEL_VALUES_MAX}`);
});

test('what is observed is read at each scrape; what cannot be read is left out, and the rest is shown', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: false });
  let level = 3;
  metrics.observed('gauge', 'level', 'l', [], () => (level < 0 ? Promise.reject(new Error('away')) : [{ labels: {}, value: level }]));
  metrics.observed('counter', 'seen_total', 's', ['a'], () => [{ labels: { a: 'x' }, value: 7 }]);
  expect(await lines(metrics)).toEqual(['level{service="s"} 3', 'seen_total{a="x",service="s"} 7']);
  level = 5;
  expect(await lines(metrics)).toEqual(['level{service="s"} 5', 'seen_total{a="x",service="s"} 7']);
  level = -1;
  expect(await lines(metrics)).toEqual(['seen_total{a="x",service="s"} 7']);
});

test('a gauge shows what was set last', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: false });
  const gauge = metrics.gauge('g', 'g');
  gauge.set(4);
  gauge.set(2);
  expect(await lines(metrics)).toEqual(['g{service="s"} 2']);
});

test('a histogram counts an observation to every bucket that it fits', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: false });
  const histogram = metrics.histogram('h_seconds', 'h', [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 3]) histogram.observe(value);
  expect(await lines(metrics)).toEqual(['h_seconds_bucket{le="0.1",service="s"} 2', 'h_seconds_bucket{le="1",service="s"} 3', 'h_seconds_bucket{le="+Inf",service="s"} 4', 'h_seconds_sum{service="s"} 3.65', 'h_seconds_count{service="s"} 4']);
});

test('a process tells of its CPU, its memory and its event loop, each name once', async () => {
  const metrics = createMetrics({ service: 's', withProcessMetrics: true });
  const names = (await metrics.registry.getMetricsAsJSON()).map(({ name }) => name);
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds', 'nodejs_eventloop_lag_p99_seconds', 'nodejs_gc_duration_seconds']) expect(names.filter((each) => each === name)).toEqual([name]);
});
