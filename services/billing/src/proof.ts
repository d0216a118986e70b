/** The parts of this service that the simulation uses. Deployments use `compose`. */
export { createConsumer } from './consumer.js';
export { book } from './domain/booking.js';
export { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome } from './domain/check.js';
export { NEW_HEAD, type AccountHead, type LedgerEntry } from './domain/open-account.js';
export type { AccountTotals, CheckedRange, CommittedBatch, DeadEvent, LedgerStore, Registered, ScopeTotals, WriterMarkRow } from './domain/ports.js';
export { mergeRanges, type Progress } from './domain/ranges.js';
export { isSettled, requestsOf, type RequestState, type StoredRow } from './domain/request.js';
export { createBillingMetrics } from './metrics.js';
export { Hearing } from './domain/hearing.js';
export { createHandlers } from './server.js';
export { keptRows } from './testing/kept-rows.js';
