import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { schemaJobProcess } from '@signalbox/sql/schema-job';
import { SCHEMA } from './adapters/migrations.js';
import { composeAccounts } from './compose.js';
import { loadAccountsConfig } from './config.js';

if (process.argv[2] === 'migrate') await schemaJobProcess(SCHEMA, process.env);
else {
  await runService('accounts', process.env, ({ tracing, tls }) => {
    const config = loadAccountsConfig(process.env);
    const log = createLog({ service: 'accounts', level: config.LOG_LEVEL });
    return { service: composeAccounts(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('accounts'), tls }), log };
  });
}
