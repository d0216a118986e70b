/** The streams of NATS JetStream that keep what is published, and for how long. */
import type { Log } from '@signalbox/runtime/log';
import { DiscardPolicy, nanos, RetentionPolicy, StorageType, type JetStreamManager, type StreamConfig } from 'nats';

export interface KeptStream {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly discard: DiscardPolicy;
  /** Workqueue: what its consumer has handled goes. Each subject then has one consumer at most. */
  readonly retention: RetentionPolicy;
}

const GIB = 1_024 ** 3;
const DAY_MS = 86_400_000;

/** What was not handled is never dropped for what is new: a full stream refuses, and the writers' WAL keeps what it could not send. */
const STREAMS: readonly KeptStream[] = [
  { name: 'USAGE', subjects: ['usage.v1.>'], maxBytes: 8 * GIB, maxAgeMs: 14 * DAY_MS, discard: DiscardPolicy.New, retention: RetentionPolicy.Workqueue },
  { name: 'DLQ', subjects: ['dlq.v1.>'], maxBytes: GIB, maxAgeMs: 90 * DAY_MS, discard: DiscardPolicy.Old, retention: RetentionPolicy.Limits },
];

/** Stream that keeps a subject or a pattern of it; undefined when none does. */
export function streamOf(subject: string): KeptStream | undefined {
  return STREAMS.find((stream) => stream.subjects.some((pattern) => subject.startsWith(pattern.slice(0, -1))));
}

/** Server side of the window for repeated message ids. */
const DUPLICATE_WINDOW_MS = 120_000;

/** Makes a stream that is not there. Rejects with the client's error. */
export async function ensureStream(manager: JetStreamManager, stream: KeptStream, replicas: number, log: Log): Promise<void> {
  const config: Partial<StreamConfig> = {
    subjects: [...stream.subjects],
    storage: StorageType.File,
    retention: stream.retention,
    discard: stream.discard,
    max_bytes: stream.maxBytes,
    max_age: nanos(stream.maxAgeMs),
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    num_replicas: replicas,
  };
  try {
    const { config: found } = await manager.streams.info(stream.name);
    // The server lets nobody change it.
    if (found.retention !== stream.retention) log.warn('A stream of the bus was made by an earlier version and keeps what was handled, until it is full and takes nothing more. How to make it anew: docs/operate.md, "Upgrade".', { stream: stream.name });
    return;
  } catch {
    // Not there yet.
  }
  try {
    await manager.streams.add({ ...config, name: stream.name });
  } catch (error) {
    // A replica of ours made it at the same moment, or the server has less disk than the limit asks for.
    const exists = await manager.streams.info(stream.name).then(() => true, () => false);
    if (exists) return;
    const { max_bytes: _unbounded, ...rest } = config;
    await manager.streams.add({ ...rest, name: stream.name }).catch(() => {
      throw error;
    });
  }
}
