/** The stream of ConverseStream: binary events in, canonical chunks out. */
import { CLAUDE_THOUGHT, redactedDetail, thinkingDetails } from '../anthropic-messages/thinking.js';
import { argumentsPiece } from '../call-arguments.js';
import { failure, Garbage, isGarbage, isObject, parsedObject, type JsonObject, type StreamTransducer } from '../canonical.js';
import { createCanonicalStream } from '../canonical-stream.js';
import { isCutShort } from '../choice-parts.js';
import { createEventStreamParser, type EventMessage } from '../event-stream.js';
import { EVENT_BOUNDS, isWithin } from '../json-bounds.js';
import { sourceOf } from '../json-source.js';
import { JSON_TOOL } from '../json-tool.js';
import { classifyConverseException } from './errors.js';
import { isModelsFault, mapStopReason } from './finish-reason.js';
import { readUsage } from './usage.js';

interface OpenBlock {
  /** Position of a call among the answer's; undefined = no call, -1 = the JSON answer, which is content. */
  readonly call: number | undefined;
  hasInput: boolean;
  thinking: string;
  signature: string;
}

const stringOf = (object: JsonObject, name: string): string => (typeof object[name] === 'string' ? object[name] : '');
const objectOf = (object: JsonObject, name: string): JsonObject | undefined => (isObject(object[name]) ? object[name] : undefined);

/** How an answer is to be read. */
export interface ConverseReading {
  /** Makes ids for calls without one. */
  readonly seed: string;
  /** The input of `JSON_TOOL` is the content. */
  readonly isUnwrapped: boolean;
  /** The model is Claude. What others sign would come back to Claude as its own. */
  readonly isClaude: boolean;
  /** The model is OpenAI's: its streams count the cache within the input, which whole answers do not. */
  readonly isOpenAi: boolean;
  /** Names of functions that were sent under another, by it. */
  readonly names: ReadonlyMap<string, string>;
}

export function createConverseTransducer({ seed, isUnwrapped, isClaude, isOpenAi, names }: ConverseReading): StreamTransducer {
  const stream = createCanonicalStream(seed);
  const blocks = new Map<unknown, OpenBlock>();
  let details = 0;
  let hasStarted = false;
  let hasStopped = false;
  /** The JSON answer is an empty object, unless it was cut off. */
  let hasBareAnswer = false;
  const garbage = (): void => stream.fail(failure('GARBAGE', true, 200));

  const open = (index: unknown, call?: number): OpenBlock => {
    const block: OpenBlock = { call, hasInput: false, thinking: '', signature: '' };
    blocks.set(index, block);
    return block;
  };

  const giveInput = (block: OpenBlock, text: string): void => {
    if (text === '') return;
    // The start of the call was lost, and its name with it.
    if (block.call === undefined) throw new Garbage('Arguments of no call.');
    block.hasInput = true;
    if (block.call === -1) stream.content(0, text);
    else stream.callArguments(0, block.call, text);
  };

  const tellDetails = (told: readonly JsonObject[]): void => {
    if (!isClaude) return;
    stream.reasoningDetails(0, told);
    details += told.length;
  };

  const addReasoning = (block: OpenBlock, delta: JsonObject): void => {
    const text = stringOf(delta, 'text');
    block.thinking += text;
    block.signature += stringOf(delta, 'signature');
    stream.reasoning(0, text);
    const redacted = stringOf(delta, 'redactedContent');
    if (redacted !== '') tellDetails([redactedDetail(redacted, details, CLAUDE_THOUGHT)]);
  };

  const close = (block: OpenBlock): void => {
    if (block.call !== undefined && !block.hasInput) {
      if (block.call === -1) hasBareAnswer = true;
      else stream.endCall(0, block.call);
    }
    tellDetails(thinkingDetails(block.thinking, block.signature, details, CLAUDE_THOUGHT));
  };

  const closeAt = (index: unknown): void => {
    const block = blocks.get(index);
    blocks.delete(index);
    if (block !== undefined) close(block);
  };

  const onBlockStart = (event: JsonObject): void => {
    const use = objectOf(objectOf(event, 'start') ?? {}, 'toolUse');
    if (use === undefined) return;
    const name = stringOf(use, 'name');
    // Where it is said anew nothing more can come for the block before.
    closeAt(event['contentBlockIndex']);
    if (name === '') garbage();
    else open(event['contentBlockIndex'], isUnwrapped && name === JSON_TOOL ? -1 : stream.openCall(0, { id: stringOf(use, 'toolUseId'), name: names.get(name) ?? name, arguments: '' }));
  };

  const onBlockDelta = (event: JsonObject, text: string): void => {
    const delta = objectOf(event, 'delta');
    if (delta === undefined) return;
    // Blocks of text and thought may begin with their first piece.
    const block = blocks.get(event['contentBlockIndex']) ?? open(event['contentBlockIndex']);
    stream.content(0, stringOf(delta, 'text'));
    giveInput(block, argumentsPiece(objectOf(delta, 'toolUse')?.['input'], () => sourceOf(text, ['delta', 'toolUse', 'input'])));
    addReasoning(block, objectOf(delta, 'reasoningContent') ?? {});
  };

  const stop = (reason: string): void => {
    if (hasStopped) return;
    hasStopped = true;
    for (const block of blocks.values()) close(block);
    blocks.clear();
    const mapped = mapStopReason(reason);
    if (hasBareAnswer && !isCutShort(mapped)) stream.content(0, '{}');
    stream.flush();
    stream.finish(0, mapped, isModelsFault(reason));
  };

  const onEvent = (type: string, event: JsonObject, text: string): void => {
    switch (type) {
      case 'messageStart':
        hasStarted = true;
        break;
      case 'contentBlockStart':
        onBlockStart(event);
        break;
      case 'contentBlockDelta':
        onBlockDelta(event, text);
        break;
      case 'contentBlockStop':
        closeAt(event['contentBlockIndex']);
        break;
      case 'messageStop':
        stop(stringOf(event, 'stopReason'));
        break;
      case 'metadata':
        if (isObject(event['usage'])) stream.usage(readUsage(event['usage'], isOpenAi));
        if (hasStopped) stream.end();
        break;
    }
  };

  const onMessage = ({ headers, payload }: EventMessage): void => {
    if (stream.isOver()) return;
    if (!isWithin(payload, 0, payload.length, EVENT_BOUNDS)) {
      garbage();
      return;
    }
    const text = payload.toString('utf8');
    const parsed = parsedObject(text);
    const kind = headers.get(':message-type');
    if (kind === 'exception') stream.fail(classifyConverseException(headers.get(':exception-type') ?? '', parsed));
    else if (kind === 'error') stream.fail(classifyConverseException(headers.get(':error-code') ?? '', { message: headers.get(':error-message') }));
    else if (parsed !== undefined) onEvent(headers.get(':event-type') ?? '', parsed, text);
    else garbage();
    stream.flush();
  };

  const parser = createEventStreamParser((message) => {
    try {
      onMessage(message);
    } catch (error) {
      if (!isGarbage(error)) throw error;
      garbage();
    }
  });
  return {
    push: (bytes) => {
      if (stream.isOver()) return [];
      if (!parser.push(bytes)) garbage();
      return stream.take();
    },
    close: () => {
      if (stream.isOver()) return [];
      // What was cut off behind the stop reason was usage: the answer is whole.
      if (!hasStopped && (hasStarted || !parser.close())) stream.fail(failure('DISCONNECTED', true, 200));
      else stream.end();
      return stream.take();
    },
    finishOpen: (reason) => stream.finishOpen(reason),
    summary: () => stream.summary(),
  };
}
