/** Builds a whole canonical answer for wires other than OpenAI's. */
import { ARGUMENTS_CHARS_MAX, CALLS_MAX, failure, isGarbage, modelsFault, parsedObject, type AnswerResult, type FinishReason, type JsonObject, type Usage } from './canonical.js';
import { isOtherJson } from './call-arguments.js';
import { callBytes, callObject, finishWithCalls, madeCallId, type CallParts } from './choice-parts.js';

export interface ChoiceParts {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly CallParts[];
  /** Canonical `images` items. */
  readonly images: readonly unknown[];
  /** Canonical `reasoning_details` items. */
  readonly reasoningDetails?: readonly JsonObject[];
  /** Provider-only state of the message, to be sent back with it. */
  readonly extra: JsonObject | undefined;
  /** Canonical `logprobs`; null = none. */
  readonly logprobs: unknown;
  readonly reason: FinishReason;
  /** The reason is an error, and the model's own. */
  readonly isModelsFault?: boolean;
}

export interface TotalUsage {
  readonly usage: Usage | undefined;
  /** There were figures, and they cannot be token counts. */
  readonly isUnreadable: boolean;
}

function bytesOf({ content, reasoning, calls }: ChoiceParts): number {
  return Buffer.byteLength(content) + Buffer.byteLength(reasoning) + calls.reduce((sum, call) => sum + callBytes(call), 0);
}

function hasContent({ content, reasoning, calls, images }: ChoiceParts): boolean {
  return content !== '' || reasoning !== '' || calls.length > 0 || images.length > 0;
}

/** Some hosts put it before what they write. */
const BOM = '\ufeff';

export interface AnswerJson {
  readonly object: JsonObject;
  /** What it was read from. */
  readonly text: string;
}

/** undefined when a body is no JSON object. */
export function readAnswerJson(body: Uint8Array): AnswerJson | undefined {
  const whole = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8');
  const text = whole.startsWith(BOM) ? whole.slice(BOM.length) : whole;
  const object = parsedObject(text);
  return object === undefined ? undefined : { object, text };
}

/** What `read` gives, or GARBAGE where it cannot be read at all. */
export function readSafely(read: () => AnswerResult): AnswerResult {
  try {
    return read();
  } catch (error) {
    if (!isGarbage(error)) throw error;
    return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  }
}

/** An answer, or the failure that the parts amount to: none at all, a broken one, one that the provider's policy emptied. */
export function answerOf(choices: readonly ChoiceParts[], { usage, isUnreadable }: TotalUsage, seed: string): AnswerResult {
  const [first] = choices;
  if (first === undefined) return { ok: false, failure: failure('EMPTY', true, 200), usage };
  const argumentsChars = choices.reduce((sum, { calls }) => calls.reduce((chars, { arguments: text }) => chars + text.length, sum), 0);
  // Nobody can answer a call without a name, or read one whose arguments are no object.
  if (argumentsChars > ARGUMENTS_CHARS_MAX || choices.some(({ calls }) => calls.length > CALLS_MAX || calls.some(({ name, arguments: text }) => name === '' || isOtherJson(text)))) return { ok: false, failure: failure('GARBAGE', true, 200), usage };
  const broken = choices.filter(({ reason }) => reason === 'error');
  if (broken.length > 0) return { ok: false, failure: broken.every(({ isModelsFault }) => isModelsFault === true) ? modelsFault() : failure('PROVIDER_ERROR', true, 200), usage };
  if (choices.every((choice) => choice.reason === 'content_filter' && !hasContent(choice))) {
    return { ok: false, failure: { ...failure('CONTENT_POLICY', false, 200), publicMessage: 'The provider refused to answer for reasons of its content policy.' }, usage };
  }
  const ids = new Set<string>();
  /** Some hosts number each call anew: the second of an id is given one of ours, as in streams. */
  const idOf = (told: string, choice: number, position: number): string => {
    const id = told === '' || ids.has(told) ? madeCallId(seed, choice, position) : told;
    ids.add(id);
    return id;
  };
  const told = choices.map((choice, index) => ({
    index,
    message: {
      role: 'assistant',
      content: choice.calls.length > 0 && choice.content === '' ? null : choice.content,
      refusal: null,
      ...(choice.reasoning === '' ? {} : { reasoning_content: choice.reasoning }),
      ...(choice.images.length === 0 ? {} : { images: choice.images }),
      ...(choice.reasoningDetails === undefined || choice.reasoningDetails.length === 0 ? {} : { reasoning_details: choice.reasoningDetails }),
      ...(choice.extra === undefined ? {} : { extra_content: choice.extra }),
      ...(choice.calls.length === 0 ? {} : { tool_calls: choice.calls.map((call, position) => callObject(call, idOf(call.id, index, position))) }),
    },
    logprobs: choice.logprobs,
    finish_reason: finishWithCalls(choice.reason, choice.calls.length),
  }));
  return {
    ok: true,
    answer: {
      choices: Buffer.from(JSON.stringify(told)),
      systemFingerprint: '',
      serviceTier: '',
      usage,
      usageUnreadable: isUnreadable,
      finishReason: told[0]?.finish_reason ?? 'stop',
      outputBytes: choices.reduce((sum, choice) => sum + bytesOf(choice), 0),
      thoughtBytes: choices.reduce((sum, { reasoning }) => sum + Buffer.byteLength(reasoning), 0),
    },
  };
}
