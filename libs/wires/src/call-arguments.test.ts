/** Arguments of a call are JSON of an object, whatever a provider makes of them. */
import { describe, expect, test } from '@jest/globals';
import { readMessagesAnswer } from './anthropic-messages/response.js';
import { createMessagesTransducer } from './anthropic-messages/stream.js';
import { readConverseAnswer } from './bedrock-converse/response.js';
import { createConverseTransducer } from './bedrock-converse/stream.js';
import type { StreamEvent } from './canonical.js';
import { JSON_TOOL } from './json-tool.js';
import { gather, replay } from './testing/replay.js';
import { SCRIPTED_WIRES, type Script, type ScriptedWire } from './testing/scripts.js';

const scriptOf = (...pieces: readonly string[]): Script => ({ reasoning: [], text: [], calls: [{ name: 'note', pieces }], input: 5, output: 7, isCut: false, habit: 0 });
const named = (...names: readonly string[]): readonly ScriptedWire[] => SCRIPTED_WIRES.filter(({ name }) => names.includes(name));
const VALUE = /("(?:input|args|arguments)":)(?:\{"a":1\}|"\{\\"a\\":1\}")/;
/** The same with `value` in the place of the arguments. */
const withValue = (bytes: Buffer, value: string): Buffer => Buffer.from(bytes.toString().replace(VALUE, (_all, field: string) => field + value));

function whole(wire: ScriptedWire, value: string): unknown {
  const body = withValue(wire.body(scriptOf('{"a":1}')), value);
  expect(body.includes(value)).toBe(true);
  const result = wire.read(body);
  if (!result.ok) return result.failure.class;
  return (JSON.parse(String(result.answer.choices)) as { message: { tool_calls?: { function: { arguments: string } }[] } }[])[0]?.message.tool_calls?.map((call) => call.function.arguments);
}

function streamed(wire: ScriptedWire, frames: readonly Buffer[]): unknown {
  const { events } = replay(wire.create, frames);
  const last = events.at(-1) as StreamEvent;
  return last.type === 'failed' ? last.failure.class : gather(events).get(0)?.calls.map((call) => call.arguments);
}

const VALUES: readonly (readonly [string, string])[] = [
  ['{"a":12345678901234567890}', '{"a":12345678901234567890}'],
  ['"{\\"a\\":1}"', '{"a":1}'],
  ['" {\\"a\\":[]} "', ' {"a":[]} '],
  ['null', '{}'],
  ['"null"', '{}'],
  ['""', '{}'],
  ['[1]', 'GARBAGE'],
  ['["{}"]', 'GARBAGE'],
  ['7', 'GARBAGE'],
  ['true', 'GARBAGE'],
  ['"[1]"', 'GARBAGE'],
  ['"7"', 'GARBAGE'],
  ['"\\"{}\\""', 'GARBAGE'],
];
/** Where arguments are a value by rights, what is no JSON is no slip of a model's. */
const OF_VALUES: readonly (readonly [string, string])[] = [...VALUES, ['"Oslo"', 'GARBAGE'], ['"{\\"a\\":"', 'GARBAGE'], ['[]', '{}']];

const expectedOf = (told: string): unknown => (told === 'GARBAGE' ? told : [told]);

describe.each(named('anthropic-messages', 'bedrock-converse', 'google-generate-content', 'ollama'))('$name', (wire) => {
  test.each(OF_VALUES)('whole, %s is told as %s', (value, told) => expect(whole(wire, value)).toEqual(expectedOf(told)));
});

describe.each(named('google-generate-content', 'ollama'))('$name', (wire) => {
  test.each(OF_VALUES)('streamed, %s is told as %s, and refused before anything is', (value, told) => {
    const frames = wire.frames(scriptOf('{"a":1}')).map((frame) => withValue(frame, value));
    expect(streamed(wire, frames)).toEqual(expectedOf(told));
    if (told === 'GARBAGE') expect(replay(wire.create, frames).summary.contentSeen).toBe(false);
  });
});

describe.each(named('cohere-v2'))('$name', (wire) => {
  test.each(VALUES)('whole, %s is told as %s', (value, told) => expect(whole(wire, value)).toEqual(expectedOf(told)));

  test.each([['{"a":1}', ['{"a":1}']], ['{"a":9007199254740993}', ['{"a":9007199254740993}']], ['[1]', 'GARBAGE'], ['7', 'GARBAGE'], ['null', ['{}']]])('streamed, a piece that is no text but %s is told as %j', (value, told) => {
    expect(streamed(wire, wire.frames(scriptOf('{"a":1}')).map((frame) => withValue(frame, value)))).toEqual(told);
  });

  test.each(['Oslo', '{"a":1,}', '{"a":'])('what its model wrote amiss is told as it came: %s', (text) => {
    expect(whole(wire, JSON.stringify(text))).toEqual([text]);
  });
});

describe.each(named('anthropic-messages', 'bedrock-converse', 'cohere-v2'))('$name in pieces', (wire) => {
  test.each<[readonly string[], string]>([
    [['{"a"', ':1}'], '{"a":1}'],
    [[' ', '{}'], ' {}'],
    [['{"a":1,}'], '{"a":1,}'],
    [['{"a":'], '{"a":'],
    [['Oslo'], 'Oslo'],
    [['[1]'], 'GARBAGE'],
    [['[', '1]'], 'GARBAGE'],
    [['nu', 'll'], 'GARBAGE'],
    [['"{\\"a\\"', ':1}"'], 'GARBAGE'],
    [[' ', '7'], 'GARBAGE'],
  ])('%j is told as %s', (pieces, told) => expect(streamed(wire, wire.frames(scriptOf(...pieces)))).toEqual(expectedOf(told)));
});

describe.each(named('anthropic-messages'))('$name with the start of the call', (wire) => {
  const frames = (input: string, ...pieces: readonly string[]): readonly Buffer[] => wire.frames(scriptOf(...pieces)).map((frame) => Buffer.from(frame.toString().replace('"input":{}', `"input":${input}`)));

  test.each([['{"a":1}', ['{"a":1}']], ['{"a":9007199254740993}', ['{"a":9007199254740993}']], ['{ }', ['{}']], ['"{\\"a\\":1}"', ['{"a":1}']], ['null', ['{}']], ['""', ['{}']], ['[]', ['{}']], ['[1]', 'GARBAGE'], ['7', 'GARBAGE'], ['"Oslo"', 'GARBAGE']])('%s is told as %j', (input, told) => {
    expect(streamed(wire, frames(input))).toEqual(told);
    // Pieces put it aside.
    expect(streamed(wire, frames(input, '{"b":', '2}'))).toEqual(['{"b":2}']);
  });

  test.each([['{"a":1}', ['{"a":1}']], ['{"a":9007199254740993}', ['{"a":9007199254740993}']], ['[1]', 'GARBAGE'], ['null', ['{}']]])('a piece that is no text but %s is told as %j', (value, told) => {
    expect(streamed(wire, frames('{}', 'PIECE').map((frame) => Buffer.from(frame.toString().replace('"PIECE"', value))))).toEqual(told);
  });
});

describe('an answer that the limit ends within a call', () => {
  const call = (name: string, ...pieces: readonly string[]) => ({ name, pieces });
  const cut = (habit: number, ...calls: Script['calls']): Script => ({ reasoning: [], text: [], calls, input: 5, output: 7, isCut: true, habit });
  const HABITS = [0, 1, 2, 3, 4, 5];
  const told = (wire: ScriptedWire, frames: readonly Buffer[]): unknown => {
    const { events, summary } = replay(wire.create, frames);
    const choice = gather(events).get(0);
    expect([events.at(-1), choice?.reasons, summary.usage?.tokens.outputText]).toEqual([{ type: 'done' }, ['length'], 7]);
    return choice?.calls.map((each) => [each.name, each.arguments]);
  };

  describe.each(named('anthropic-messages', 'bedrock-converse', 'cohere-v2', 'openai-chat'))('$name', (wire) => {
    test.each(HABITS)('tells of its arguments what came, and of those before that there are none (habit %i)', (habit) => {
      expect(told(wire, wire.frames(cut(habit, call('clear_all'))))).toEqual([['clear_all', '']]);
      expect(told(wire, wire.frames(cut(habit, call('list'), call('clear_all'))))).toEqual([['list', '{}'], ['clear_all', '']]);
      expect(told(wire, wire.frames(cut(habit, call('list', '{"a":1}'), call('clear_all', '{"b":'))))).toEqual([['list', '{"a":1}'], ['clear_all', '{"b":']]);
      // One that came whole before more was said is whole.
      expect(told(wire, wire.frames(cut(habit, call('list', '{"a":1}'), call('clear_all', '{"b":2}'))))).toEqual([['list', '{"a":1}'], ['clear_all', '{"b":2}']]);
    });

    test('tells it so in one piece', () => {
      const args = (...calls: Script['calls']): unknown => {
        const result = wire.read(wire.body(cut(0, ...calls)));
        if (!result.ok) throw new Error(result.failure.class);
        const [choice] = JSON.parse(String(result.answer.choices)) as { finish_reason: string; message: { tool_calls: { function: { arguments: string } }[] } }[];
        expect(choice?.finish_reason).toBe('length');
        return choice?.message.tool_calls.map((each) => each.function.arguments);
      };
      expect(args(call('clear_all'))).toEqual(['']);
      expect(args(call('list'), call('clear_all'))).toEqual(['{}', '']);
    });
  });

  test.each([['anthropic-messages', '"max_tokens"', '"refusal"'], ['cohere-v2', '"MAX_TOKENS"', '"ERROR_TOXIC"'], ['openai-chat', '"length"', '"content_filter"']])('%s: a policy that ends it cuts it off as well', (name, limit, policy) => {
    const [wire] = named(name);
    if (wire === undefined) throw new Error(name);
    const script = cut(0, call('list'), call('clear_all'));
    const stopped = (bytes: Buffer): Buffer => Buffer.from(bytes.toString().replace(limit, policy));
    const choice = gather(replay(wire.create, wire.frames(script).map(stopped)).events).get(0);
    expect([choice?.calls.map((each) => each.arguments), choice?.reasons]).toEqual([['{}', ''], ['content_filter']]);
    const result = wire.read(stopped(wire.body(script)));
    expect(result.ok && (JSON.parse(String(result.answer.choices)) as object[])[0]).toMatchObject({ finish_reason: 'content_filter', message: { tool_calls: [{ function: { arguments: '{}' } }, { function: { arguments: '' } }] } });
  });

  test.each(named('anthropic-messages', 'bedrock-converse'))('$name: an object that it makes of what came in one piece is not taken for whole', (wire) => {
    const script = cut(0, call('list', '{"a":1}'), call('write', '{"path":"a.txt", "mode":12345678901234567890}'));
    const body = Buffer.from(wire.body(script).toString().replace('12345678901234567000', '12345678901234567890'));
    const result = wire.read(body);
    expect(result.ok && (JSON.parse(String(result.answer.choices)) as { message: object }[])[0]?.message).toMatchObject({ tool_calls: [{ function: { arguments: '{"a":1}' } }, { function: { arguments: '{"path":"a.txt","mode":12345678901234567890' } }] });
    // Words behind it say that it was.
    const words = wire.name === 'anthropic-messages' ? '{"type":"text","text":"So"}]' : '{"text":"So"}]';
    const spoken = wire.read(Buffer.from(body.toString().replace(/\}\](?=,"stop_reason"|\}\},"stopReason")/, `},${words}`)));
    expect(spoken.ok && (JSON.parse(String(spoken.answer.choices)) as { message: object }[])[0]?.message).toMatchObject({ content: 'So', tool_calls: [{}, { function: { arguments: '{"path":"a.txt","mode":12345678901234567890}' } }] });
  });

  test.each(named('anthropic-messages'))('$name: words behind a call without arguments say that it was whole', (wire) => {
    const [start, ...rest] = wire.frames(cut(0, call('clear_all')));
    const end = rest.splice(-2);
    const said = [{ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }, { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'So' } }].map((frame) => Buffer.from(`data: ${JSON.stringify(frame)}\n\n`));
    expect(told(wire, [start ?? Buffer.alloc(0), ...rest, ...said, ...end])).toEqual([['clear_all', '{}']]);
  });
});

describe.each(named('openai-chat'))('$name of a host that calls each stream with calls finished', (wire) => {
  test.each([
    [['{"a":'], '{"a":', 'length'],
    [['{"a"', ':"x} y'], '{"a":"x} y', 'length'],
    [['{"a":1}'], '{"a":1}', 'tool_calls'],
    [['{"a":1,}'], '{"a":1,}', 'tool_calls'],
    [['{"a":"}"'], '{"a":"}"', 'length'],
    [['{"a":"5" tall"}'], '{"a":"5" tall"}', 'tool_calls'],
    [['Oslo'], 'Oslo', 'tool_calls'],
    [[], '{}', 'tool_calls'],
  ])('%j is told as %s, finished by %s', (pieces, text, reason) => {
    // One that says `stop`, and one that says `tool_calls`.
    for (const habit of [0, 5]) {
      const script = { ...scriptOf(...pieces), habit };
      const { events, summary } = replay(wire.create, wire.frames({ ...script, calls: [{ name: 'other', pieces: ['{}'] }, ...script.calls] }));
      expect([gather(events).get(0)?.calls.map((call) => call.arguments), gather(events).get(0)?.reasons, summary.finishReason]).toEqual([['{}', text], [reason], reason]);
    }
  });
});

describe.each(named('anthropic-messages', 'bedrock-converse', 'cohere-v2', 'openai-chat'))('$name by its end', (wire) => {
  test('a call without arguments is called with none', () => {
    for (const habit of [0, 1, 2, 3, 4, 5]) {
      const { events, summary } = replay(wire.create, wire.frames({ ...scriptOf(), calls: [{ name: 'list', pieces: [] }], habit }));
      expect([gather(events).get(0)?.calls.map((each) => each.arguments), gather(events).get(0)?.reasons, summary.usage?.tokens.outputText]).toEqual([['{}'], ['tool_calls'], 7]);
    }
  });
});

describe('a JSON answer that comes as a call', () => {
  const reading = { seed: 's', isUnwrapped: true, isClaude: true, isOpenAi: false, names: new Map() };
  const unwrapped = {
    'anthropic-messages': { create: () => createMessagesTransducer('s', true), read: (body: Buffer) => readMessagesAnswer(body, 's', true) },
    'bedrock-converse': { create: () => createConverseTransducer(reading), read: (body: Buffer) => readConverseAnswer(body, reading) },
  };

  test.each(['anthropic-messages', 'bedrock-converse'] as const)('%s: is empty where the limit ended it before it began, and an empty object where the model did', (name) => {
    const [wire] = named(name);
    if (wire === undefined) throw new Error(name);
    const { create, read } = unwrapped[name];
    for (const habit of [0, 1]) {
      for (const [isCut, pieces, content] of [[true, [], ''], [false, [], '{}'], [true, ['{"a":1'], '{"a":1']] as const) {
        const script: Script = { reasoning: [], text: [], calls: [{ name: JSON_TOOL, pieces }], input: 5, output: 7, isCut, habit };
        expect(gather(replay(create, wire.frames(script)).events).get(0)).toMatchObject({ content, calls: [], reasons: [isCut ? 'length' : 'stop'] });
      }
      for (const [isCut, pieces, content] of [[true, [], ''], [false, [], '{}'], [true, ['{"a":1}'], '{"a":1'], [false, ['{"a":1}'], '{"a":1}']] as const) {
        const result = read(wire.body({ reasoning: [], text: [], calls: [{ name: JSON_TOOL, pieces }], input: 5, output: 7, isCut, habit }));
        expect(result.ok && (JSON.parse(String(result.answer.choices)) as { message: object }[])[0]).toMatchObject({ message: { content }, finish_reason: isCut ? 'length' : 'stop' });
      }
    }
  });
});

describe.each(named('openai-chat'))('$name of a host that tells arguments as objects', (wire) => {
  const OBJECT = '{"id":9007199254740993,"of":[0.1000]}';
  const script: Script = { reasoning: [], text: [], calls: [{ name: 'a', pieces: ['{"a":1}'] }, { name: 'b', pieces: ['{"a":1}'] }], input: 5, output: 7, isCut: false, habit: 2 };

  test('keeps every digit of them, streamed as in one piece', () => {
    const frames = wire.frames(script).map((frame) => withValue(frame, OBJECT));
    expect(streamed(wire, frames)).toEqual([OBJECT, OBJECT]);
    expect(streamed(wire, frames.map((frame) => Buffer.from(frame.toString().replace('"choices":[{', '"choices":[7,{'))))).toEqual([OBJECT, OBJECT]);
    expect(whole(wire, OBJECT)).toEqual([OBJECT]);
    const result = wire.read(Buffer.from(wire.body(script).toString().replaceAll(new RegExp(VALUE, 'g'), (_all, field: string) => field + OBJECT).replace('"choices":[', '"choices":[null,')));
    expect(result.ok && (JSON.parse(String(result.answer.choices)) as { message: object }[])[0]?.message).toMatchObject({ tool_calls: [{ function: { arguments: OBJECT } }, { function: { arguments: OBJECT } }] });
  });
});

describe.each(named('google-generate-content'))('$name in a list of one', (wire) => {
  test('keeps every digit of arguments', () => {
    const frames = wire.frames(scriptOf('{"a":1}')).map((frame) => Buffer.from(withValue(frame, '{"a":9007199254740993}').toString().replace(/data: (.*)\n\n/, 'data: [$1]\n\n')));
    expect(streamed(wire, frames)).toEqual(['{"a":9007199254740993}']);
  });
});
