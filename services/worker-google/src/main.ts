/** Starts worker-google as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerGoogle } from './compose.js';
import { loadWorkerGoogleConfig } from './config.js';

await runService('worker-google', process.env, ({ tracing, tls }) => {
  const config = loadWorkerGoogleConfig(process.env);
  const log = createLog({ service: 'worker-google', level: config.LOG_LEVEL });
  return { service: composeWorkerGoogle(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer(`worker-${config.PROVIDER}`), tls }), log };
});
