/** Starts worker-bedrock as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerBedrock } from './compose.js';
import { loadWorkerBedrockConfig } from './config.js';

await runService('worker-bedrock', process.env, ({ tracing, tls }) => {
  const config = loadWorkerBedrockConfig(process.env);
  const log = createLog({ service: 'worker-bedrock', level: config.LOG_LEVEL });
  return { service: composeWorkerBedrock(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-bedrock'), tls }), log };
});
