import { describe, expect, jest, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse } from '@signalbox/testkit/fake-provider';
import { Attempt, type Ending } from './attempt.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import type { UpstreamListener } from './upstream.js';

const REQUEST = { requestId: 'chatcmpl-1', attempt: 1, stream: true, fields: [], maxOutputTokens: 0, firstByteTimeoutMs: 10_000, idleTimeoutMs: 30_000 } as unknown as DispatchRequest__Output;
const PING = ': ping\n\n';
const text = (content: string): string => sse({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });

interface Begun {
  readonly attempt: Attempt;
  readonly clock: FakeClock;
  readonly ended: Promise<Ending>;
  /** Lets time pass, with these bytes every ten seconds, until the attempt ends; returns after how many milliseconds. */
  readonly sends: (bytes: string, forMs: number) => Promise<number | undefined>;
}

function begin(over: Partial<DispatchRequest__Output> = {}, status = 200, isGuarded = false, grow?: (bytes: number) => void): Begun {
  const clock = createFakeClock();
  let listener: UpstreamListener | undefined;
  const attempt = new Attempt({
    adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
    upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => true }), close: () => Promise.resolve() },
    clock,
    request: { ...REQUEST, ...over },
    upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0), isGuarded },
    sinks: { onHead: () => undefined, onChunk: () => true, onProgress: () => undefined },
    grow,
  });
  attempt.start();
  listener?.onHead(status, {});
  let isOver = false;
  void attempt.ended.then(() => (isOver = true));
  return {
    attempt,
    clock,
    ended: attempt.ended,
    sends: async (bytes, forMs) => {
      for (let atMs = 0; atMs < forMs; atMs += 10_000) {
        listener?.onData(Buffer.from(bytes));
        expect(clock.pendingTimers()).toBe(1);
        await clock.advanceAsync(10_000);
        if (isOver) return atMs + 10_000;
      }
      return undefined;
    },
  };
}

describe('a host that sends only signs of life', () => {
  test.each([
    [10_000, 120_000],
    [60_000, 240_000],
  ])('may take four times the model\'s %d ms until its first event, and at least two minutes', async (firstByteTimeoutMs, expectedMs) => {
    const { sends, ended } = begin({ firstByteTimeoutMs, idleTimeoutMs: 60_000 });
    expect(await sends(PING, 900_000)).toBe(expectedMs);
    expect(await ended).toMatchObject({ kind: 'failed', failure: { class: 'TIMEOUT_FIRST_BYTE', retryable: true } });
  });

  test('may take as long between two events', async () => {
    const { sends, ended } = begin();
    expect(await sends(PING, 100_000)).toBeUndefined();
    expect(await sends(text('a'), 10_000)).toBeUndefined();
    expect(await sends(PING, 900_000)).toBe(110_000);
    expect(await ended).toMatchObject({ kind: 'stream', cut: { class: 'TIMEOUT_IDLE' } });
  });

  test('may take ten minutes for a whole answer', async () => {
    const whole = begin({ stream: false });
    expect(await whole.sends(' ', 900_000)).toBe(600_000);
    expect(await whole.ended).toMatchObject({ kind: 'failed', failure: { class: 'TIMEOUT_FIRST_BYTE' } });
  });

  test.each([true, false])('has five seconds to send the body of a refusal after its status, streamed: %s', async (stream) => {
    for (const bytes of ['', ' ', '{"error":{"mess']) {
      const { clock, sends, ended } = begin({ stream, wholeTimeoutMs: 500_000 }, 429);
      if (bytes === '') await clock.advanceAsync(5_000);
      else expect(await sends(bytes, 900_000)).toBe(10_000);
      expect(await ended).toMatchObject({ kind: 'failed', failure: { class: 'RATE_LIMITED', status: 429 } });
    }
  });

  test('a stream that makes progress may take any time, and one that falls silent ends after the idle time', async () => {
    const { clock, sends, ended } = begin();
    expect(await sends(PING + text('a'), 900_000)).toBeUndefined();
    await clock.advanceAsync(30_000);
    expect(await ended).toMatchObject({ kind: 'stream', cut: { class: 'TIMEOUT_IDLE' } });
  });
});

describe('a stream that may be writing a call of a tool', () => {
  const tools = { fields: [{ name: 'tools', value: Buffer.from('[{"type":"function","function":{"name":"write_file"}}]') }] };
  const call = sse({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'write_file', arguments: '{"text":"…"}' } }] }, finish_reason: null }] });

  test.each([['nothing', ''], ['only signs of life', PING]])('may send %s for five minutes once it has begun to answer, since hosts hold the arguments back until they are complete', async (_what, meanwhile) => {
    const { sends, ended } = begin(tools);
    expect(await sends(text('I will write the file.'), 10_000)).toBeUndefined();
    expect(await sends(meanwhile, 250_000)).toBeUndefined();
    expect(await sends(call, 10_000)).toBeUndefined();
    expect(await sends(text('It is written.'), 10_000)).toBeUndefined();
    expect(await sends(meanwhile, 900_000)).toBe(290_000);
    expect(await ended).toMatchObject({ kind: 'stream', cut: { class: 'TIMEOUT_IDLE' } });
  });

  test('is left as soon as any other before it has begun, since another provider may answer', async () => {
    const role = sse({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
    const { clock, sends, ended } = begin(tools);
    expect(await sends(role, 10_000)).toBeUndefined();
    await clock.advanceAsync(20_000);
    expect(await ended).toMatchObject({ kind: 'failed', failure: { retryable: true } });
  });
});

describe('a stream that does not end', () => {
  test.each<[string, Partial<DispatchRequest__Output>]>([
    ['max_tokens', { maxTokens: 10 }],
    ['the model', { maxOutputTokens: 10 }],
  ])('ends with finish reason length, far beyond what %s allows', async (_what, over) => {
    const { attempt, sends, ended } = begin(over);
    expect(await sends(text('a'.repeat(8_192)), 80_000)).toBeUndefined();
    attempt.onData(Buffer.from(text('a'.repeat(8_192))));
    expect(await ended).toEqual({ kind: 'stream', cut: undefined });
    expect(attempt.summary()).toMatchObject({ finishReason: 'length', outputBytes: 73_728 });
  });

  test('may go on if nothing bounds it', async () => {
    expect(await begin().sends(text('a'.repeat(8_192)), 200_000)).toBeUndefined();
  });
});

test.each([
  ['an account’s own address has room for what has arrived, or ends', true, [131_072, 131_072, 131_072], { kind: 'failed', failure: { class: 'GARBAGE', retryable: true } }],
  ['the operator’s provider is read to its end, since it is paid for', false, [], { kind: 'answer' }],
])('a large whole answer from %s', async (_whose, isGuarded, reserved, ending) => {
  const asked: number[] = [];
  const { attempt, ended } = begin({ stream: false }, 200, isGuarded, (bytes) => {
    asked.push(bytes);
    if (asked.length === 3) throw new Fault('overloaded', 'no room');
  });
  const bytes = Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'a'.repeat(1_000_000) }, finish_reason: 'stop' }] }));
  for (let at = 0; at < bytes.length && asked.length < 3; at += 65_536) attempt.onData(bytes.subarray(at, at + 65_536));
  attempt.onEnd();
  expect(await ended).toMatchObject(ending);
  expect(asked).toEqual(reserved);
});

describe('a whole answer with more JSON values than can be parsed in a moment', () => {
  const choice = (logprobs: string): string => `{"index":0,"message":{"role":"assistant","content":"a"},"logprobs":${logprobs},"finish_reason":"stop"}`;
  const list = (values: number): string => `[${'0,'.repeat(values)}0]`;
  const beside = (values: number): string => `{"choices":[${choice('null')}],"x":${list(values)}}`;
  const probable = (values: number): string => `{"choices":[${choice(`{"content":${list(values)}}`)}]}`;
  const members = (count: number): string => `{"choices":[${choice('null')}],"x":{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join()}}}`;
  const GARBAGE = { kind: 'failed', failure: { class: 'GARBAGE', retryable: true } };

  test.each([
    ['390,000 values', false, beside(390_000), { kind: 'answer' }],
    ['410,000 values', false, beside(410_000), GARBAGE],
    ['410,000 values', true, beside(410_000), GARBAGE],
    ['98,000 members', false, members(98_000), { kind: 'answer' }],
    ['102,000 members', false, members(102_000), GARBAGE],
    ['1,100,000 values of probabilities', false, probable(1_100_000), { kind: 'answer' }],
    ['8,100,000 values of probabilities', false, probable(8_100_000), GARBAGE],
    ['900,000 values of probabilities', true, probable(900_000), { kind: 'answer' }],
    ['1,100,000 values of probabilities', true, probable(1_100_000), GARBAGE],
  ])('(%s, from an account’s own address: %s) is accepted if it may have been paid for, and rejected beyond a generous bound', async (_what, isGuarded, answer, ending) => {
    const { attempt, ended } = begin({ stream: false }, 200, isGuarded);
    const bytes = Buffer.from(answer);
    for (let at = 0; at < bytes.length; at += 65_536) attempt.onData(bytes.subarray(at, at + 65_536));
    attempt.onEnd();
    expect(await ended).toMatchObject(ending);
  });

  /** Answers with two megabytes; returns the characters that were parsed in each turn of the event loop, and how the attempt ended. */
  async function read(answer: string, atTurn: (turn: number, attempt: Attempt) => void = () => undefined): Promise<{ readonly parsed: readonly number[]; readonly ending: Ending }> {
    const { attempt, ended } = begin({ stream: false });
    const parsed: number[] = [0];
    const parse = jest.spyOn(JSON, 'parse');
    let isOver = false;
    const watch = (): void => {
      parsed[parsed.length - 1] = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
      parse.mockClear();
      if (isOver) return;
      parsed.push(0);
      atTurn(parsed.length, attempt);
      setImmediate(watch);
    };
    attempt.onData(Buffer.from(answer));
    attempt.onEnd();
    setImmediate(watch);
    const ending = await ended;
    isOver = true;
    await new Promise<void>((resolve) => setImmediate(resolve));
    parse.mockRestore();
    return { parsed, ending };
  }

  test('megabytes of log probabilities are read over many turns, and passed on complete', async () => {
    const { parsed, ending } = await read(probable(1_000_000));
    expect(Math.max(...parsed)).toBeLessThan(600_000);
    expect(parsed.reduce((sum, chars) => sum + chars, 0)).toBeGreaterThan(2_000_000);
    expect(ending).toMatchObject({ kind: 'answer', answer: { finishReason: 'stop', outputBytes: 1 } });
    const { choices } = (ending as Ending & { readonly kind: 'answer' }).answer;
    const { choices: written } = JSON.parse(probable(1_000_000)) as { readonly choices: readonly { readonly message: object }[] };
    expect(Buffer.from(JSON.stringify(written.map((each) => ({ ...each, message: { ...each.message, refusal: null } })))).equals(choices)).toBe(true);
  });

  test('invalid JSON among them is GARBAGE, noticed at the segment that contains it', async () => {
    const { parsed, ending } = await read(probable(1_000_000).replace('0,'.repeat(200_000), `${'0,'.repeat(199_999)}00`));
    expect(ending).toMatchObject(GARBAGE);
    expect(parsed.reduce((sum, chars) => sum + chars, 0)).toBeLessThan(1_000_000);
  });

  test('reading stops when the caller leaves in between', async () => {
    const { parsed, ending } = await read(probable(1_000_000), (turn, attempt) => {
      if (turn === 3) attempt.abandon();
    });
    expect(ending).toEqual({ kind: 'abandoned' });
    expect(parsed.reduce((sum, chars) => sum + chars, 0)).toBeLessThan(1_500_000);
  });

  test('is given up as soon as the bound is exceeded, before it has arrived completely, and nothing of it is parsed', async () => {
    const parse = jest.spyOn(JSON, 'parse');
    const { attempt, ended } = begin({ stream: false });
    attempt.onData(Buffer.from(beside(410_000)));
    expect(await ended).toMatchObject(GARBAGE);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });
});

test.each([
  ['a whole answer', 200, { kind: 'answer' }],
  ['a refusal', 400, { kind: 'failed', failure: { status: 400 } }],
])('%s that arrives byte by byte is not kept as single bytes', async (_what, status, ending) => {
  const { attempt, ended } = begin({ stream: false }, status, true);
  const bytes = Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(60_000) }, finish_reason: 'stop' }] }));
  const join = jest.spyOn(Buffer, 'concat');
  for (let at = 0; at < bytes.length; at += 1) attempt.onData(bytes.subarray(at, at + 1));
  attempt.onEnd();
  expect(await ended).toMatchObject(ending);
  const kept = join.mock.calls.map(([parts]) => parts.length);
  join.mockRestore();
  expect(kept.length).toBeGreaterThan(0);
  expect(Math.max(...kept)).toBeLessThan(100);
});

describe('the time to the first token', () => {
  const ROLE = sse({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
  const thought = sse({ choices: [{ index: 0, delta: { reasoning_content: 'hm' }, finish_reason: null }] });

  test.each<[string, string]>([
    ['word', text('a')],
    ['thought', thought],
  ])('ends with the first %s, whatever was sent before to keep the connection open', async (_what, content) => {
    const { attempt, sends } = begin();
    await sends(PING, 10_000);
    await sends(ROLE, 10_000);
    await sends(content, 10_000);
    await sends(text('b'), 10_000);
    expect([attempt.firstByteMs, attempt.ttftMs]).toEqual([1, 20_000]);
  });

  test('is the time to the first byte for streams without content and for whole answers', async () => {
    const { attempt, sends } = begin();
    await sends(PING + sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), 10_000);
    expect(attempt.ttftMs).toBe(1);
    const whole = begin({ stream: false });
    await whole.sends(' ', 10_000);
    expect(whole.attempt.ttftMs).toBe(1);
  });
});

test.each([['an error of the host', sse({ error: { message: 'overloaded' } })], ['bytes that make no sense', 'data: {\n\n'], ['silence', '']])('a choice that has ended keeps its finish reason when %s breaks off the other one', async (_name, broken) => {
  const clock = createFakeClock();
  let listener: UpstreamListener | undefined;
  const given: unknown[] = [];
  const attempt = new Attempt({
    adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
    upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => true }), close: () => Promise.resolve() },
    clock,
    request: { ...REQUEST, fields: [{ name: 'n', value: Buffer.from('2') }] },
    upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
    sinks: { onHead: () => undefined, onChunk: ({ choices }) => given.push(...(JSON.parse(Buffer.from(choices).toString()) as unknown[])) > 0, onProgress: () => undefined },
  });
  attempt.start();
  listener?.onHead(200, {});
  listener?.onData(Buffer.from(text('a') + sse({ choices: [{ index: 1, delta: { content: 'b' }, finish_reason: null }] }) + sse({ choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }) + broken));
  await clock.advanceAsync(60_000);
  expect(await attempt.ended).toMatchObject({ kind: 'stream', cut: {} });
  expect(given).toMatchObject([{ index: 0, finish_reason: null }, { index: 1, finish_reason: null }, { index: 0, finish_reason: 'length' }]);
});

test.each([['reads on after nine minutes gets the rest', 540_000, 'stream'], ['has no room for ten minutes is abandoned', 600_000, 'abandoned']])('a client that %s', async (_name, forMs, kind) => {
  const clock = createFakeClock();
  let listener: UpstreamListener | undefined;
  const attempt = new Attempt({
    adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
    upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => true }), close: () => Promise.resolve() },
    clock,
    request: REQUEST,
    upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
    sinks: { onHead: () => undefined, onChunk: () => false, onProgress: () => undefined },
  });
  attempt.start();
  listener?.onHead(200, {});
  listener?.onData(Buffer.from(text('a')));
  await clock.advanceAsync(forMs);
  attempt.resume();
  listener?.onData(Buffer.from(`${sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`));
  expect(await attempt.ended).toMatchObject({ kind });
});

describe('a request that gets no connection', () => {
  const sent = async (over: Partial<DispatchRequest__Output>, sendAfterMs?: number): Promise<readonly [number, Ending]> => {
    const clock = createFakeClock();
    let listener: UpstreamListener | undefined;
    const attempt = new Attempt({
      adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
      upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => false }), close: () => Promise.resolve() },
      clock,
      request: { ...REQUEST, ...over },
      upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
      sinks: { onHead: () => undefined, onChunk: () => true, onProgress: () => undefined },
    });
    attempt.start();
    let ending: Ending | undefined;
    void attempt.ended.then((ended) => (ending = ended));
    for (;;) {
      if (clock.monotonicMs() === sendAfterMs) listener?.onSent?.();
      await clock.advanceAsync(1_000);
      if (ending !== undefined) return [clock.monotonicMs(), ending];
    }
  };
  test.each<[string, Partial<DispatchRequest__Output>, number | undefined, number, string]>([
    ['of a whole answer fails as one that could not be made', { stream: false }, undefined, 15_000, 'CONNECT'],
    ['of a stream has no longer than for its first byte', {}, undefined, 10_000, 'CONNECT'],
    ['of a model that is slow to begin does not wait as long as that', { firstByteTimeoutMs: 60_000 }, undefined, 15_000, 'CONNECT'],
    ['in time has as long as its tokens may take', { stream: false, wholeTimeoutMs: 163_000 }, 14_000, 163_000, 'TIMEOUT_FIRST_BYTE'],
    ['in time is waited for as ever', { stream: false }, 14_000, 600_000, 'TIMEOUT_FIRST_BYTE'],
  ])('%s', async (_name, over, sendAfterMs, ms, expected) => {
    expect(await sent(over, sendAfterMs)).toMatchObject([ms, { kind: 'failed', failure: { class: expected, status: 0, retryable: true } }]);
  });
});

test('a stream that arrives faster than it is read lets others have their turn, and is then read on', async () => {
  const calls: string[] = [];
  let listener: UpstreamListener | undefined;
  const attempt = new Attempt({
    adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
    upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => void calls.push('pause'), resume: () => void calls.push('resume'), release: () => undefined, abort: () => void calls.push('abort'), isSent: () => true }), close: () => Promise.resolve() },
    clock: createFakeClock(),
    request: REQUEST,
    upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
    sinks: { onHead: () => undefined, onChunk: () => true, onProgress: () => undefined },
  });
  attempt.start();
  listener?.onHead(200, {});
  const othersTurn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  listener?.onData(Buffer.from(PING.repeat(8_000)));
  expect(calls).toEqual([]);
  listener?.onData(Buffer.from(PING.repeat(200)));
  listener?.onData(Buffer.from(PING.repeat(200)));
  expect(calls).toEqual(['pause']);
  await othersTurn();
  expect(calls).toEqual(['pause', 'resume']);
  listener?.onData(Buffer.from(PING.repeat(200)));
  expect(calls).toEqual(['pause', 'resume']);
  // A stream that has ended meanwhile is not read on.
  listener?.onData(Buffer.from(PING.repeat(9_000)));
  attempt.abandon();
  await othersTurn();
  expect(calls).toEqual(['pause', 'resume', 'pause', 'abort']);
});

test('48 streams that flood at once are read a quarter of a megabyte in a turn, each completely, and a slow one beside them at once', async () => {
  const open = (): { readonly listener: UpstreamListener; readonly attempt: Attempt; readonly given: () => number } => {
    let listener: UpstreamListener | undefined;
    let given = 0;
    const attempt = new Attempt({
      adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
      upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => true }), close: () => Promise.resolve() },
      clock: createFakeClock(),
      request: REQUEST,
      upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
      sinks: { onHead: () => undefined, onChunk: ({ choices }) => ((given += choices.length), true), onProgress: () => undefined },
    });
    attempt.start();
    if (listener === undefined) throw new Error('not sent');
    listener.onHead(200, {});
    return { listener, attempt, given: () => given };
  };
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const floods = Array.from({ length: 48 }, open);
  const slow = open();
  const read = Buffer.from(text('flood'.repeat(10)).repeat(500)).subarray(0, 65_536);
  for (const { listener } of floods) {
    listener.onData(read);
    listener.onEnd();
  }
  slow.listener.onData(Buffer.from(text('slow')));
  const begun = (): number => floods.filter(({ given }) => given() > 0).length;
  const perTurn: number[] = [];
  for (let before = 0; before < 48; before = begun()) {
    perTurn.push(begun() - before);
    if (perTurn.length > 100) throw new Error('they are not read on');
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(slow.given()).toBeGreaterThan(0);
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(5);
  await Promise.all(floods.map(({ attempt }) => attempt.ended));
  expect(new Set(floods.map(({ given }) => given())).size).toBe(1);
});

describe('what arrives after a silence in which this process may have been suspended', () => {
  const REST = `${text(' b')}${sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`;
  const silent = async (ms: number): Promise<{ readonly attempt: Attempt; readonly calls: string[]; readonly given: string[]; readonly come: () => void }> => {
    const clock = createFakeClock();
    const calls: string[] = [];
    const given: string[] = [];
    let listener: UpstreamListener | undefined;
    const attempt = new Attempt({
      adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1/v1' }),
      upstream: { post: (_request, _id, to) => ((listener = to), { pause: () => void calls.push('pause'), resume: () => void calls.push('resume'), release: () => undefined, abort: () => undefined, isSent: () => true }), close: () => Promise.resolve() },
      clock,
      request: REQUEST,
      upstreamRequest: { path: '/', headers: [], body: Buffer.alloc(0) },
      sinks: { onHead: () => undefined, onChunk: ({ choices }) => (given.push(Buffer.from(choices).toString()), true), onProgress: () => undefined },
    });
    attempt.start();
    listener?.onHead(200, {});
    listener?.onData(Buffer.from(text('a')));
    await clock.advanceAsync(ms);
    return {
      attempt, calls, given,
      come: () => {
        listener?.onData(Buffer.from(REST));
        listener?.onEnd();
      },
    };
  };

  test('is not charged to a caller that gave up meanwhile, whose cancellation is still unread in another socket', async () => {
    const { attempt, given, come } = await silent(15_000);
    come();
    // In the same turn, after the provider's socket.
    attempt.abandon();
    expect(await attempt.ended).toEqual({ kind: 'abandoned' });
    expect(given).toHaveLength(1);
    expect(attempt.summary()?.outputBytes).toBe(1);
  });

  test('is passed on completely, some turns later, to a caller that still waits', async () => {
    const { attempt, calls, given, come } = await silent(15_000);
    come();
    expect(calls).toEqual(['pause']);
    expect(given).toHaveLength(1);
    expect(await attempt.ended).toEqual({ kind: 'stream', cut: undefined });
    expect(given).toHaveLength(3);
    expect(attempt.summary()).toMatchObject({ outputBytes: 3, finishReason: 'stop' });
  });

  test('is processed at once if there was no such silence', async () => {
    const { attempt, calls, given, come } = await silent(2_000);
    come();
    expect(calls).toEqual([]);
    expect(given).toHaveLength(3);
    expect(await attempt.ended).toEqual({ kind: 'stream', cut: undefined });
  });
});
