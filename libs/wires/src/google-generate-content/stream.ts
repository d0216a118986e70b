/** The stream of streamGenerateContent?alt=sse: events in the shape of whole answers, ended by the connection's end. */
import { isObject, type JsonObject, type StreamTransducer, type Usage } from '../canonical.js';
import { createCanonicalStream } from '../canonical-stream.js';
import { createSseJsonTransducer } from '../sse-json.js';
import { candidatesOf, isNothing, isPromptBlocked, type Candidate } from './candidate.js';
import { classifyErrorFrame, promptBlocked } from './errors.js';
import { readUsage } from './usage.js';

/** `seed` makes ids for tool calls that came without one. `names`: those of functions that were sent under another, by it. `candidatesAsked`: fewer than those do not make a stream finished. */
export function createGenerateContentTransducer(seed: string, names: ReadonlyMap<string, string> = new Map(), candidatesAsked = 1): StreamTransducer {
  const stream = createCanonicalStream(seed, candidatesAsked);
  /** The figures of all events so far, and what they come to. */
  let told: { readonly figures: JsonObject; readonly usage: Usage | undefined } | undefined;

  /** Each event tells the tokens so far; a gateway's last one may leave out what those before told, such as what the cache gave. */
  const learn = (later: JsonObject): void => {
    const figures = { ...told?.figures, ...later };
    told = { figures, usage: readUsage(figures) };
  };

  const give = (candidate: Candidate): void => {
    const { index } = candidate;
    stream.content(index, candidate.content);
    stream.reasoning(index, candidate.reasoning);
    stream.images(index, candidate.images);
    if (candidate.extra !== undefined) stream.extra(index, candidate.extra);
    if (candidate.logprobs !== undefined) stream.logprobs(index, candidate.logprobs);
    for (const call of candidate.calls) stream.openCall(index, call);
    if (candidate.reason !== undefined) stream.finish(index, candidate.reason, candidate.isModelsFault);
  };

  const onFrame = (frame: JsonObject, text: string): void => {
    if (isObject(frame['usageMetadata'])) learn(frame['usageMetadata']);
    const isBlocked = isPromptBlocked(frame);
    const isError = isObject(frame['error']);
    if (!isError) for (const candidate of candidatesOf(frame, text, names)) give(candidate);
    if (told !== undefined) {
      // Only with the end they are all.
      if (isError || isBlocked || stream.areFinished()) stream.usage(told.usage);
      else stream.runningUsage(told.usage);
    }
    if (isError) stream.fail(classifyErrorFrame(frame));
    else if (isBlocked) stream.fail(promptBlocked());
  };

  const saidNothing = (): boolean => {
    const { contentSeen, finishReason } = stream.summary();
    return isNothing(contentSeen, finishReason, told?.usage);
  };

  return { ...createSseJsonTransducer(stream, { onFrame, onClose: () => stream.close() }), saidNothing };
}
