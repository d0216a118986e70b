/** What the simulation drives of this service; deploy takes `compose`. */
export { createConsumer } from './consumer.js';
export { book, NEW_HEAD, type AccountHead, type LedgerEntry, type RequestState } from './domain/booking.js';
export { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome } from './domain/check.js';
export type { AccountTotals, CheckedRange, CommittedBatch, DeadEvent, LedgerStore, ScopeTotals, WriterMarkRow } from './domain/ports.js';
export { mergeRanges, type Progress } from './domain/ranges.js';
export { createBillingMetrics } from './metrics.js';
export { createHandlers } from './server.js';
