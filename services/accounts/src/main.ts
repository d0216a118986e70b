import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeAccounts } from './compose.js';
import { loadAccountsConfig } from './config.js';

await runService('accounts', process.env, ({ tracing, tls }) => {
  const config = loadAccountsConfig(process.env);
  const log = createLog({ service: 'accounts', level: config.LOG_LEVEL });
  return { service: composeAccounts(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('accounts'), tls }), log };
});
