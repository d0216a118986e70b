/** Starts sandbox as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeSandbox } from './compose.js';
import { loadSandboxConfig } from './config.js';

await runService('sandbox', process.env, ({ tracing, tls }) => {
  const config = loadSandboxConfig(process.env);
  const log = createLog({ service: 'sandbox', level: config.LOG_LEVEL });
  return { service: composeSandbox(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('sandbox'), tls }), log };
});
