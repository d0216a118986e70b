/** Puts the canonical chunks of a stream together as the whole answer that a client without a stream gets. */
import { isObject, type JsonObject } from './canonical.js';
import { INSTEAD_OF_CONTENT } from './choice-parts.js';
import { joinReasoningDetails } from './reasoning-details.js';

const JOINED_TEXTS = ['content', 'refusal', 'reasoning', 'reasoning_content'] as const;
const JOINED_LISTS = ['reasoning_details', 'images', 'annotations'] as const;
/** Of the object `audio`. */
const JOINED_AUDIO: ReadonlySet<string> = new Set(['data', 'transcript']);

interface GatheredCall {
  index: number;
  told: Record<string, unknown>;
  name: string;
  args: string;
}

interface GatheredChoice {
  readonly message: Record<string, unknown>;
  readonly calls: Map<number, GatheredCall>;
  logprobs: Record<string, unknown[] | null> | undefined;
  finishReason: unknown;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function addCall(choice: GatheredChoice, raw: unknown): void {
  if (!isObject(raw) || typeof raw['index'] !== 'number') return;
  const { index, function: called, ...told } = raw as JsonObject & { readonly index: number };
  let call = choice.calls.get(index);
  if (call === undefined) choice.calls.set(index, (call = { index, told: {}, name: '', args: '' }));
  Object.assign(call.told, told);
  if (!isObject(called)) return;
  call.name += textOf(called['name']);
  call.args += textOf(called['arguments']);
}

function joinedAudio(before: unknown, delta: JsonObject): JsonObject {
  const audio: Record<string, unknown> = isObject(before) ? { ...before } : {};
  for (const [name, value] of Object.entries(delta)) audio[name] = JOINED_AUDIO.has(name) ? textOf(audio[name]) + textOf(value) : value;
  return audio;
}

/** To the list itself: a copy for each chunk would cost the square of their number. */
function addItems(message: Record<string, unknown>, name: string, items: readonly unknown[]): void {
  const list = (message[name] ??= []) as unknown[];
  for (const item of items) list.push(item);
}

function addDelta(choice: GatheredChoice, delta: JsonObject): void {
  const { message } = choice;
  for (const [name, value] of Object.entries(delta)) {
    if (value === null || value === undefined) continue;
    if (name === 'tool_calls') {
      if (Array.isArray(value)) for (const call of value as readonly unknown[]) addCall(choice, call);
    } else if (JOINED_TEXTS.some((text) => text === name)) message[name] = textOf(message[name]) + textOf(value);
    else if (JOINED_LISTS.some((list) => list === name) && Array.isArray(value)) addItems(message, name, value);
    else if (name === 'function_call' && isObject(value)) {
      const before = isObject(message[name]) ? message[name] : {};
      message[name] = { name: textOf(before['name']) + textOf(value['name']), arguments: textOf(before['arguments']) + textOf(value['arguments']) };
    } else if (name === 'audio' && isObject(value)) message[name] = joinedAudio(message[name], value);
    else if (name !== 'role') message[name] = value;
  }
}

function addLogprobs(choice: GatheredChoice, logprobs: unknown): void {
  if (!isObject(logprobs)) return;
  const known = (choice.logprobs ??= {});
  for (const [name, items] of Object.entries(logprobs)) {
    if (Array.isArray(items)) addItems(known, name, items);
    else if (items === null) known[name] ??= null;
  }
}

function wholeChoice(index: number, { message, calls, logprobs, finishReason }: GatheredChoice): object {
  const { content = '', refusal = null, ...more } = message;
  if (Array.isArray(more['reasoning_details'])) more['reasoning_details'] = joinReasoningDetails(more['reasoning_details']);
  const toolCalls = [...calls.values()].sort((a, b) => a.index - b.index).map(({ told, name, args }) => ({ ...told, function: { name, arguments: args } }));
  const isSaidElsewhere = toolCalls.length > 0 || INSTEAD_OF_CONTENT.some((name) => message[name] !== undefined && message[name] !== '');
  return {
    index,
    message: { role: 'assistant', content: isSaidElsewhere && content === '' ? null : content, refusal, ...more, ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }) },
    logprobs: logprobs ?? null,
    finish_reason: finishReason,
  };
}

export class Gatherer {
  private readonly choices = new Map<number, GatheredChoice>();

  /** JSON array text of canonical choices of one chunk, UTF-8. */
  add(choices: Uint8Array): void {
    const parsed = JSON.parse(Buffer.from(choices.buffer, choices.byteOffset, choices.length).toString('utf8')) as unknown;
    for (const raw of Array.isArray(parsed) ? (parsed as readonly unknown[]).filter(isObject) : []) {
      const index = typeof raw['index'] === 'number' ? raw['index'] : 0;
      let choice = this.choices.get(index);
      if (choice === undefined) this.choices.set(index, (choice = { message: {}, calls: new Map(), logprobs: undefined, finishReason: 'stop' }));
      if (isObject(raw['delta'])) addDelta(choice, raw['delta']);
      addLogprobs(choice, raw['logprobs']);
      if (typeof raw['finish_reason'] === 'string') choice.finishReason = raw['finish_reason'];
    }
  }

  /** JSON array text of canonical choices of a whole answer, UTF-8. */
  whole(): Buffer {
    return Buffer.from(JSON.stringify([...this.choices].sort(([a], [b]) => a - b).map(([index, choice]) => wholeChoice(index, choice))));
  }
}
