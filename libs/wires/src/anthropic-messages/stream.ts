/** The Messages API's stream: events in, canonical chunks out. */
import { failure, Garbage, isObject, type JsonObject, type StreamTransducer } from '../canonical.js';
import { argumentsOf, argumentsPiece, isBareObject } from '../call-arguments.js';
import { createCanonicalStream } from '../canonical-stream.js';
import { isCutShort } from '../choice-parts.js';
import { sourceOf } from '../json-source.js';
import { JSON_TOOL } from '../json-tool.js';
import { createSseJsonTransducer } from '../sse-json.js';
import { classifyMessagesError } from './errors.js';
import { mapStopReason, REFUSAL } from './finish-reason.js';
import { CLAUDE_THOUGHT, redactedDetail, thinkingDetails } from './thinking.js';
import { laterFigures, promptUsageOf, readFigures, usageOf, type UsageFigures } from './usage.js';

interface OpenBlock {
  readonly type: string;
  /** Position of a call among the answer's; -1 = the JSON answer, which is content. */
  readonly call: number;
  /** Input that came whole with the start; a delta puts it aside. */
  whole: string;
  hasInput: boolean;
  thinking: string;
  signature: string;
}

const stringOf = (object: JsonObject, name: string): string => (typeof object[name] === 'string' ? object[name] : '');
const objectOf = (object: JsonObject, name: string): JsonObject => (isObject(object[name]) ? object[name] : {});

/** `format`: whose thought the model's is. `isUnwrapped`: the input of `JSON_TOOL` is the content. `refusesForFree`: of the host. `seed` makes ids for calls without one. `names`: those of functions that were sent under another, by it. */
export function createMessagesTransducer(seed: string, isUnwrapped: boolean, format = CLAUDE_THOUGHT, refusesForFree = false, names: ReadonlyMap<string, string> = new Map()): StreamTransducer {
  const stream = createCanonicalStream(seed);
  const blocks = new Map<unknown, OpenBlock>();
  let figures: UsageFigures | undefined;
  let details = 0;
  let hasStarted = false;
  let hasBlocks = false;
  let hasStopped = false;
  /** Its figures are those of no bill. */
  let isFree = false;
  /** The JSON answer is an empty object, unless it was cut off. */
  let hasBareAnswer = false;

  const learn = (raw: unknown): void => {
    const told = readFigures(raw);
    if (told !== undefined) figures = laterFigures(figures, told);
  };

  const blockOf = (type: string): OpenBlock => ({ type, call: -1, whole: '', hasInput: false, thinking: '', signature: '' });

  const openBlock = (block: JsonObject, frameText: string): OpenBlock => {
    hasBlocks = true;
    const type = stringOf(block, 'type');
    const open = blockOf(type);
    switch (type) {
      case 'text':
        stream.content(0, stringOf(block, 'text'));
        return open;
      case 'thinking':
        open.thinking = stringOf(block, 'thinking');
        open.signature = stringOf(block, 'signature');
        stream.reasoning(0, open.thinking);
        return open;
      case 'redacted_thinking':
        stream.reasoningDetails(0, [redactedDetail(stringOf(block, 'data'), details, format)]);
        details += 1;
        return open;
      case 'tool_use': {
        const isAnswer = isUnwrapped && block['name'] === JSON_TOOL;
        const { input } = block;
        const name = stringOf(block, 'name');
        if (name === '') stream.fail(failure('GARBAGE', true, 200));
        const whole = argumentsOf(input, () => sourceOf(frameText, ['content_block', 'input']));
        return { ...open, whole, call: isAnswer ? -1 : stream.openCall(0, { id: stringOf(block, 'id'), name: names.get(name) ?? name, arguments: '' }) };
      }
      default:
        return open;
    }
  };

  const giveInput = (block: OpenBlock, text: string): void => {
    if (text === '') return;
    block.hasInput = true;
    if (block.call === -1) stream.content(0, text);
    else stream.callArguments(0, block.call, text);
  };

  /** Of an empty object that stood with the start nobody knows yet whether it is the input, or all that came of it. */
  const giveNoPieces = (block: OpenBlock): void => {
    if (!isBareObject(block.whole)) giveInput(block, block.whole);
    else if (block.call === -1) hasBareAnswer = true;
    else stream.endCall(0, block.call);
  };

  const addDelta = (block: OpenBlock, delta: JsonObject, text: string): void => {
    switch (delta['type']) {
      case 'text_delta':
        stream.content(0, stringOf(delta, 'text'));
        break;
      case 'thinking_delta':
        block.thinking += stringOf(delta, 'thinking');
        stream.reasoning(0, stringOf(delta, 'thinking'));
        break;
      case 'signature_delta':
        block.signature += stringOf(delta, 'signature');
        break;
      case 'input_json_delta':
        if (block.type === 'tool_use') giveInput(block, argumentsPiece(delta['partial_json'], () => sourceOf(text, ['delta', 'partial_json'])));
        break;
    }
  };

  const closeBlock = (block: OpenBlock): void => {
    if (block.type === 'tool_use' && !block.hasInput) giveNoPieces(block);
    if (block.type === 'thinking') {
      const told = thinkingDetails(block.thinking, block.signature, details, format);
      stream.reasoningDetails(0, told);
      details += told.length;
    }
  };

  /** The block that a delta belongs to: one whose start was lost is told by what comes of it. */
  const blockAt = (index: unknown, delta: JsonObject): OpenBlock => {
    let block = blocks.get(index);
    if (block === undefined) {
      hasBlocks = true;
      // Of a call its name is lost, too.
      if (delta['type'] === 'input_json_delta') throw new Garbage('Arguments of no call.');
      blocks.set(index, (block = blockOf(delta['type'] === 'thinking_delta' ? 'thinking' : 'text')));
    }
    return block;
  };

  const closeAt = (index: unknown): void => {
    const block = blocks.get(index);
    blocks.delete(index);
    if (block !== undefined) closeBlock(block);
  };

  const stop = (reason: string): void => {
    if (hasStopped) return;
    hasStopped = true;
    isFree = refusesForFree && reason === REFUSAL && !hasBlocks;
    for (const block of blocks.values()) closeBlock(block);
    blocks.clear();
    const mapped = mapStopReason(reason);
    if (hasBareAnswer && !isCutShort(mapped)) stream.content(0, '{}');
    stream.flush();
    stream.finish(0, mapped);
  };

  const onFrame = (frame: JsonObject, text: string): void => {
    switch (frame['type']) {
      case 'message_start':
        hasStarted = true;
        learn(objectOf(frame, 'message')['usage']);
        // Of an answer that breaks, this is all that is ever told of its prompt.
        if (!hasStopped) stream.runningUsage(promptUsageOf(figures));
        break;
      case 'content_block_start':
        // Where it is said anew nothing more can come for the block before.
        closeAt(frame['index']);
        blocks.set(frame['index'], openBlock(objectOf(frame, 'content_block'), text));
        break;
      case 'content_block_delta': {
        const delta = objectOf(frame, 'delta');
        addDelta(blockAt(frame['index'], delta), delta, text);
        break;
      }
      case 'content_block_stop':
        closeAt(frame['index']);
        break;
      case 'message_delta': {
        const reason = stringOf(objectOf(frame, 'delta'), 'stop_reason');
        if (reason !== '') stop(reason);
        // Until here output was a first guess: an answer that breaks before is counted by what came.
        if (isObject(frame['usage']) && !isFree) {
          learn(frame['usage']);
          stream.usage(readFigures(frame['usage']) === undefined ? undefined : usageOf(figures));
        }
        break;
      }
      case 'message_stop':
        if (hasStarted) stop('end_turn');
        stream.end();
        break;
      case 'error':
        stream.fail(classifyMessagesError(frame['error']));
        break;
    }
  };

  return createSseJsonTransducer(stream, {
    onFrame,
    onClose: () => {
      if (hasStarted && !hasStopped) stream.fail(failure('DISCONNECTED', true, 200));
      else stream.end();
    },
  });
}
