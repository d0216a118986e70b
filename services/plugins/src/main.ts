import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { schemaJobProcess } from '@signalbox/sql/schema-job';
import { SCHEMA } from './adapters/migrations.js';
import { composePlugins } from './compose.js';
import { loadPluginsConfig } from './config.js';

if (process.argv[2] === 'migrate') await schemaJobProcess(SCHEMA, process.env);
else {
  await runService('plugins', process.env, ({ tracing, tls }) => {
    const config = loadPluginsConfig(process.env);
    const log = createLog({ service: 'plugins', level: config.LOG_LEVEL });
    return { service: composePlugins(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('plugins'), tls }), log };
  });
}
