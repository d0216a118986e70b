/** Starts worker-bedrock as a process. */
import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerBedrock } from './compose.js';
import { bedrockLack, loadWorkerBedrockConfig } from './config.js';

await runService('worker-bedrock', process.env, ({ tracing, tls }) => {
  const config = loadWorkerBedrockConfig(process.env);
  const log = createLog({ service: 'worker-bedrock', level: config.LOG_LEVEL });
  const lack = bedrockLack(process.env);
  if (lack !== undefined) log.warn("The operator's credential is incomplete: only accounts with their own are served.", { given: lack.given, missing: lack.missing });
  return { service: composeWorkerBedrock(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('worker-bedrock'), tls }), log };
});
