/** Cohere's stream: typed events, ended by `message-end`. */
import { Garbage, isObject, type JsonObject, type StreamTransducer } from '../canonical.js';
import { createCanonicalStream, type CanonicalStream } from '../canonical-stream.js';
import { sourceOf } from '../json-source.js';
import { createSseJsonTransducer } from '../sse-json.js';
import { messageOf, readCall, readLogprobs, readText, type Call } from './content.js';
import { classifyErrorFrame } from './errors.js';
import { mapFinishReason } from './finish-reason.js';
import { readUsage } from './usage.js';

/** One answer a request. */
const CHOICE = 0;

/** Tool calls by the index of their events; numbered anew. */
function createCalls(stream: CanonicalStream) {
  /** Positions of those that go on. */
  const open = new Map<unknown, number>();
  /** Indexes that calls have begun at, those that are over, too. */
  const begun = new Set<unknown>();
  const close = (index: unknown): void => {
    const position = open.get(index);
    if (position !== undefined) stream.endCall(CHOICE, position);
    open.delete(index);
  };
  return {
    start: (index: unknown, call: Call): void => {
      begun.add(index);
      close(index);
      open.set(index, stream.openCall(CHOICE, call));
    },
    more: (index: unknown, { arguments: text }: Call): void => {
      const position = open.get(index);
      // Its start was lost, and its name with it.
      if (text !== '' && !begun.has(index)) throw new Garbage('Arguments of no call.');
      if (position !== undefined) stream.callArguments(CHOICE, position, text);
    },
    close,
  };
}

/** `tool_calls` of an event is one call, or a list of one. `text` is the event's. */
function callOf(frame: JsonObject, text: string): Call {
  const calls = messageOf(frame)['tool_calls'];
  const path = ['delta', 'message', 'tool_calls'];
  return Array.isArray(calls) ? readCall((calls as readonly unknown[])[0], () => sourceOf(text, [...path, 0])) : readCall(calls, () => sourceOf(text, path));
}

/** `seed` makes ids for tool calls that came without one. */
export function createCohereTransducer(seed: string): StreamTransducer {
  const stream = createCanonicalStream(seed);
  const calls = createCalls(stream);

  const onText = (frame: JsonObject): void => {
    const { content, reasoning } = readText(messageOf(frame)['content']);
    stream.content(CHOICE, content);
    stream.reasoning(CHOICE, reasoning);
    const logprobs = readLogprobs(frame['logprobs']);
    if (logprobs !== undefined) stream.logprobs(CHOICE, logprobs);
  };

  const onEnd = (frame: JsonObject): void => {
    const delta = isObject(frame['delta']) ? frame['delta'] : {};
    const isBroken = typeof delta['error'] === 'string' && delta['error'] !== '';
    if (isObject(delta['usage'])) stream.usage(readUsage(delta['usage']));
    if (isBroken) {
      stream.fail(classifyErrorFrame(delta));
      return;
    }
    stream.finish(CHOICE, mapFinishReason(delta['finish_reason']));
    stream.end();
  };

  const onFrame = (frame: JsonObject, text: string): void => {
    switch (frame['type']) {
      case 'content-start':
      case 'content-delta':
        onText(frame);
        return;
      case 'tool-plan-delta': {
        const plan = messageOf(frame)['tool_plan'];
        if (typeof plan === 'string') stream.reasoning(CHOICE, plan);
        return;
      }
      case 'tool-call-start':
        calls.start(frame['index'], callOf(frame, text));
        return;
      case 'tool-call-delta':
        calls.more(frame['index'], callOf(frame, text));
        return;
      case 'tool-call-end':
        calls.close(frame['index']);
        return;
      case 'message-end':
        onEnd(frame);
        return;
      case undefined:
        // Refusals come without a type, also inside a 200.
        stream.fail(classifyErrorFrame(frame));
        return;
      default:
        // message-start, content-end, citations and what comes later say nothing that an answer needs.
        return;
    }
  };

  return createSseJsonTransducer(stream, { onFrame, onClose: stream.end });
}
