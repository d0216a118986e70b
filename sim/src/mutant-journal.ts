/** Broken variants of the worker's log, for the mutation run. */
import type { Bus } from '@signalbox/bus/bus';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { AttemptStart, Journal } from '@signalbox/worker-kit/journal';
import { FRAME, readFrames } from '@signalbox/worker-kit/proof';
import type { SimDisk } from './disk.js';

const usageCodec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');

/** No write-ahead: the start is written only when the attempt has ended. */
export function writeLate(journal: Journal): Journal {
  const begun = new Map<string, AttemptStart>();
  return {
    start: (record) => {
      begun.set(`${record.requestId} ${record.attempt}`, record);
      return Promise.resolve();
    },
    checkpoint: () => undefined,
    end: async (requestId, attempt, end) => {
      const record = begun.get(`${requestId} ${attempt}`);
      if (record !== undefined) await journal.start(record);
      await journal.end(requestId, attempt, end);
    },
    tend: (requestId, attempt) => journal.tend(requestId, attempt),
    outcome: (...told) => journal.outcome(...told),
    state: () => journal.state(),
  };
}

/** Never records that an attempt ran on own credentials. */
export function asOurs(journal: Journal): Journal {
  return {
    start: (record) => journal.start({ ...record, byok: false }),
    checkpoint: (...told) => journal.checkpoint(...told),
    end: (...told) => journal.end(...told),
    tend: (...told) => journal.tend(...told),
    outcome: (...told) => journal.outcome(...told),
    state: () => journal.state(),
  };
}

/** Never records that a client left. */
export function forgettingLeft(journal: Journal): Journal {
  return {
    start: (record) => journal.start(record),
    checkpoint: (...told) => journal.checkpoint(...told),
    end: (requestId, attempt, end) => journal.end(requestId, attempt, { ...end, clientLeft: false }),
    tend: (...told) => journal.tend(...told),
    outcome: (...told) => journal.outcome(...told),
    state: () => journal.state(),
  };
}

/** Never marks a round as one that only called tools. */
export function withoutCalls(bus: Bus): Bus {
  return {
    ...bus,
    publish: (subject, payload, options) => {
      const usage = usageCodec.decode(payload);
      return bus.publish(subject, usageCodec.encode({ ...usage, ended: usage.ended.map((ended) => ({ ...ended, callsOnly: false })) }), options);
    },
  };
}

/** Deletes log records as soon as the bus has acknowledged them. */
export function cutAtBus(bus: Bus, disk: SimDisk): Bus {
  return {
    ...bus,
    publish: async (subject, payload, options) => {
      await bus.publish(subject, payload, options);
      const { lastSeq } = usageCodec.decode(payload);
      for (const segment of disk.segments.values()) segment.bytes = without(segment.bytes, Number(lastSeq));
    },
  };
}

function without(bytes: Buffer, lastSeq: number): Buffer {
  const kept: Buffer[] = [];
  let at = 0;
  readFrames(bytes, ({ kind, seq, payload }) => {
    const end = payload.byteOffset - bytes.byteOffset + payload.length;
    if (seq > lastSeq || kind === FRAME.start || kind === FRAME.head) kept.push(bytes.subarray(at, end));
    at = end;
  });
  return Buffer.concat(kept);
}
