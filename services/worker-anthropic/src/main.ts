/** Starts worker-anthropic as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerAnthropic } from './compose.js';
import { loadWorkerAnthropicConfig } from './config.js';

await runService('worker-anthropic', process.env, ({ tracing, tls }) => {
  const config = loadWorkerAnthropicConfig(process.env);
  const log = createLog({ service: 'worker-anthropic', level: config.LOG_LEVEL });
  return { service: composeWorkerAnthropic(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer(`worker-${config.PROVIDER}`), tls }), log };
});
