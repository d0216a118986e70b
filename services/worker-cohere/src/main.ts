/** Starts worker-cohere as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerCohere } from './compose.js';
import { loadWorkerCohereConfig } from './config.js';

await runService('worker-cohere', process.env, ({ tracing, tls }) => {
  const config = loadWorkerCohereConfig(process.env);
  const log = createLog({ service: 'worker-cohere', level: config.LOG_LEVEL });
  return { service: composeWorkerCohere(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-cohere'), tls }), log };
});
