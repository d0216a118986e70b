/** Starts worker-openai as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerOpenai } from './compose.js';
import { loadWorkerOpenaiConfig } from './config.js';

await runService('worker-openai', process.env, ({ tracing, tls }) => {
  const config = loadWorkerOpenaiConfig(process.env);
  const log = createLog({ service: 'worker-openai', level: config.LOG_LEVEL });
  return { service: composeWorkerOpenai(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-openai'), tls }), log };
});
