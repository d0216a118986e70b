import { systemClock } from '@signalbox/runtime/clock';
import { runService } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createRedisStore } from './adapters/redis-store.js';
import { composeQuota } from './compose.js';
import { loadQuotaConfig } from './config.js';
import type { QuotaMetrics } from './metrics.js';

await runService('quota', process.env, ({ tracing, tls }) => {
  const config = loadQuotaConfig(process.env);
  const log = createLog({ service: 'quota', level: config.LOG_LEVEL });
  const { REDIS_URL: url, BILLING_PERIOD_SECONDS: periodSeconds, REDIS_TIMEOUT_MS: commandTimeoutMs } = config;
  const shared = config.QUOTA_STORE === 'redis' && url !== undefined ? { createStore: (metrics: QuotaMetrics) => createRedisStore({ url, clock: systemClock, randomBytes, log, metrics, periodSeconds, commandTimeoutMs }) } : {};
  return { service: composeQuota(config, { clock: systemClock, randomBytes, log, withProcessMetrics: true, tracer: tracing?.tracer('quota'), tls }, shared), log };
});
