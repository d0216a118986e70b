/** Starts worker-azure as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerAzure } from './compose.js';
import { loadWorkerAzureConfig } from './config.js';

await runService('worker-azure', process.env, ({ tracing, tls }) => {
  const config = loadWorkerAzureConfig(process.env);
  const log = createLog({ service: 'worker-azure', level: config.LOG_LEVEL });
  return { service: composeWorkerAzure(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-azure'), tls }), log };
});
