/** The routing service as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

await runService('routing', process.env, ({ tracing, tls }) => {
  const config = loadRoutingConfig(process.env);
  const log = createLog({ service: 'routing', level: config.LOG_LEVEL });
  return { service: composeRouting(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('routing'), tls }), log };
});
