/** Streams that say too early that they are over, or break without a word: nothing of them is lost, and none is taken for whole. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { choicesAsked } from './request.js';
import { NO_QUIRKS } from './quirks.js';
import { createChatTransducer } from './stream.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));
const create = () => createChatTransducer('seed');
const frame = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const chunk = (delta: object, finish: string | null = null, more: object = {}): Buffer => frame({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish, ...more }] });
const DONE = Buffer.from('data: [DONE]\n\n');
const failed = (failureClass: string): object => ({ type: 'failed', failure: { class: failureClass } });
const tokens = (inputUncached: number, outputText: number, cacheRead = 0): object => ({ inputUncached, cacheRead, cacheWrite: 0, outputText, outputReasoning: 0, audio: 0, image: 0 });
const said = ({ events }: Replayed): unknown[] => [...gather(events).values()].map(({ content, reasons }) => [content, reasons]);

/** Of a chunk of finishes. */
const indexesIn = (event: unknown): unknown[] => (event === undefined ? [] : (JSON.parse(Buffer.from((event as { choices: Uint8Array }).choices).toString()) as { index: number; finish_reason: string }[]).filter(({ finish_reason: reason }) => reason === 'stop').map(({ index }) => index));

const OSLO = 'It is 4 °C in Oslo.';
const WHOLE = { type: 'done' };

describe('fixtures', () => {
  const table: readonly (readonly [string, readonly (readonly [string, readonly string[]])[], object])[] = [
    ['usage-first', [[OSLO, ['stop']]], WHOLE],
    ['usage-stale', [[OSLO, ['stop']]], WHOLE],
    ['usage-running', [[OSLO, ['stop']]], WHOLE],
    ['text-after-finish', [[OSLO, ['length']]], WHOLE],
    ['finish-each-chunk', [[OSLO, ['stop']]], WHOLE],
    ['finish-null-text', [[OSLO, ['length']]], WHOLE],
    ['call-after-finish', [['Look: ', ['tool_calls']]], WHOLE],
    ['second-choice-late', [['It is 4 °C', ['stop']], ['Cold', ['length']]], WHOLE],
    ['finish-null-cut', [['It is 4 °C', []]], failed('DISCONNECTED')],
    ['groq-cut', [['Half', []]], failed('PROVIDER_ERROR')],
    ['finish-abort', [['It is 4 °C', []]], failed('PROVIDER_ERROR')],
    ['detail-cut', [['It is 4 °C', []]], failed('DISCONNECTED')],
  ];

  test.each(table)('%s arrives as it was said, and ends as it ended', (name, choices, last) => {
    const whole = replay(create, [fixture(name)]);
    expect(said(whole)).toEqual(choices);
    expect(whole.events.at(-1)).toMatchObject(last);
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test.each(table.map(([name]) => name))('%s is the same however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = replay(create, [bytes]);
    for (const parts of everySplit(bytes)) {
      const { events, summary } = replay(create, parts);
      expect([said({ events, summary }), events.at(-1), summary]).toEqual([said(whole), whole.events.at(-1), whole.summary]);
    }
  });

  test('a call behind the first finish is given, with the arguments that it lacks', () => {
    expect(gather(replay(create, [fixture('call-after-finish')]).events).get(0)?.calls).toEqual([{ id: 'call_a', name: 'get_time', arguments: '{}', extra: undefined }]);
  });
});

describe('usage that is told before the last of the output', () => {
  test.each([
    ['usage-first', undefined, tokens(100, 0, 1_000)],
    ['usage-stale', undefined, tokens(11, 0)],
    ['usage-running', tokens(11, 9), tokens(11, 0)],
    ['text-after-finish', tokens(11, 9), tokens(11, 0)],
  ])('%s: its prompt counts, its output only when nothing follows', (name, usage, prompt) => {
    const { summary } = replay(create, [fixture(name)]);
    expect(summary.usage?.tokens).toEqual(usage);
    expect(summary.promptUsage?.tokens).toEqual(prompt);
  });

  test('ten thousand bytes behind usage of no output are not told as none', () => {
    const { summary } = replay(create, [frame({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 0 } }), ...Array.from({ length: 100 }, () => chunk({ content: 'x'.repeat(100) })), chunk({}, 'stop'), DONE]);
    expect(summary).toMatchObject({ usage: undefined, promptUsage: { tokens: tokens(11, 0), cachedKnown: false, reasoningKnown: false }, outputBytes: 10_000 });
  });

  test('a prompt of 0 tokens is not told, and takes back none that was', () => {
    const usage = (prompt: number): Buffer => frame({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: 0 } });
    expect(replay(create, [usage(0), chunk({ content: 'a' })]).summary.promptUsage).toBeUndefined();
    expect(replay(create, [usage(7), usage(0), chunk({ content: 'a' })]).summary.promptUsage?.tokens).toEqual(tokens(7, 0));
  });

  test('explicit zeros behind the answer are figures', () => {
    expect(replay(create, [chunk({ content: 'a' }), chunk({}, 'stop'), frame({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }), DONE]).summary.usage?.tokens).toEqual(tokens(0, 0));
  });

  test('figures that cannot be read do not make stale ones final', () => {
    const { summary } = replay(create, [Buffer.concat([frame({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 1 } }), chunk({ content: 'abc' }), frame({ choices: [], usage: { prompt_tokens: -1 } })])]);
    expect(summary).toMatchObject({ usage: undefined, usageUnreadable: true, promptUsage: { tokens: tokens(11, 0) } });
  });
});

test('the service tier of a host that tells no fingerprint is that of the chunk that tells it', () => {
  const plain = (delta: string, more = ''): Buffer => Buffer.from(`data: {"id":"x","choices":[{"index":0,"delta":{${delta}},"finish_reason":null}]${more}}\n\n`);
  const { summary } = replay(create, [plain('"role":"assistant","content":"a"', ',"service_tier":"flex"'), plain('"content":"b"'), plain('"content":"c"'), chunk({}, 'stop'), DONE]);
  expect(summary.serviceTier).toBe('flex');
});

describe('a finish', () => {
  test.each(['abort', 'aborted'])('%s is a failure', (reason) => {
    expect(replay(create, [chunk({ content: 'Half' }), chunk({}, reason), DONE]).events.at(-1)).toMatchObject(failed('PROVIDER_ERROR'));
  });

  describe('that never came, where the host says that the stream is over', () => {
    const call = (text: string): Buffer => chunk({ tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: text } }] });
    const usage = frame({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 0 } });

    test.each([['a role', [chunk({ role: 'assistant', content: '' })]], ['a role and usage', [chunk({ role: 'assistant', content: '' }), usage]], ['nothing in a choice', [chunk({})]], ['a role and empty lists', [chunk({ role: 'assistant', content: '', refusal: null, annotations: [], images: [] })]]])('behind nothing said is no answer: %s', (_what, parts) => {
      const whole = replay(create, [...parts, DONE]);
      expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'EMPTY', retryable: true } });
      expect(brokenInvariants(whole)).toEqual([]);
    });

    test('behind a call that is half told is a break, for no limit ended it', () => {
      expect(replay(create, [call('{"city":"Os'), DONE]).events.at(-1)).toMatchObject(failed('DISCONNECTED'));
    });

    test('behind words or a whole call is an end, as some hosts give no other', () => {
      expect(said(replay(create, [chunk({ role: 'assistant', content: 'All' }), chunk({ content: '.' }), DONE]))).toEqual([['All.', ['stop']]]);
      for (const text of ['{"city":"Oslo"}', '{}', '']) expect(said(replay(create, [call(text), DONE]))).toEqual([['', ['tool_calls']]]);
    });

    test('and a finish behind nothing said is an answer of nothing', () => {
      expect(said(replay(create, [chunk({ role: 'assistant', content: '' }), chunk({}, 'stop'), DONE]))).toEqual([['', ['stop']]]);
    });
  });

  test('goes out once, behind all that was said, and is known at once', () => {
    const transducer = create();
    transducer.push(chunk({ role: 'assistant', content: 'a' }));
    expect([transducer.push(chunk({}, 'length')), transducer.summary().isFinished, transducer.summary().finishReason]).toEqual([[], true, 'length']);
    expect(transducer.push(DONE)).toMatchObject([{ type: 'chunk', finish: true }, { type: 'done' }]);
  });

  test('that something followed needs the provider’s own end: what comes late is waited for, and a break is one', () => {
    const transducer = create();
    transducer.push(Buffer.concat([chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' }, 'stop')]));
    expect(transducer.summary().isFinished).toBe(false);
    expect(transducer.close().at(-1)).toEqual({ type: 'done' });
    expect(said(replay(create, [chunk({ content: 'a' }, 'length'), chunk({ content: 'b' }), DONE]))).toEqual([['ab', ['length']]]);
    expect(replay(create, [chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' })]).events.at(-1)).toMatchObject(failed('DISCONNECTED'));
  });

  test('is all that counts where the source ends within usage or the last word', () => {
    const usage = frame({ id: 'x', choices: [], usage: { prompt_tokens: 11, completion_tokens: 1 } });
    const answer = Buffer.concat([chunk({ role: 'assistant', content: 'a' }), chunk({}, 'stop')]);
    const rest = Buffer.concat([usage, DONE]);
    for (let length = 0; length < rest.length; length += 1) {
      const cut = replay(create, [answer, rest.subarray(0, length)]);
      expect([length, said(cut), cut.events.at(-1)]).toEqual([length, [['a', ['stop']]], WHOLE]);
      expect(cut.summary.usage === undefined).toBe(length < usage.length - '\n\n'.length);
    }
  });

  test.each<[string, Buffer, Buffer]>([
    ['more of a choice', chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' }).subarray(0, -20)],
    ['what nobody can read, and goes on', Buffer.concat([chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' }, 'stop')]), Buffer.from('data: {"id"')],
    ['a word before it', chunk({ content: 'a' }), DONE.subarray(0, 9)],
  ])('does not stand where the source ends within %s', (_what, before, torn) => {
    expect(replay(create, [before, torn]).events.at(-1)).toMatchObject({ type: 'failed' });
  });

  test('that a hold forces is the one that is told', () => {
    const transducer = create();
    transducer.push(Buffer.concat([chunk({ content: 'a' }, 'stop'), chunk({ content: 'b' })]));
    expect(JSON.parse(Buffer.from((transducer.finishOpen('length') as { choices: Uint8Array }).choices).toString())).toMatchObject([{ finish_reason: 'length' }]);
    expect(transducer.finishOpen('stop')).toBeUndefined();
  });

  test('is not made up behind a frame of no known shape, where none was told', () => {
    for (const odd of [{ detail: 'Internal Server Error' }, { message: 'upstream reset' }, { id: 'x', usage: null }]) {
      expect(replay(create, [chunk({ content: 'Half' }), frame(odd), DONE]).events.at(-1)).toMatchObject(failed('DISCONNECTED'));
      expect(replay(create, [chunk({ content: 'All' }), chunk({}, 'stop'), frame(odd), DONE]).events.at(-1)).toEqual(WHOLE);
    }
    for (const known of [{ choices: [] }, { choices: [], prompt_filter_results: [] }, { usage: { prompt_tokens: 1, completion_tokens: 1 } }, { x_groq: { usage: { prompt_tokens: 1, completion_tokens: 1 } } }]) {
      expect(replay(create, [frame(known), chunk({ content: 'All' }), frame(known), DONE]).events.at(-1)).toEqual(WHOLE);
    }
  });

  test.each([
    ['an error', [['Half', []]], failed('PROVIDER_ERROR'), { error: 'overloaded' }],
    ['an error of no words', [['Half', []]], failed('PROVIDER_ERROR'), { error: 503 }],
    ['no error', [['Half', ['stop']]], WHOLE, { error: null }],
  ])('is not made up behind %s that stands before the choices of an ordinary chunk', (_name, choices, last, error) => {
    const odd = frame({ id: 'x', ...error, choices: [{ index: 0, delta: { content: '' }, finish_reason: null }] });
    const whole = replay(create, [chunk({ role: 'assistant', content: 'Half' }), odd, DONE]);
    expect(said(whole)).toEqual(choices);
    expect(whole.events.at(-1)).toMatchObject(last);
  });

  test('does not say again what a whole message behind it repeats', () => {
    expect(said(replay(create, [chunk({ content: 'All' }), chunk({}, 'stop'), frame({ choices: [{ index: 0, message: { role: 'assistant', content: 'All' }, finish_reason: 'stop' }] }), DONE]))).toEqual([['All', ['stop']]]);
  });
});

describe('several choices', () => {
  const first = [chunk({ role: 'assistant', content: 'one' }), chunk({}, 'stop')];
  const second = frame({ choices: [{ index: 1, delta: { content: 'two' }, finish_reason: 'stop' }] });

  test('are over when all that were asked for have ended', () => {
    const transducer = createChatTransducer('seed', 2);
    transducer.push(Buffer.concat(first));
    expect(transducer.summary().isFinished).toBe(false);
    transducer.push(second);
    expect(transducer.summary().isFinished).toBe(true);
  });

  test('are over when the provider ends the stream with fewer', () => {
    const two = () => createChatTransducer('seed', 2);
    expect(replay(two, [...first, DONE]).events.at(-1)).toEqual(WHOLE);
    expect(replay(two, first).events.at(-1)).toEqual(WHOLE);
    expect(replay(two, [...first, frame({ choices: [{ index: 1, delta: { content: 'tw' }, finish_reason: null }] })]).events.at(-1)).toMatchObject(failed('DISCONNECTED'));
  });

  test.each<[string, readonly Buffer[], readonly number[]]>([
    ['where another has none', [...first, frame({ choices: [{ index: 1, delta: { content: 'tw' }, finish_reason: null }] })], [0]],
    ['where another has not begun', first, [0]],
    ['not where all have one', [...first, second], []],
    ['not where it went on', [...first, chunk({ content: 'more' })], []],
    ['not where none has one', [chunk({ content: 'one' })], []],
  ])('keep the finish that they have when the answer breaks off, %s', (_name, parts, ended) => {
    const transducer = createChatTransducer('seed', 2);
    transducer.push(Buffer.concat(parts));
    expect(indexesIn(transducer.finishEnded?.())).toEqual(ended);
    expect(transducer.finishEnded?.()).toBeUndefined();
  });

  const other = frame({ choices: [{ index: 1, delta: { content: 'tw' }, finish_reason: null }] });
  test.each<[string, readonly (readonly Buffer[])[], readonly (readonly number[])[]]>([
    ['with the last that they say, and what others say', [first, [other], [other]], [[0], [0], [0]]],
    ['not before they have one', [[chunk({ role: 'assistant', content: 'one' }), other], [chunk({}, 'stop')], [other]], [[], [], [0]]],
    ['in one read', [[...first, other]], [[0]]],
    ['no more where it goes on', [[...first, other], [chunk({ content: 'more' })], [other]], [[0], [], []]],
    ['not where all have one', [first, [second]], [[0], []]],
    ['not with a call that is half told', [[chunk({ role: 'assistant', tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{"a' } }] }), chunk({}, 'tool_calls'), other]], [[]]],
  ])('tell the finish that they have while others go on, for whoever is cut off: %s', (_name, reads, told) => {
    const transducer = createChatTransducer('seed', 2);
    const ended = reads.map((parts) => transducer.push(Buffer.concat(parts)).map((event) => (event.type === 'chunk' && event.ended !== undefined ? indexesIn({ ...event, choices: event.ended }) : [])).at(-1) ?? []);
    expect(ended).toEqual(told);
  });

  test('of a read that says several things only the last tells it, and of one choice none does', () => {
    const parts = [...first, other, frame({ choices: [{ index: 1, delta: { content: 'o', refusal: 'x' }, finish_reason: null }] })];
    const events = createChatTransducer('seed', 2).push(Buffer.concat(parts));
    expect(events.map((event) => 'ended' in event)).toEqual([...events.slice(1).map(() => false), true]);
    expect(createChatTransducer('seed', 1).push(Buffer.concat(parts)).some((event) => 'ended' in event)).toBe(false);
  });

  test('are as many as `n` says, where the host is asked for it', () => {
    const n = (value: string) => [{ name: 'n', value: Buffer.from(value) }];
    expect([[], n('2'), n('128'), n('129'), n('0'), n('1.5'), n('null'), n('"2"')].map((fields) => choicesAsked(fields))).toEqual([1, 2, 128, 1, 1, 1, 1, 1]);
    expect(choicesAsked(n('2'), { ...NO_QUIRKS, dropFields: ['n'] })).toBe(1);
  });
});
