/** The parts of this service that the simulation uses; deploy uses `compose`. */
export { createMemoryStore } from './adapters/memory-store.js';
export type { QuotaStore } from './domain/ports.js';
export { createQuota } from './domain/quota.js';
export { createQuotaMetrics } from './metrics.js';
export { createHandlers, readTotals, readWriters, writeLost } from './server.js';
