import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { schemaJobProcess } from '@signalbox/sql/schema-job';
import { SCHEMA } from './adapters/migrations.js';
import { composeBilling } from './compose.js';
import { loadBillingConfig } from './config.js';

if (process.argv[2] === 'migrate') await schemaJobProcess(SCHEMA, process.env);
else {
  await runService('billing', process.env, ({ tracing, tls }) => {
    const config = loadBillingConfig(process.env);
    const log = createLog({ service: 'billing', level: config.LOG_LEVEL });
    return { service: composeBilling(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('billing'), tls }), log };
  });
}
