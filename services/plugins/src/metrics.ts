/** Metrics of plugins. */
import type { Metrics } from '@signalbox/runtime/metrics';
import type { Stage } from './domain/run.js';

export interface PluginsMetrics {
  stage(stage: Stage): void;
}

export function createPluginsMetrics(metrics: Metrics): PluginsMetrics {
  const stages = metrics.counter('signalbox_plugins_stages_total', 'Runs of plugins, by stage and how they ended.', ['stage', 'status']);
  return { stage: ({ name, status }) => stages.inc({ stage: name, status }) };
}
