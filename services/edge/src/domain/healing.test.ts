import { describe, expect, jest, test } from '@jest/globals';
import { requestWith } from '../testing/callers.js';
import { events, type FakeNeighbours, type Script } from '../testing/neighbours.js';
import type { RecordedAnswer } from '../testing/recorded-answer.js';
import { answersWith, fails, streamsWith } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { ChatRequest } from './chat-request.js';
import type { Conducted } from './conduct.js';
import { createFloodGuard, type FloodGuard } from './flood.js';
import { healChoices, healingTermsOf, StreamHealing } from './healing.js';

const JSON_OBJECT: Partial<ChatRequest> = { needs: { responseFormat: 'json_object' }, fields: [{ name: 'response_format', value: Buffer.from('{"type":"json_object"}') }] };
const withSchema = (schema: object): Partial<ChatRequest> => ({
  needs: { responseFormat: 'json_schema' },
  fields: [{ name: 'response_format', value: Buffer.from(JSON.stringify({ type: 'json_schema', json_schema: { name: 'n', schema } })) }],
});
const SCHEMA = withSchema({ type: 'object', required: ['a'] });

interface Told {
  readonly neighbours: FakeNeighbours;
  readonly answer: RecordedAnswer;
  readonly conducted: Conducted;
}

async function told(scripts: Readonly<Record<string, Script | undefined>>, request: Partial<ChatRequest>, fits: (text: string) => boolean | undefined = () => true, unhealedAnswers?: FloodGuard): Promise<Told> {
  const { neighbours, answer, run } = story(scripts, { request });
  neighbours.checkSchema = (_accountId, _schema, text) => Promise.resolve(fits(text));
  Object.assign(neighbours, { unhealedAnswers });
  return { neighbours, answer, conducted: await run() };
}

describe('what the client asked for', () => {
  test('is no JSON without a format, or if the client switched healing off', () => {
    expect(healingTermsOf(requestWith())).toBeUndefined();
    expect(healingTermsOf(requestWith({ ...JSON_OBJECT, pluginOptions: { 'json-healing': { enabled: false } } }))).toBeUndefined();
  });

  test('has the root that the schema names', () => {
    expect(healingTermsOf(requestWith(JSON_OBJECT))).toEqual({ kind: 'object', schema: undefined });
    expect(healingTermsOf(requestWith(withSchema({ type: 'array' })))).toEqual({ kind: 'array', schema: '{"type":"array"}' });
    expect(healingTermsOf(requestWith(withSchema({ anyOf: [] })))).toMatchObject({ kind: 'any' });
  });

  test('is read once for a request', () => {
    const request = requestWith(SCHEMA);
    const parse = jest.spyOn(JSON, 'parse');
    const terms = healingTermsOf(request);
    expect(healingTermsOf({ ...request, pluginOptions: {} })).toBe(terms);
    expect(parse).toHaveBeenCalledTimes(1);
    parse.mockRestore();
  });
});

describe('a whole answer', () => {
  test('is not read if no JSON was asked for', async () => {
    const { answer } = await told({ a: answersWith('Sure: {"a":1,}') }, {});
    expect(answer.said).toEqual(['body 0:Sure: {"a":1,}!stop']);
    expect(answer.settlement?.healed).toBeUndefined();
  });

  test('that is valid is passed on byte for byte', async () => {
    const { answer } = await told({ a: answersWith('{"a":1}') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed]).toEqual([['body 0:{"a":1}!stop'], []]);
  });

  test('is healed at the same provider’s price', async () => {
    const { answer, neighbours } = await told({ a: answersWith('Sure:\n```json\n{"a":1,}\n```') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed, answer.settlement?.end.costNanoUsd]).toEqual([['body 0:{"a":1}!stop'], ['fence', 'prose', 'syntax'], '20000']);
    expect(neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('that cannot be healed causes one attempt at another provider, and the client pays for that one only', async () => {
    const { answer, neighbours, conducted } = await told({ a: answersWith('I would rather not.'), b: answersWith('{"a":1}') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed, conducted.result]).toEqual([['body 0:{"a":1}!stop'], [], 'answered']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('causes one further attempt and never two; the second is given as it is', async () => {
    const { answer, neighbours } = await told({ a: answersWith('no'), b: answersWith('no, too'), c: answersWith('{"a":1}') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed]).toEqual([['body 0:no, too!stop'], ['failed']]);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('is given as it is if there is no other provider, and is charged', async () => {
    const { answer, neighbours } = await told({ a: answersWith('no') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed, neighbours.outcomes]).toEqual([['body 0:no!stop'], ['failed'], ['a#1 DELIVERED']]);
  });

  test('is given as it is if the other provider fails, and is charged, since the client asked for it and got it', async () => {
    const { answer, neighbours, conducted } = await told({ a: answersWith('no'), b: fails('PROVIDER_ERROR') }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.healed, answer.settlement?.end.costNanoUsd, conducted.result]).toEqual([['body 0:no!stop'], ['failed'], '20000', 'answered']);
    expect(neighbours.outcomes).toEqual(['a#1 DELIVERED', 'b#2 SUPERSEDED']);
    expect(neighbours.released).toEqual([]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', undefined], ['b', 'PROVIDER_ERROR']]);
  });

  test('is superseded only once a better one was given', async () => {
    const { answer, neighbours } = await told({ a: fails('CONNECT'), b: answersWith('no'), c: answersWith('{"a":1}') }, JSON_OBJECT);
    expect([answer.said, neighbours.outcomes]).toEqual([['body 0:{"a":1}!stop'], ['a#1 SUPERSEDED', 'b#2 SUPERSEDED', 'c#3 DELIVERED']]);
  });

  test('causes a further attempt only within the bound on answers that the operator pays for twice', async () => {
    const unhealedAnswers = createFloodGuard(createFakeClock(), 1, 60_000);
    const asked: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const { neighbours } = await told({ a: answersWith('no'), b: answersWith('{"a":1}') }, JSON_OBJECT, undefined, unhealedAnswers);
      asked.push(neighbours.calls.length);
    }
    expect(asked).toEqual([2, 2, 1]);
  });

  test('is given as it is if no other provider could be asked, and is charged as usual', async () => {
    const { answer, neighbours } = await told({ a: answersWith('no'), b: undefined }, JSON_OBJECT);
    expect([answer.said, answer.settlement?.end.costNanoUsd, neighbours.outcomes]).toEqual([['body 0:no!stop'], '20000', ['a#1 DELIVERED']]);
  });

  test('that does not match its schema causes an attempt at another provider', async () => {
    const fits = (text: string): boolean => text.includes('"a"');
    const { answer } = await told({ a: answersWith('{"b":1}'), b: answersWith('{"a":1,}') }, SCHEMA, fits);
    expect([answer.said, answer.settlement?.healed]).toEqual([['body 0:{"a":1}!stop'], ['syntax']]);
  });

  test('that does not match its schema is given as the provider sent it, without repairs', async () => {
    const { answer } = await told({ a: answersWith('{"b":1,}') }, SCHEMA, () => false);
    expect([answer.said, answer.settlement?.healed]).toEqual([['body 0:{"b":1,}!stop'], ['failed']]);
  });

  test.each([
    ['length', '{"b":1,"c'],
    ['tool_calls', '{"b":1}'],
  ])('that does not match its schema causes no further attempt if the model did not end it: %s', async (reason, text) => {
    const choices = Buffer.from(JSON.stringify([{ index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: reason }]));
    const script: Script = (call) => call.play(events.head(), { event: 'body', body: { choices, systemFingerprint: '', serviceTier: '' } }, events.end({ finishReason: reason }));
    const { answer, neighbours } = await told({ a: script, b: answersWith('{"a":1}') }, SCHEMA, (checked) => checked.includes('"a"'));
    expect([answer.said, answer.settlement?.healed]).toEqual([[`body 0:${text}!${reason}`], ['failed']]);
    expect(neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('whose schema could not be checked in time counts as matching', async () => {
    const { answer } = await told({ a: answersWith('{"b":1}') }, SCHEMA, () => undefined);
    expect(answer.settlement?.healed).toEqual([]);
  });

  test('keeps calls without arguments and refusals, and the arguments of its calls are healed', () => {
    const terms = { kind: 'object', schema: undefined } as const;
    const call = (args: string): object => ({ id: 'c', type: 'function', function: { name: 'f', arguments: args } });
    const choices = (message: object, reason: string): Buffer => Buffer.from(JSON.stringify([{ index: 0, message, logprobs: null, finish_reason: reason }]));
    const calls = healChoices(choices({ content: null, tool_calls: [call(''), call("{'a': 1,}"), call('nonsense')] }, 'tool_calls'), terms);
    expect(calls).toMatchObject({ steps: ['syntax'], isBroken: false });
    expect(JSON.parse(calls.choices.toString())).toMatchObject([{ message: { tool_calls: [call(''), call('{"a": 1}'), call('nonsense')] } }]);
    const refusal = choices({ content: null, refusal: 'No.' }, 'stop');
    expect(healChoices(refusal, terms)).toMatchObject({ isBroken: false, choices: refusal });
    expect(healChoices(choices({ content: 'half a tho', refusal: null }, 'length'), terms)).toMatchObject({ isBroken: true, isWorthAnother: false });
  });
});

describe('text beside a tool call', () => {
  const args = (text: string): object => ({ id: 'c', type: 'function', function: { name: 'f', arguments: text } });
  const bytes = (choice: object): Buffer => Buffer.from(JSON.stringify([{ index: 0, logprobs: null, ...choice }]));
  const schema = '{"type":"object","required":["a"]}';
  // Any value, wherever the answer ends.
  const cases = [['Let me look.', 'tool_calls'], ['Let me look.', 'stop'], ['Let me', 'length'], ['{"b":1}', 'tool_calls']] as const;

  test.each(cases)('is not the answer that was asked for, and the call is healed: %j, %s', (content, reason) => {
    for (const terms of [{ kind: 'object', schema: undefined }, { kind: 'object', schema }] as const) {
      const healed = healChoices(bytes({ message: { content, tool_calls: [args("{'a': 1,}")] }, finish_reason: reason }), terms);
      expect(healed).toMatchObject({ steps: ['syntax'], isBroken: false, texts: [] });
      expect(JSON.parse(healed.choices.toString())).toMatchObject([{ message: { content, tool_calls: [args('{"a": 1}')] } }]);

      const stream = new StreamHealing(terms);
      const said = [{ content }, { tool_calls: [{ index: 0, ...args("{'a': 1,}") }] }].flatMap((delta) => stream.push(bytes({ delta, finish_reason: null })));
      said.push(...stream.push(bytes({ delta: {}, finish_reason: reason })));
      expect(stream.end(reason)).toMatchObject({ steps: ['syntax'], isBroken: false, texts: [] });
      expect(Buffer.concat(said.map(({ choices }) => Buffer.from(choices))).toString()).toContain(JSON.stringify(content));
    }
  });

  test.each([['{"path":"/tm'], ["{'path':'/tm"], ['{"path":"/tmp","mode":1'], ['{']])('does not close the arguments of a call that the limit cut off: %s', (text) => {
    const healed = healChoices(bytes({ message: { content: null, tool_calls: [args("{'a':1}"), args(text)] }, finish_reason: 'length' }), { kind: 'object', schema: undefined });
    expect(JSON.parse(healed.choices.toString())).toMatchObject([{ message: { tool_calls: [args('{"a":1}'), args(text)] } }]);
    expect(healed.steps).toEqual(['syntax']);
    const stream = new StreamHealing({ kind: 'object', schema: undefined });
    const said = [...text].flatMap((piece) => stream.push(bytes({ delta: { tool_calls: [{ index: 0, function: { arguments: piece } }] }, finish_reason: null })));
    said.push(...stream.push(bytes({ delta: {}, finish_reason: 'length' })));
    const told = said.flatMap(({ choices }) => (JSON.parse(Buffer.from(choices).toString()) as { delta: { tool_calls?: { function: { arguments: string } }[] } }[]).flatMap(({ delta }) => delta.tool_calls ?? []));
    expect([told.map((call) => call.function.arguments).join(''), stream.end('length').steps]).toEqual([text, []]);
  });

  test('leaves a call without arguments unchanged', () => {
    const stream = new StreamHealing({ kind: 'object', schema: undefined });
    stream.push(bytes({ delta: { content: 'Let me', tool_calls: [{ index: 0, ...args('') }] }, finish_reason: 'length' }));
    expect(stream.end('length')).toMatchObject({ steps: [], isBroken: false });
  });
});

describe('a streamed answer', () => {
  const STREAM = { ...JSON_OBJECT, stream: true };
  const textOf = (answer: RecordedAnswer): string => answer.said.map((line) => /^(?:chunk|finish) \d:([^!]*)/s.exec(line)?.[1] ?? '').join('');

  test('is healed as it arrives, and ends with one finish chunk', async () => {
    const { answer } = await told({ a: streamsWith('Sure:\n{"a": "x', 'y"', ',}\n', 'Bye') }, STREAM);
    expect(textOf(answer)).toBe('{"a": "xy"}');
    expect(answer.said.at(-1)).toBe('finish 0:!stop');
    expect(answer.settlement?.healed).toEqual(['prose', 'syntax']);
  });

  test('of only prose has sent nothing, and another provider is asked', async () => {
    const { answer, neighbours } = await told({ a: streamsWith('I would ', 'rather not.'), b: streamsWith('{"a":1}') }, STREAM);
    expect([textOf(answer), answer.settlement?.healed]).toEqual(['{"a":1}', []]);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('supersedes the answer in reserve with its first content, and not before, and its worker is told then', async () => {
    const when: string[] = [];
    let neighbours: FakeNeighbours | undefined;
    const note: Script = () => void when.push(neighbours?.outcomes.join() ?? '');
    const slow: Script = (call) => {
      for (const event of [events.head(), events.role()]) call.listener.onEvent(event);
      note(call);
      call.listener.onEvent(events.text('{"a": 12'));
      note(call);
      call.play(events.text('}'), events.finish(), events.end());
    };
    const made = story({ a: streamsWith('I would rather not.'), b: slow }, { request: STREAM });
    neighbours = made.neighbours;
    await made.run();
    expect(when).toEqual(['', 'a#1 SUPERSEDED']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('of only prose is given as it is if there is no other provider', async () => {
    const { answer } = await told({ a: streamsWith('I would ', 'rather not.') }, STREAM);
    expect([textOf(answer), answer.settlement?.healed, answer.said.at(-1)]).toEqual(['I would rather not.', ['failed'], 'finish 0:!stop']);
  });

  test('that does not match its schema causes no further attempt once content was sent', async () => {
    const { answer, neighbours } = await told({ a: streamsWith('{"b":', '1}'), b: streamsWith('{"a":1}') }, { ...SCHEMA, stream: true }, () => false);
    expect([textOf(answer), answer.settlement?.healed, neighbours.calls.length]).toEqual(['{"b":1}', ['failed'], 1]);
  });

  test('that breaks while its prose is held back causes another attempt; after content it is cut, with all that was generated', async () => {
    const early = await told({ a: (call) => call.play(events.text('Sure: '), events.failed('DISCONNECTED')), b: streamsWith('{"a":1}') }, STREAM);
    expect(textOf(early.answer)).toBe('{"a":1}');
    const late = await told({ a: (call) => call.play(events.text('{"a": 12'), events.failed('DISCONNECTED')), b: streamsWith('{"a":1}') }, STREAM);
    expect([textOf(late.answer), late.answer.said.at(-1), late.neighbours.calls.length]).toEqual(['{"a": 12', 'cut DISCONNECTED', 1]);
  });

  test('heals each choice and each call separately, and finishes each once', () => {
    const healing = new StreamHealing({ kind: 'object', schema: undefined });
    const chunk = (index: number, delta: object, reason: string | null = null): Buffer => Buffer.from(JSON.stringify([{ index, delta, logprobs: null, finish_reason: reason }]));
    const call = (index: number, args: string, more: object = {}): object => ({ tool_calls: [{ index, ...more, function: { ...('id' in more ? { name: 'f' } : {}), arguments: args } }] });
    const out = [
      chunk(0, { role: 'assistant', content: null }),
      chunk(0, call(0, '', { id: 'c0' })),
      chunk(0, call(0, "{'a'")),
      chunk(1, { role: 'assistant', content: '{"b"' }),
      chunk(0, call(1, '{"c":[1', { id: 'c1' })),
      chunk(0, call(0, ':1}')),
      chunk(1, { content: ':2,}' }),
      chunk(0, call(1, ',]}')),
      chunk(0, {}, 'tool_calls'),
      chunk(1, {}, 'stop'),
    ].flatMap((each) => healing.push(each));
    const args: Record<number, string> = {};
    let text = '';
    const finishes: string[] = [];
    for (const { choices } of out) {
      const [choice] = JSON.parse(Buffer.from(choices).toString()) as { index: number; delta: { content?: string | null; tool_calls?: { index: number; function: { arguments: string } }[] }; finish_reason: string | null }[];
      if (choice === undefined) continue;
      text += choice.delta.content ?? '';
      for (const each of choice.delta.tool_calls ?? []) args[each.index] = (args[each.index] ?? '') + each.function.arguments;
      if (choice.finish_reason !== null) finishes.push(`${choice.index}:${choice.finish_reason}`);
    }
    expect([args, text, finishes]).toEqual([{ 0: '{"a":1}', 1: '{"c":[1]}' }, '{"b":2}', ['0:tool_calls', '1:stop']]);
    expect(healing.end('stop')).toMatchObject({ steps: ['syntax'], isBroken: false, chunks: [] });
  });
});
