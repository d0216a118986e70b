import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeEdge } from './compose.js';
import { loadEdgeConfig } from './config.js';

await runService('edge', process.env, ({ tracing, tls }) => {
  const config = loadEdgeConfig(process.env);
  const log = createLog({ service: 'edge', level: config.LOG_LEVEL });
  return { service: composeEdge(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('edge'), tls }), log };
});
