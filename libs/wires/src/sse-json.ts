/** Streams whose events are JSON objects in SSE frames. */
import { failure, isGarbage, isObject, type JsonObject } from './canonical.js';
import type { CanonicalStream } from './canonical-stream.js';
import { EVENT_BOUNDS, isWithin } from './json-bounds.js';
import { sourceOf } from './json-source.js';
import { createSseParser } from './sse.js';
import type { StreamTransducer } from './canonical.js';

export interface SseJsonWire {
  /** Handles one event; `text` is the JSON it was parsed from. Everything it adds goes into one chunk. */
  onFrame(frame: JsonObject, text: string): void;
  /** The connection closed: to call `end` or `fail` of the stream. */
  onClose(): void;
}

/** A transducer that feeds `stream` frame by frame. `[DONE]` is skipped; anything that is not a JSON object is a failure GARBAGE. */
export function createSseJsonTransducer(stream: CanonicalStream, wire: SseJsonWire): StreamTransducer {
  const garbage = (): void => stream.fail(failure('GARBAGE', true, 200));
  /** The connection has closed, so that an unreadable last event is one that was cut off. */
  let isClosing = false;

  const sse = createSseParser((bytes, from, to) => {
    if (stream.isOver()) return;
    if (!isWithin(bytes, from, to, EVENT_BOUNDS)) {
      garbage();
      return;
    }
    const text = bytes.toString('utf8', from, to).trim();
    if (text === '' || text === '[DONE]') return;
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      parsed = undefined;
    }
    // Google wraps an error of a stream in a list of one.
    const frame: unknown = Array.isArray(parsed) && parsed.length === 1 ? parsed[0] : parsed;
    if (!isObject(frame)) {
      // What broke off behind the answer is no part of it.
      if (!isClosing || !stream.summary().isFinished) garbage();
      return;
    }
    try {
      wire.onFrame(frame, frame === parsed ? text : (sourceOf(text, [0]) ?? ''));
      stream.flush();
    } catch (error) {
      if (!isGarbage(error)) throw error;
      garbage();
    }
  });

  return {
    push: (bytes) => {
      if (stream.isOver()) return [];
      if (!sse.push(bytes)) garbage();
      return stream.take();
    },
    close: () => {
      if (stream.isOver()) return [];
      isClosing = true;
      if (!sse.close()) garbage();
      if (!stream.isOver()) wire.onClose();
      return stream.take();
    },
    finishOpen: (reason) => stream.finishOpen(reason),
    finishEnded: () => stream.finishEnded(),
    summary: () => stream.summary(),
  };
}
