import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchEvent } from '@signalbox/contracts/worker';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse } from '@signalbox/testkit/fake-provider';
import { oneTurn, until } from '@signalbox/testkit/until';
import type { Journal } from './journal.js';
import { choicesOf, chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

test('a choice that begins after another has finished is waited for', async () => {
  const time = createFakeClock();
  rig.use(time);
  let goOn: () => void = () => undefined;
  const told = new Promise<void>((resolve) => (goOn = resolve));
  const of = (index: number, delta: object, reason: string | null): string => chunk([{ index, delta, finish_reason: reason }]);
  rig.provider.enqueue({
    chunks: [
      of(0, { content: 'one' }, null),
      of(0, {}, 'stop'),
      of(1, { content: 'two' }, null),
      () => told,
      of(1, { content: ' and more' }, null),
      of(1, {}, 'stop'),
      chunk([], { usage: USAGE }),
      sse('[DONE]'),
    ],
  });
  const events = await rig.run(requestOf(), (event) => {
    if (event.chunk?.choices?.toString().includes('two') !== true) return;
    // It ends 2 s after the finish of the last choice.
    setImmediate(() => {
      time.advance(3_000);
      goOn();
    });
  });
  expect(events.map((event) => event.chunk?.choices?.toString() ?? '').join('')).toContain('and more');
  expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000' });
});

test('a stream that the provider’s content policy stops has finished, and costs what the provider reports or, without usage, what arrived', async () => {
  const filtered = sse({ error: { message: 'The response was filtered.', code: 'content_filter' } });
  rig.provider.enqueue({ chunks: [text('half an answer'), filtered, chunk([], { usage: USAGE }), sse('[DONE]')] }, { chunks: [text('half an answer'), filtered] });
  for (const source of ['PROVIDER', 'ESTIMATED']) {
    const events = await rig.run(requestOf());
    expect([saidIn(events), finishesOf(events)]).toEqual(['half an answer', [[0, 'content_filter']]]);
    expect(events.at(-1)?.end).toMatchObject({ source, finishReason: 'content_filter', flags: source === 'PROVIDER' ? [] : ['estimated'] });
    expect(events.at(-1)?.end).not.toHaveProperty('cut');
    expect(rig.ends.at(-1)).toMatchObject({ failure: 'FAILURE_CLASS_UNSPECIFIED', finishReason: 'content_filter' });
    expect(rig.ends.at(-1)?.costNanoUsd).toBeGreaterThan(0n);
  }
});

const finishesOf = (events: readonly DispatchEvent[]): unknown[] =>
  choicesOf(events).flatMap(({ index, finish_reason: reason }) => (reason === null ? [] : [[index, reason]]));
const saidIn = (events: readonly DispatchEvent[]): string =>
  choicesOf(events)
    .map(({ delta }) => delta.content ?? '')
    .join('');
/** Lets `ms` pass on the clock once these chunks are read. */
const pause = (time: FakeClock, ms: number, behind: readonly string[]) => async (): Promise<void> => {
  await until(() => rig.readBytes() >= Buffer.byteLength(behind.join('')));
  time.advance(ms);
};

test.each([
  [
    'a choice that begins long after another has finished',
    2,
    [
      [0, 'one', 'stop'],
      [1, 'two', 'stop'],
    ],
    'onetwo',
    [
      [0, 'stop'],
      [1, 'stop'],
    ],
  ],
  [
    'text long after a finish in each chunk',
    1,
    [
      [0, 'one', 'stop'],
      [0, 'two', 'stop'],
      [0, 'three', 'stop'],
    ],
    'onetwothree',
    [[0, 'stop']],
  ],
])('%s is waited for', async (_name, n, said, expected, finishes) => {
  const time = createFakeClock();
  rig.use(time);
  const chunks = said.map(([index, content, reason]) => chunk([{ index, delta: { content }, finish_reason: reason }]));
  rig.provider.enqueue({
    chunks: [...chunks.slice(0, -1), pause(time, 3_000, chunks.slice(0, -1)), ...chunks.slice(-1), chunk([], { usage: USAGE }), sse('[DONE]')],
  });
  const events = await rig.run(requestOf({ fields: [{ name: 'n', value: Buffer.from(String(n)) }] }));
  expect([saidIn(events), finishesOf(events)]).toEqual([expected, finishes]);
  expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000' });
});

const CALL = chunk([
  { index: 0, delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] }, finish_reason: null },
]);

test.each([
  ['falls silent', { hang: true }],
  ['breaks', { cut: true }],
])('a stream that %s after the finish counts as complete', async (_name, ending) => {
  const time = createFakeClock();
  rig.use(time);
  const chunks = [CALL, chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }])];
  rig.provider.enqueue({ chunks: [...chunks, pause(time, 'hang' in ending ? 2_000 : 0, chunks)], ...ending });
  const events = await rig.run(requestOf());
  expect(finishesOf(events)).toEqual([[0, 'tool_calls']]);
  expect(events.map((event) => event.chunk?.choices?.toString() ?? '').join('')).toContain('{"arguments":"{}"}');
  expect(events.at(-1)?.end).toMatchObject({ finishReason: 'tool_calls', source: 'ESTIMATED', flags: ['estimated'] });
  expect(events.at(-1)?.end?.cut).toBeUndefined();
});

test.each<[string, string[], number, unknown]>([
  ['finish, then usage', [chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE })], 250, '20000'],
  ['both in one frame', [chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: USAGE })], 250, '20000'],
  ['both with text, after which more may follow', [chunk([{ index: 0, delta: { content: '!' }, finish_reason: 'stop' }], { usage: USAGE })], 2_000, '20000'],
  ['usage before the finish', [chunk([], { usage: USAGE }), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])], 250, '20000'],
  ['no usage', [chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])], 2_000, undefined],
])('a provider that keeps its stream open after the finish is waited for only as long as something may follow: %s', async (_name, last, ms, costNanoUsd) => {
  const time = createFakeClock();
  rig.use(time);
  const chunks = [text('Hello'), ...last];
  let isOver = false;
  let wasOver = true;
  const look = async (): Promise<void> => {
    for (let turns = 0; turns < 20; turns += 1) await oneTurn();
    wasOver = isOver;
    time.advance(1);
  };
  rig.provider.enqueue({ chunks: [...chunks, pause(time, ms - 1, chunks), look], hang: true });
  const events = await rig.run(requestOf()).finally(() => (isOver = true));
  expect([wasOver, time.monotonicMs(), finishesOf(events)]).toEqual([false, ms, [[0, 'stop']]]);
  expect(events.at(-1)?.end).toMatchObject(costNanoUsd === undefined ? { source: 'ESTIMATED' } : { source: 'PROVIDER', costNanoUsd });
});

test('of two usage frames the last one counts if it arrives while the end is awaited', async () => {
  const time = createFakeClock();
  rig.use(time);
  const first = [
    text('Hello'),
    chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } }),
  ];
  const all = [...first, chunk([], { usage: USAGE })];
  rig.provider.enqueue({ chunks: [...first, pause(time, 249, first), ...all.slice(-1), pause(time, 249, all), pause(time, 1, all)], hang: true });
  expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000' });
  expect(time.monotonicMs()).toBe(499);
});

test('a stream that fails in an unknown way ends with an error, not with a stop', async () => {
  rig.provider.enqueue({ chunks: [text('Half'), sse({ detail: 'Internal Server Error' }), sse('[DONE]')] });
  expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'error', cut: { class: 'DISCONNECTED' } });
});

describe('after the last event of a stream', () => {
  const whole = [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')];

  test('the connection serves the next request', async () => {
    const answer = { body: whole.join(''), headers: { 'content-type': 'text/event-stream' } };
    rig.provider.enqueue(answer, answer, answer);
    for (let n = 0; n < 3; n += 1) {
      expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER', flags: [] });
      // The pool learns of a free connection in the next turn.
      await oneTurn();
    }
    expect(new Set(rig.provider.requests.map(({ clientPort }) => clientPort)).size).toBe(1);
  });

  test('a provider that does not end the body is cut off after a second', async () => {
    const time = createFakeClock();
    rig.use(time);
    rig.provider.enqueue({ chunks: whole, hang: true });
    expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER' });
    time.advance(999);
    expect(rig.provider.requests[0]?.wasAborted()).toBe(false);
    time.advance(1);
    await until(() => rig.provider.requests[0]?.wasAborted());
  });

  test('a provider that goes on sending is cut off', async () => {
    let goOn = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    rig.provider.enqueue({ chunks: [...whole, () => gate, text('x'.repeat(8_192))], hang: true });
    expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER' });
    goOn();
    await until(() => rig.provider.requests[0]?.wasAborted());
  });
});

describe('an answer whose end record the disk does not take for five seconds', () => {
  /** A journal that tells when an end has arrived, and writes it when `write` is called. */
  const refusing = () => {
    let write: () => void = () => undefined;
    let come: () => void = () => undefined;
    const hasCome = new Promise<void>((resolve) => (come = resolve));
    const journal: Journal = {
      start: () => Promise.resolve(),
      checkpoint: () => undefined,
      end: () => {
        come();
        return new Promise((resolve) => (write = resolve));
      },
      outcome: () => undefined,
      tend: () => undefined,
      state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
    };
    return { journal, hasCome, write: () => write() };
  };
  const STREAM = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
  const WHOLE = { body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } };

  test('breaks off without a cost if it is a stream: after a kill another cost would be booked', async () => {
    const time = createFakeClock();
    const { journal, hasCome } = refusing();
    rig.use(time, { journal });
    rig.provider.enqueue(STREAM);
    const running = rig.run(requestOf());
    await hasCome;
    time.advance(5_000);
    const events = await running;
    expect(saidIn(events)).toBe('Hello');
    expect(events.filter(({ end }) => end !== undefined)).toEqual([]);
    expect(events.at(-1)?.failed).toMatchObject({ class: 'DISCONNECTED', retryable: true });
  });

  test('fails if it is whole, so that another attempt may answer', async () => {
    const time = createFakeClock();
    const { journal, hasCome } = refusing();
    rig.use(time, { journal });
    rig.provider.enqueue(WHOLE);
    const running = rig.run(requestOf({ stream: false, clientStream: false }));
    await hasCome;
    time.advance(5_000);
    expect(await running).toEqual([{ failed: expect.objectContaining({ class: 'DISCONNECTED', retryable: true }) as object }]);
  });

  test('is passed on unchanged if the disk takes it earlier', async () => {
    const time = createFakeClock();
    const { journal, hasCome, write } = refusing();
    rig.use(time, { journal });
    rig.provider.enqueue(STREAM);
    const running = rig.run(requestOf());
    await hasCome;
    time.advance(4_999);
    write();
    expect((await running).at(-1)?.end).toMatchObject({ costNanoUsd: '20000', finishReason: 'stop' });
  });
});
