import { expect, test } from '@jest/globals';
import { createMetrics } from '@signalbox/runtime/metrics';
import { createRoutingMetrics } from './metrics.js';

test('catalog loads are shown as zero before the first, so that the alert sees the first refusal as an increase', async () => {
  const metrics = createMetrics({ service: 'routing', withProcessMetrics: false });
  const { reloaded } = createRoutingMetrics(metrics);
  const shown = async (): Promise<readonly string[]> => (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('signalbox_routing_catalog_reloads_total{')).map((line) => line.replace(/^.*result="(\w+)".*\} /, '$1 ')).sort();
  expect(await shown()).toEqual(['loaded 0', 'refused 0']);
  reloaded('refused');
  expect(await shown()).toEqual(['loaded 0', 'refused 1']);
});
