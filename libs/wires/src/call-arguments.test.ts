/** Arguments of a call are JSON of an object, whatever a provider makes of them. */
import { describe, expect, test } from '@jest/globals';
import type { StreamEvent } from './canonical.js';
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
  test.each(VALUES.filter(([value]) => !value.includes('1234')))('whole, %s is told as %s', (value, told) => expect(whole(wire, value)).toEqual(expectedOf(told)));

  test.each([['{"a":1}', ['{"a":1}']], ['[1]', 'GARBAGE'], ['7', 'GARBAGE'], ['null', ['{}']]])('streamed, a piece that is no text but %s is told as %j', (value, told) => {
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

  test.each([['{"a":1}', ['{"a":1}']], ['"{\\"a\\":1}"', ['{"a":1}']], ['null', ['{}']], ['""', ['{}']], ['[]', ['{}']], ['[1]', 'GARBAGE'], ['7', 'GARBAGE'], ['"Oslo"', 'GARBAGE']])('%s is told as %j', (input, told) => {
    expect(streamed(wire, frames(input))).toEqual(told);
    // Pieces put it aside.
    expect(streamed(wire, frames(input, '{"b":', '2}'))).toEqual(['{"b":2}']);
  });

  test.each([['{"a":1}', ['{"a":1}']], ['[1]', 'GARBAGE'], ['null', ['{}']]])('a piece that is no text but %s is told as %j', (value, told) => {
    expect(streamed(wire, frames('{}', 'PIECE').map((frame) => Buffer.from(frame.toString().replace('"PIECE"', value))))).toEqual(told);
  });
});
