/** Starts worker-sim as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerSim } from './compose.js';
import { loadWorkerSimConfig } from './config.js';

await runService('worker-sim', process.env, ({ tracing, tls }) => {
  const config = loadWorkerSimConfig(process.env);
  const log = createLog({ service: 'worker-sim', level: config.LOG_LEVEL });
  return { service: composeWorkerSim(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-sim'), tls }), log };
});
