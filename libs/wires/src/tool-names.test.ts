import { describe, expect, test } from '@jest/globals';
import { TOOL_NAMES as CLAUDE } from './anthropic-messages/names.js';
import { ANTHROPIC, draftMessages } from './anthropic-messages/request.js';
import { readMessagesAnswer } from './anthropic-messages/response.js';
import { createMessagesTransducer } from './anthropic-messages/stream.js';
import { TOOL_NAMES as BEDROCK } from './bedrock-converse/names.js';
import { draftConverse } from './bedrock-converse/request.js';
import { readConverseAnswer } from './bedrock-converse/response.js';
import { createConverseTransducer } from './bedrock-converse/stream.js';
import type { AnswerResult, StreamTransducer } from './canonical.js';
import { TOOL_NAMES as GOOGLE } from './google-generate-content/names.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { readGenerateContentAnswer } from './google-generate-content/response.js';
import { createGenerateContentTransducer } from './google-generate-content/stream.js';
import type { ChatRequestField } from './openai-chat/request.js';
import { jsonEvent } from './testing/event-stream.js';
import type { ToolNames } from './tool-names.js';

/** 67 characters, as clients make of a server's name and its function's. */
const LONG = 'mcp__plugin_atlassian_atlassian__createCompassComponentRelationship';
const LONG_TWIN = `${LONG.slice(0, -1)}q`;
const ODD = ['files.read', 'a b', 'größe', '9lives', LONG, LONG_TWIN, 'x'.repeat(200), '"\\'] as const;

const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { type: 'object', properties: { name: { type: 'string' } } } } });
const fieldsOf = (values: object): readonly ChatRequestField[] => Object.entries(values).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
/** A conversation in which `name` is offered, wanted, was called, and answered. */
const talkOf = (name: string, others: readonly string[] = ['f']): readonly ChatRequestField[] => fieldsOf({
  messages: [{ role: 'user', content: 'hi' }, { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name, arguments: '{}' } }] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }],
  tools: [name, ...others].map(tool),
  tool_choice: { type: 'function', function: { name } },
});

const sse = (frames: readonly object[]): Buffer => Buffer.from(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(''));
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

interface Wire {
  readonly names: ToolNames;
  readonly taken: RegExp;
  compose(fields: readonly ChatRequestField[]): Buffer;
  whole(name: string, names: ReadonlyMap<string, string>): AnswerResult;
  create(names: ReadonlyMap<string, string>): StreamTransducer;
  streamOf(name: string): Buffer;
}

const INPUT = { stream: false, temperatureMax: 0, promptTokens: 10, contextWindow: 200_000, maxOutputTokens: 8_000 };
const reading = (names: ReadonlyMap<string, string>) => ({ seed: 's', isUnwrapped: false, isClaude: true, isOpenAi: false, names });

const WIRES: Readonly<Record<string, Wire>> = {
  'anthropic-messages': {
    names: CLAUDE,
    taken: /^[A-Za-z0-9_-]{1,128}$/,
    compose: (fields) => draftMessages({ ...INPUT, providerModelId: 'claude-opus-4-5', fields }, ANTHROPIC).body(new Map()),
    whole: (name, names) => readMessagesAnswer(json({ type: 'message', content: [{ type: 'tool_use', id: 'c', name, input: {} }], stop_reason: 'tool_use' }), 's', false, undefined, false, names),
    create: (names) => createMessagesTransducer('s', false, undefined, false, names),
    streamOf: (name) => sse([{ type: 'message_start', message: {} }, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c', name, input: {} } }, { type: 'content_block_stop', index: 0 }, { type: 'message_delta', delta: { stop_reason: 'tool_use' } }, { type: 'message_stop' }]),
  },
  'bedrock-converse': {
    names: BEDROCK,
    taken: /^[A-Za-z0-9_-]{1,64}$/,
    compose: (fields) => draftConverse({ ...INPUT, providerModelId: 'anthropic.claude-opus-4-5-20251101-v1:0', fields }).body(new Map()),
    whole: (name, names) => readConverseAnswer(json({ output: { message: { role: 'assistant', content: [{ toolUse: { toolUseId: 'c', name, input: {} } }] } }, stopReason: 'tool_use' }), reading(names)),
    create: (names) => createConverseTransducer(reading(names)),
    streamOf: (name) => Buffer.concat([jsonEvent('messageStart', { role: 'assistant' }), jsonEvent('contentBlockStart', { start: { toolUse: { toolUseId: 'c', name } }, contentBlockIndex: 0 }), jsonEvent('contentBlockStop', { contentBlockIndex: 0 }), jsonEvent('messageStop', { stopReason: 'tool_use' })]),
  },
  'google-generate-content': {
    names: GOOGLE,
    taken: /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/,
    compose: (fields) => draftGenerateContent({ ...INPUT, providerModelId: 'gemini-2.5-pro', fields }, { withCallIds: true }).body(new Map()),
    whole: (name, names) => readGenerateContentAnswer(json({ candidates: [{ content: { parts: [{ functionCall: { name, args: {} } }] }, finishReason: 'STOP' }] }), 's', names),
    create: (names) => createGenerateContentTransducer('s', names),
    streamOf: (name) => sse([{ candidates: [{ content: { parts: [{ functionCall: { name, args: {} } }] }, finishReason: 'STOP' }] }]),
  },
};

/** Names of functions in a body of any of the wires, in the order of the body. */
function namesSent(body: Buffer): readonly string[] {
  const found: string[] = [];
  const visit = (value: unknown, key: string): void => {
    if (Array.isArray(value)) value.forEach((item) => visit(item, key));
    else if (typeof value === 'object' && value !== null) for (const [name, item] of Object.entries(value)) visit(item, name);
    else if ((key === 'name' || key === 'allowedFunctionNames') && typeof value === 'string') found.push(value);
  };
  visit(JSON.parse(body.toString('utf8')), '');
  return found;
}

const toldBy = (choices: Uint8Array): string => Buffer.from(choices).toString('utf8');

describe.each(Object.entries(WIRES))('%s', (_wire, { names, taken, compose, whole, create, streamOf }) => {
  test.each(ODD)('takes %j under a name of its own, the same wherever it stands, and tells it as it was', (name) => {
    const fields = talkOf(name);
    const all = namesSent(compose(fields));
    for (const sent of all) expect(sent).toMatch(taken);
    const [sent, ...more] = [...new Set(all)].filter((each) => each !== 'f');
    expect(more).toEqual([]);
    const answer = whole(sent ?? '', names.clientNames(fields));
    const calls = JSON.parse(answer.ok ? toldBy(answer.answer.choices) : 'null') as unknown;
    expect(calls).toMatchObject([{ message: { tool_calls: [{ function: { name } }] } }]);
    const transducer = create(names.clientNames(fields));
    const events = [...transducer.push(streamOf(sent ?? '')), ...transducer.close()];
    const told = events.map((event) => (event.type === 'chunk' ? toldBy(event.choices) : event.type)).join('');
    expect(told).toContain(`"name":${JSON.stringify(name)}`);
  });

  test('names that it takes are sent and told as they are', () => {
    const fields = talkOf('get_weather-2', ['F']);
    expect([...new Set(namesSent(compose(fields)))].sort()).toEqual(['F', 'get_weather-2']);
    expect(names.clientNames(fields).size).toBe(0);
    expect(names.clientNames([]).size).toBe(0);
  });

  test('no two tools are sent under one name', () => {
    const all = [...ODD, 'get', ...Array.from({ length: 100 }, (_none, at) => `${'x'.repeat(150)}${String(at)}`)];
    const sent = namesSent(compose(fieldsOf({ messages: [{ role: 'user', content: 'hi' }], tools: all.map(tool) })));
    expect([sent.length, new Set(sent).size]).toEqual([all.length, all.length]);
  });
});

test('Bedrock’s bound is half of its maker’s', () => {
  expect(namesSent(WIRES['anthropic-messages']?.compose(talkOf(LONG)) ?? Buffer.from('0'))).toContain(LONG);
  expect(namesSent(WIRES['bedrock-converse']?.compose(talkOf(LONG)) ?? Buffer.from('0'))).not.toContain(LONG);
});
