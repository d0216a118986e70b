/** The parts of this library that the simulation uses. Services use `serve`. */
export { createCredentialPool } from './credentials.js';
export { createDispatcher, type Dispatcher } from './dispatch.js';
export { extendingAt } from './extend-hold.js';
export type { ExtendHold } from './hold-growth.js';
export { createWorkerMetrics } from './metrics.js';
export { createObservations } from './observations.js';
export { outcomeHandlers } from './outcome-handlers.js';
export type { Upstream, UpstreamCall, UpstreamListener } from './upstream.js';
export { openJournal, type OpenJournal } from './wal.js';
export type { WriterIdentity } from './wal-directory.js';
export type { WalDisk } from './wal-disk.js';
export { endedCodec, outcomeCodec } from './wal-events.js';
export { FRAME, readFrames } from './wal-frame.js';
export type { SegmentFile, SegmentWriter } from './wal-segment.js';
