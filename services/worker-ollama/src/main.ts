/** Starts worker-ollama as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerOllama } from './compose.js';
import { loadWorkerOllamaConfig } from './config.js';

await runService('worker-ollama', process.env, ({ tracing, tls }) => {
  const config = loadWorkerOllamaConfig(process.env);
  const log = createLog({ service: 'worker-ollama', level: config.LOG_LEVEL });
  return { service: composeWorkerOllama(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-ollama'), tls }), log };
});
