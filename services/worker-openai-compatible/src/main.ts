/** Starts worker-openai-compatible as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerOpenaiCompatible } from './compose.js';
import { loadWorkerOpenaiCompatibleConfig } from './config.js';

await runService('worker-openai-compatible', process.env, ({ tracing, tls }) => {
  const config = loadWorkerOpenaiCompatibleConfig(process.env);
  const log = createLog({ service: 'worker-openai-compatible', level: config.LOG_LEVEL });
  return { service: composeWorkerOpenaiCompatible(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer(`worker-${config.PROVIDER}`), tls }), log };
});
