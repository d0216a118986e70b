/** One made-up answer, said on every wire in the ways that its hosts say it. */
import fc from 'fast-check';
import type { AnswerResult, StreamTransducer } from '../canonical.js';
import { createMessagesTransducer } from '../anthropic-messages/stream.js';
import { readMessagesAnswer } from '../anthropic-messages/response.js';
import { createConverseTransducer } from '../bedrock-converse/stream.js';
import { readConverseAnswer } from '../bedrock-converse/response.js';
import { createCohereTransducer } from '../cohere-v2/stream.js';
import { readCohereAnswer } from '../cohere-v2/response.js';
import { createGenerateContentTransducer } from '../google-generate-content/stream.js';
import { readGenerateContentAnswer } from '../google-generate-content/response.js';
import { createOllamaTransducer } from '../ollama/stream.js';
import { readOllamaAnswer } from '../ollama/response.js';
import { createChatTransducer } from '../openai-chat/stream.js';
import { readChatAnswer } from '../openai-chat/response.js';
import { exceptionEvent, jsonEvent } from './event-stream.js';

export interface ScriptedCall {
  readonly name: string;
  /** JSON text of an object, in pieces; empty = a call without arguments. */
  readonly pieces: readonly string[];
}

export interface Script {
  readonly reasoning: readonly string[];
  readonly text: readonly string[];
  readonly calls: readonly ScriptedCall[];
  readonly input: number;
  readonly output: number;
  readonly isCut: boolean;
  /** Which of the host's habits. */
  readonly habit: number;
}

export interface ScriptedWire {
  readonly name: string;
  create(): StreamTransducer;
  read(body: Buffer): AnswerResult;
  /** The whole stream, one frame each. */
  frames(script: Script): readonly Buffer[];
  /** The same answer in one piece. */
  body(script: Script): Buffer;
  /** The provider's content policy stops an answer in the middle. */
  readonly policy: Buffer;
  /** Whether calls can come in pieces that mix: else each call is finished before the next one begins. */
  readonly isSse: boolean;
}

const SEED = 'seed';
const argumentsOf = ({ pieces }: ScriptedCall): string => pieces.join('') || '{}';
const objectOf = (call: ScriptedCall): unknown => JSON.parse(argumentsOf(call)) as unknown;
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const data = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const event = (value: { readonly type: string } & Readonly<Record<string, unknown>>): Buffer => Buffer.from(`event: ${value.type}\n${data(value).toString()}`);
const joined = (texts: readonly string[]): string => texts.join('');

/** Items of the lists in turns: what hosts do that make several calls at once. */
function interleaved<Item>(lists: readonly (readonly Item[])[]): readonly Item[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

function chatFrames({ reasoning, text, calls, input, output, isCut, habit }: Script): readonly Buffer[] {
  const chunk = (delta: object, finish: string | null = null, more: object = {}): Buffer => data({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more });
  const said = calls.map(({ name, pieces }, index): readonly object[] => {
    const id = `call_${String(index)}`;
    const first = { index, id, type: 'function', function: { name, arguments: '' } };
    switch (habit % 6) {
      // Sparse numbers.
      case 0:
        return [{ ...first, index: index * 3 + 2 }, ...pieces.map((piece) => ({ index: index * 3 + 2, function: { arguments: piece } }))];
      // Every call whole, and numbered 0.
      case 1:
        return [{ ...first, index: 0, function: { name, arguments: joined(pieces) } }];
      // No number, whole.
      case 2:
        return [{ id, type: 'function', function: { name, arguments: joined(pieces) } }];
      // Id and name again with each piece.
      case 3:
        return pieces.length === 0 ? [first] : pieces.map((piece) => ({ ...first, function: { name, arguments: piece } }));
      // An id of its own with each piece, the name with the first.
      case 4:
        return [first, ...pieces.map((piece, at) => ({ index, id: `${id}_${String(at)}`, function: { arguments: piece } }))];
      // No ids at all.
      default:
        return [{ index, function: { name, arguments: '' } }, ...pieces.map((piece) => ({ index, function: { arguments: piece } }))];
    }
  });
  const ordered = [0, 4, 5].includes(habit % 6) && habit % 2 === 0 ? interleaved(said) : said.flat();
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const reason = isCut ? 'length' : calls.length > 0 && habit % 3 !== 0 ? 'tool_calls' : 'stop';
  return [
    chunk({ role: 'assistant', content: '' }),
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...text.map((piece) => chunk({ content: piece })),
    ...ordered.map((call) => chunk({ tool_calls: [call] })),
    chunk({}, reason),
    ...(habit % 2 === 0 ? [data({ id: 'x', choices: [], usage })] : [data({ id: 'x', choices: [], usage: { ...usage, completion_tokens: 0 } }), data({ id: 'x', choices: [], usage })]),
    Buffer.from('data: [DONE]\n\n'),
  ];
}

function chatBody({ reasoning, text, calls, input, output, isCut }: Script): Buffer {
  const message = {
    role: 'assistant',
    content: joined(text),
    reasoning_content: joined(reasoning),
    tool_calls: calls.map((call, index) => ({ id: `call_${String(index)}`, type: 'function', function: { name: call.name, arguments: joined(call.pieces) } })),
  };
  return json({ id: 'x', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: isCut ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop' }], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } });
}

const stopReason = ({ isCut, calls }: Script): string => (isCut ? 'max_tokens' : calls.length > 0 ? 'tool_use' : 'end_turn');

function messagesFrames(script: Script): readonly Buffer[] {
  const { reasoning, text, calls, input, output, habit } = script;
  const blocks: { readonly start: object; readonly deltas: readonly object[] }[] = [
    ...(reasoning.length === 0 ? [] : [{ start: { type: 'thinking', thinking: '', signature: '' }, deltas: [...reasoning.map((thinking) => ({ type: 'thinking_delta', thinking })), { type: 'signature_delta', signature: 'c2ln' }] }]),
    ...(text.length === 0 ? [] : [{ start: { type: 'text', text: '' }, deltas: text.map((piece) => ({ type: 'text_delta', text: piece })) }]),
    ...calls.map(({ name, pieces }, at) => ({ start: { type: 'tool_use', id: `toolu_${String(at)}`, name, input: {} }, deltas: pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece })) })),
  ];
  return [
    event({ type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: input, output_tokens: 1 } } }),
    ...blocks.flatMap(({ start, deltas }, index) => [
      event({ type: 'content_block_start', index, content_block: start }),
      event({ type: 'ping' }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
      // Some hosts leave the ends of blocks out.
      ...(habit % 2 === 0 ? [event({ type: 'content_block_stop', index })] : []),
    ]),
    event({ type: 'message_delta', delta: { stop_reason: stopReason(script) }, usage: { output_tokens: output } }),
    event({ type: 'message_stop' }),
  ];
}

function messagesBody(script: Script): Buffer {
  const { reasoning, text, calls, input, output } = script;
  const content = [
    ...(reasoning.length === 0 ? [] : [{ type: 'thinking', thinking: joined(reasoning), signature: 'c2ln' }]),
    { type: 'text', text: joined(text) },
    ...calls.map((call, at) => ({ type: 'tool_use', id: `toolu_${String(at)}`, name: call.name, input: objectOf(call) })),
  ];
  return json({ id: 'm', type: 'message', role: 'assistant', content, stop_reason: stopReason(script), usage: { input_tokens: input, output_tokens: output } });
}

function converseFrames(script: Script): readonly Buffer[] {
  const { reasoning, text, calls, input, output, habit } = script;
  const blocks: { readonly start: object | undefined; readonly deltas: readonly object[] }[] = [
    ...(reasoning.length === 0 ? [] : [{ start: undefined, deltas: reasoning.map((piece) => ({ reasoningContent: { text: piece } })) }]),
    ...(text.length === 0 ? [] : [{ start: undefined, deltas: text.map((piece) => ({ text: piece })) }]),
    ...calls.map(({ name, pieces }, at) => ({ start: { toolUse: { toolUseId: `tooluse_${String(at)}`, name } }, deltas: pieces.map((piece) => ({ toolUse: { input: piece } })) })),
  ];
  return [
    jsonEvent('messageStart', { role: 'assistant' }),
    ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
      ...(start === undefined ? [] : [jsonEvent('contentBlockStart', { contentBlockIndex, start })]),
      ...deltas.map((delta) => jsonEvent('contentBlockDelta', { contentBlockIndex, delta })),
      ...(habit % 2 === 0 ? [jsonEvent('contentBlockStop', { contentBlockIndex })] : []),
    ]),
    jsonEvent('messageStop', { stopReason: stopReason(script) }),
    jsonEvent('metadata', { usage: { inputTokens: input, outputTokens: output, totalTokens: input + output } }),
  ];
}

function converseBody(script: Script): Buffer {
  const { reasoning, text, calls, input, output } = script;
  const content = [
    ...(reasoning.length === 0 ? [] : [{ reasoningContent: { reasoningText: { text: joined(reasoning) } } }]),
    { text: joined(text) },
    ...calls.map((call, at) => ({ toolUse: { toolUseId: `tooluse_${String(at)}`, name: call.name, input: objectOf(call) } })),
  ];
  return json({ output: { message: { role: 'assistant', content } }, stopReason: stopReason(script), usage: { inputTokens: input, outputTokens: output, totalTokens: input + output } });
}

function googleParts({ calls, habit }: Script): readonly object[] {
  // Ids came with the third generation; with parallel calls only the first is signed.
  return calls.map((call, at) => ({ functionCall: { ...(habit % 2 === 0 ? { id: `fc_${String(at)}` } : {}), name: call.name, args: objectOf(call) }, ...(at === 0 ? { thoughtSignature: 'c2ln' } : {}) }));
}

const googleReason = ({ isCut }: Script): string => (isCut ? 'MAX_TOKENS' : 'STOP');
const googleUsage = ({ input, output }: Script): object => ({ promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output });

function googleFrames(script: Script): readonly Buffer[] {
  const { reasoning, text, habit } = script;
  const parts = [...reasoning.map((piece) => ({ text: piece, thought: true })), ...text.map((piece) => ({ text: piece })), ...googleParts(script)];
  const events = parts.map((part) => ({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }], usageMetadata: { ...googleUsage(script), candidatesTokenCount: 0 } }));
  // The reason comes with the last part, or behind it without any.
  const end = { candidates: [{ content: { role: 'model', parts: [] }, finishReason: googleReason(script), index: 0 }], usageMetadata: googleUsage(script) };
  const last = events.at(-1);
  if (habit % 2 === 0 || last === undefined) return [...events, end].map(data);
  return [...events.slice(0, -1), { candidates: [{ ...last.candidates[0], finishReason: googleReason(script) }], usageMetadata: googleUsage(script) }].map(data);
}

function googleBody(script: Script): Buffer {
  const parts = [{ text: joined(script.reasoning), thought: true }, { text: joined(script.text) }, ...googleParts(script)];
  return json({ candidates: [{ content: { role: 'model', parts }, finishReason: googleReason(script), index: 0 }], usageMetadata: googleUsage(script) });
}

const cohereReason = ({ isCut, calls }: Script): string => (isCut ? 'MAX_TOKENS' : calls.length > 0 ? 'TOOL_CALL' : 'COMPLETE');
const cohereUsage = ({ input, output }: Script): object => ({ billed_units: { input_tokens: input, output_tokens: output }, tokens: { input_tokens: input + 60, output_tokens: output } });
const cohereCall = ({ name }: ScriptedCall, at: number, args: string): object => ({ id: `tc_${String(at)}`, type: 'function', function: { name, arguments: args } });

function cohereFrames(script: Script): readonly Buffer[] {
  const { reasoning, text, calls, habit } = script;
  const said = calls.map((call, index) => [
    event({ type: 'tool-call-start', index, delta: { message: { tool_calls: cohereCall(call, index, '') } } }),
    ...call.pieces.map((piece) => event({ type: 'tool-call-delta', index, delta: { message: { tool_calls: { function: { arguments: piece } } } } })),
    ...(habit % 2 === 0 ? [event({ type: 'tool-call-end', index })] : []),
  ]);
  return [
    event({ type: 'message-start', id: 'm', delta: { message: { role: 'assistant', content: [] } } }),
    ...reasoning.map((piece) => event({ type: 'content-delta', index: 0, delta: { message: { content: { thinking: piece } } } })),
    ...text.map((piece) => event({ type: 'content-delta', index: 1, delta: { message: { content: { text: piece } } } })),
    ...(habit % 3 === 0 ? interleaved(said) : said.flat()),
    event({ type: 'message-end', delta: { finish_reason: cohereReason(script), usage: cohereUsage(script) } }),
  ];
}

function cohereBody(script: Script): Buffer {
  const content = [{ type: 'thinking', thinking: joined(script.reasoning) }, { type: 'text', text: joined(script.text) }];
  return json({ id: 'm', finish_reason: cohereReason(script), message: { role: 'assistant', content, tool_calls: script.calls.map((call, at) => cohereCall(call, at, joined(call.pieces))) }, usage: cohereUsage(script) });
}

const ollamaCall = (call: ScriptedCall): object => ({ function: { name: call.name, arguments: objectOf(call) } });
const ollamaEnd = ({ isCut, input, output }: Script): object => ({ done: true, done_reason: isCut ? 'length' : 'stop', prompt_eval_count: input, eval_count: output });

function ollamaFrames(script: Script): readonly Buffer[] {
  const { reasoning, text, calls, habit } = script;
  const line = (message: object, more: object = { done: false }): Buffer => Buffer.from(`${JSON.stringify({ model: 'm', message: { role: 'assistant', content: '', ...message }, ...more })}\n`);
  const lists = habit % 2 === 0 ? calls.map((call) => [call]) : calls.length === 0 ? [] : [calls];
  return [...reasoning.map((thinking) => line({ thinking })), ...text.map((content) => line({ content })), ...lists.map((list) => line({ tool_calls: list.map(ollamaCall) })), line({}, ollamaEnd(script))];
}

function ollamaBody(script: Script): Buffer {
  return json({ model: 'm', message: { role: 'assistant', content: joined(script.text), thinking: joined(script.reasoning), tool_calls: script.calls.map(ollamaCall) }, ...ollamaEnd(script) });
}

const POLICIES = {
  chat: data({ error: { message: 'The response was filtered due to the content management policy.', type: null, param: null, code: 'content_filter' } }),
  messages: event({ type: 'error', error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' } }),
  converse: exceptionEvent('validationException', 'The output was blocked by our content filters.'),
  google: data({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }),
  cohere: event({ type: 'message-end', delta: { finish_reason: 'ERROR_TOXIC' } }),
  ollama: Buffer.from(`${JSON.stringify({ error: 'stopped by a content filter' })}\n`),
};

/** Every wire there is. */
export const SCRIPTED_WIRES: readonly ScriptedWire[] = [
  { name: 'openai-chat', isSse: true, create: () => createChatTransducer(SEED), read: (body) => readChatAnswer(body, SEED), frames: chatFrames, policy: POLICIES.chat, body: chatBody },
  { name: 'anthropic-messages', isSse: true, create: () => createMessagesTransducer(SEED, false), read: (body) => readMessagesAnswer(body, SEED, false), frames: messagesFrames, policy: POLICIES.messages, body: messagesBody },
  { name: 'bedrock-converse', isSse: false, create: () => createConverseTransducer({ seed: SEED, isUnwrapped: false, isClaude: true, isOpenAi: false, names: new Map() }), read: (body) => readConverseAnswer(body, { seed: SEED, isUnwrapped: false, isClaude: true, isOpenAi: false, names: new Map() }), frames: converseFrames, policy: POLICIES.converse, body: converseBody },
  { name: 'google-generate-content', isSse: true, create: () => createGenerateContentTransducer(SEED), read: (body) => readGenerateContentAnswer(body, SEED), frames: googleFrames, policy: POLICIES.google, body: googleBody },
  { name: 'cohere-v2', isSse: true, create: () => createCohereTransducer(SEED), read: (body) => readCohereAnswer(body, SEED), frames: cohereFrames, policy: POLICIES.cohere, body: cohereBody },
  { name: 'ollama', isSse: false, create: () => createOllamaTransducer(SEED, false), read: (body) => readOllamaAnswer(body, SEED, false), frames: ollamaFrames, policy: POLICIES.ollama, body: ollamaBody },
];

const words = fc.array(fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }), fc.constantFrom('東京', '😀', '"}', '\\', '\n', 'data: ', ' ')), { maxLength: 4 });
const values = fc.dictionary(fc.string({ maxLength: 4 }), fc.oneof(fc.integer(), fc.string({ unit: 'grapheme', maxLength: 6 }), fc.constant(null), fc.array(fc.boolean(), { maxLength: 2 })), { maxKeys: 3 });

const scriptedCall: fc.Arbitrary<ScriptedCall> = fc.record({ name: fc.constantFrom('get_weather', 'get_time', 'note'), value: fc.option(values, { nil: undefined }), cuts: fc.array(fc.nat(), { maxLength: 3 }) }).map(({ name, value, cuts }) => {
  if (value === undefined) return { name, pieces: [] };
  const text = JSON.stringify(value);
  const at = [0, ...cuts.map((cut) => cut % text.length), text.length].sort((left, right) => left - right);
  return { name, pieces: at.slice(1).map((to, piece) => text.slice(at[piece], to)).filter((piece) => piece !== '') };
});

export const scripts: fc.Arbitrary<Script> = fc.record({ reasoning: words, text: words, calls: fc.array(scriptedCall, { maxLength: 3 }), input: fc.nat(100_000), output: fc.nat(100_000), isCut: fc.boolean(), habit: fc.nat(11) });
