/** Ollama's stream: lines of JSON in, canonical chunks out. */
import { failure, isError, isGarbage, parsedObject, type StreamTransducer } from '../canonical.js';
import { createCanonicalStream } from '../canonical-stream.js';
import { EVENT_BOUNDS, isWithin } from '../json-bounds.js';
import { createLineSplitter } from '../lines.js';
import { classifyOllamaError } from './errors.js';
import { isNoAnswer, mapDoneReason } from './finish-reason.js';
import { readForcedCall } from './forced-call.js';
import { readMessage } from './message.js';
import { isUsageUnreadable, readUsage } from './usage.js';

/** `isForced`: the content is a call that had to be made, told once it is whole. `seed` makes ids for calls without one. */
export function createOllamaTransducer(seed: string, isForced: boolean): StreamTransducer {
  const stream = createCanonicalStream(seed);
  let held = '';
  let hasCalls = false;
  /** The line that is no JSON began as if it were. */
  let isObjectBegun = false;

  const release = (): void => {
    const call = hasCalls ? undefined : readForcedCall(held);
    if (call === undefined) stream.content(0, held);
    else stream.openCall(0, call);
    held = '';
  };

  const onLine = (line: Buffer): boolean => {
    if (stream.isOver()) return true;
    if (!isWithin(line, 0, line.length, EVENT_BOUNDS)) return false;
    const text = line.toString('utf8').trim();
    if (text === '') return true;
    const frame = parsedObject(text);
    if (frame === undefined) {
      isObjectBegun = text.startsWith('{');
      return false;
    }
    if (isError(frame['error'])) {
      stream.fail(classifyOllamaError(frame['error']));
      return true;
    }
    const { content, reasoning, calls, logprobs } = readMessage(frame, text);
    stream.reasoning(0, reasoning);
    if (isForced) held += content;
    else stream.content(0, content);
    for (const call of calls) stream.openCall(0, call);
    hasCalls ||= calls.length > 0;
    if (logprobs !== null) stream.logprobs(0, logprobs);
    if (frame['done'] === true) {
      const reason = typeof frame['done_reason'] === 'string' ? frame['done_reason'] : '';
      if (isNoAnswer(reason)) {
        stream.fail(failure('EMPTY', true, 200));
        return true;
      }
      release();
      stream.flush();
      const usage = readUsage(frame);
      if (usage !== undefined || isUsageUnreadable(frame)) stream.usage(usage);
      stream.finish(0, mapDoneReason(reason));
      stream.end();
    } else stream.flush();
    return true;
  };

  const lines = createLineSplitter((line) => {
    try {
      return onLine(line);
    } catch (error) {
      if (!isGarbage(error)) throw error;
      return false;
    }
  });
  return {
    push: (bytes) => {
      if (!stream.isOver() && !lines.push(bytes)) stream.fail(failure('GARBAGE', true, 200));
      return stream.take();
    },
    close: () => {
      // What is left is the last line without its line feed, or one that broke off.
      if (!stream.isOver() && !lines.close()) stream.fail(failure(isObjectBegun ? 'DISCONNECTED' : 'GARBAGE', true, 200));
      if (!stream.isOver()) stream.end();
      return stream.take();
    },
    finishOpen: (reason) => stream.finishOpen(reason),
    summary: () => stream.summary(),
  };
}
