import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { planWith } from '../testing/callers.js';
import { createFakeNeighbours, events, finishOf, type FakeNeighbours, type PlayedCall } from '../testing/neighbours.js';
import { createRecordedAnswer, type RecordedAnswer } from '../testing/recorded-answer.js';
import type { Route } from './answer.js';
import { runAttempt, type Activity, type AttemptResult } from './dispatch.js';

interface Attempt {
  readonly neighbours: FakeNeighbours;
  readonly answer: RecordedAnswer;
  readonly call: PlayedCall;
  readonly activity: Activity;
  readonly result: Promise<AttemptResult>;
}

const newRoute = (): Route => ({ provider: 'a', model: 'm', decisionId: 'dec_1', attempts: 1, head: undefined, estimate: () => ({ costNanoUsd: asNanoUsd(0n), savingsNanoUsd: asNanoUsd(0n) }) });

function start({ isStream = true, choices = 1, request = {}, activity = { lastSentMs: 0 }, neighbours = createFakeNeighbours(planWith([])), answer = createRecordedAnswer(), takeRoom = (_bytes: number): boolean => true } = {}): Attempt {
  neighbours.scripts.set('a', () => undefined);
  const result = runAttempt({
    workers: neighbours.workers,
    clock: neighbours.clock,
    heartbeatMs: 10_000,
    activity,
    answer,
    request,
    isStream,
    choices,
    route: newRoute(),
    earlier: [],
    decisionId: '',
    takeRoom,
    onJournaled: () => undefined,
  });
  const call = neighbours.calls.at(-1);
  if (call === undefined) throw new Error('the attempt was not dispatched');
  return { neighbours, answer, call, activity, result };
}

describe('stream', () => {
  test('keeps what comes before the content, and sends it before the content in order', () => {
    const { call, answer } = start();
    call.listener.onEvent(events.role());
    expect(answer.said).toEqual([]);
    call.listener.onEvent(events.text('a'));
    expect(answer.said).toEqual(['chunk 0:', 'chunk 0:a']);
  });

  test('holds the finish chunk back until the figures are known', async () => {
    const { call, answer, result, neighbours } = start();
    call.listener.onEvent(events.text('a'));
    call.listener.onEvent(events.finish());
    expect(answer.said).toEqual(['chunk 0:a']);
    call.play(events.end());
    expect(await result).toEqual({ kind: 'complete' });
    expect(answer.said).toEqual(['chunk 0:a', 'finish 0:!stop']);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test('gives each of several choices its finish chunk, and the figures only to the last', async () => {
    const { call, answer, result } = start();
    call.play(events.text('a', 0), events.text('b', 1), events.finish(1), events.text('c', 0), events.finish(0), events.end());
    await result;
    expect(answer.said).toEqual(['chunk 0:a', 'chunk 1:b', 'chunk 1:!stop', 'chunk 0:c', 'finish 0:!stop']);
  });

  test.each([['length', 'length'], ['', 'stop'], ['error', 'stop']])('makes a finish chunk for an end with the reason %j', async (finishReason, shown) => {
    const { call, answer, result } = start();
    call.play(events.text('a'), events.end({ finishReason }));
    await result;
    expect(answer.said).toEqual(['chunk 0:a', `finish 0:!${shown}`]);
  });

  test('turns an end that was cut into an error chunk after content, and into a retry before it', async () => {
    const cut = { class: 'TIMEOUT_IDLE', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true } as const;
    const after = start();
    after.call.play(events.text('a'), events.end({ cut }));
    expect(await after.result).toEqual({ kind: 'cut' });
    expect(after.answer.said).toEqual(['chunk 0:a', 'cut TIMEOUT_IDLE']);
    const before = start();
    before.call.play(events.role(), events.end({ cut }));
    expect(await before.result).toMatchObject({ kind: 'failed', trace: 'journaled' });
    expect(before.answer.said).toEqual([]);
  });

  test.each([
    ['keeps its own end, sent before', [events.finish(0), events.text('c', 1)], ['chunk 0:!stop', 'chunk 1:c'], [0]],
    ['keeps its own end, held back', [events.finish(0)], ['chunk 0:!stop'], [0]],
    ['as the last of all has none, as a single choice would', [events.finish(0), events.finish(1)], ['chunk 0:!stop'], [0]],
  ])('with several choices, one that ended %s when the stream is cut', async (_name, played, said, finished) => {
    const cut = { class: 'DISCONNECTED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true } as const;
    const { call, answer, result } = start({ choices: 2 });
    call.play(events.text('a', 0), events.text('b', 1), ...played, events.end({ cut }));
    expect(await result).toEqual({ kind: 'cut' });
    expect(answer.said).toEqual(['chunk 0:a', 'chunk 1:b', ...said, 'cut DISCONNECTED']);
    expect(answer.finished).toEqual(finished);
  });

  test.each([
    ['keeps its own end', [events.text('c', 1, 0)], ['chunk 1:c', 'chunk 0:!stop'], [0]],
    ['has none if the last event does not name it', [events.text('c', 1, 0), events.text('d', 1)], ['chunk 1:c', 'chunk 1:d'], []],
    ['keeps the one that was sent', [events.finish(0), events.text('c', 1)], ['chunk 0:!stop', 'chunk 1:c'], [0]],
  ])('with several choices, one that has its reason %s when the link to its worker breaks', async (_name, played, said, finished) => {
    const { call, answer, result } = start({ choices: 2 });
    for (const event of [events.text('a', 0), events.text('b', 1), ...played]) call.listener.onEvent(event);
    call.listener.onEnd(new Fault('link_lost', 'test'));
    expect(await result).toEqual({ kind: 'cut' });
    expect(answer.said).toEqual(['chunk 0:a', 'chunk 1:b', ...said, 'cut DISCONNECTED']);
    expect(answer.finished).toEqual(finished);
  });

  test('does not count the end of a choice as content: another attempt may still answer', async () => {
    const { call, answer, result } = start({ choices: 2 });
    call.listener.onEvent({ event: 'chunk', chunk: { choices: Buffer.from('[]'), content: false, finish: false, ended: Buffer.from(finishOf(0)) } });
    call.listener.onEnd(new Fault('link_lost', 'test'));
    expect(await result).toMatchObject({ kind: 'failed' });
    expect(answer.said).toEqual([]);
  });

  test('ignores events after the end', async () => {
    const { call, answer, result } = start();
    call.listener.onEvent(events.text('a'));
    call.listener.onEvent(events.end());
    call.listener.onEvent(events.text('late'));
    call.listener.onEnd(new Fault('link_lost', 'test'));
    await result;
    expect(answer.said).toEqual(['chunk 0:a', 'finish 0:!stop']);
  });
});

describe('a silent stream', () => {
  test('gets a comment after ten seconds, and may still fail over', async () => {
    const { call, answer, result, neighbours } = start();
    neighbours.clock.advance(9_999);
    expect(answer.said).toEqual([]);
    neighbours.clock.advance(10_001);
    expect(answer.said).toEqual(['keep-alive', 'keep-alive']);
    call.play(events.failed('PROVIDER_ERROR'));
    expect(await result).toMatchObject({ kind: 'failed' });
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test('waits a moment for the end of an attempt that falls together with it, so that a failure has a status of its own', async () => {
    const failing = start({ request: { firstByteTimeoutMs: 10_000 } });
    failing.neighbours.clock.advance(10_020);
    expect(failing.answer.said).toEqual([]);
    failing.call.play(events.failed('TIMEOUT_FIRST_BYTE'));
    expect(await failing.result).toMatchObject({ kind: 'failed' });
    expect([failing.answer.said, failing.neighbours.clock.pendingTimers()]).toEqual([[], 0]);
    const late = start({ request: { firstByteTimeoutMs: 10_000 } });
    late.neighbours.clock.advance(10_249);
    expect(late.answer.said).toEqual([]);
    late.neighbours.clock.advance(1);
    expect(late.answer.said).toEqual(['keep-alive']);
    const thinking = start({ request: { firstByteTimeoutMs: 60_000 } });
    thinking.neighbours.clock.advance(10_000);
    expect(thinking.answer.said).toEqual(['keep-alive']);
  });

  test('counts its silence over all attempts of the request', () => {
    const neighbours = createFakeNeighbours(planWith([]));
    const first = start({ neighbours });
    neighbours.clock.advance(8_000);
    first.call.play(events.failed('CONNECT'));
    const second = start({ neighbours, activity: first.activity, answer: first.answer });
    neighbours.clock.advance(2_000);
    expect(second.answer.said).toEqual(['keep-alive']);
  });

  test('counts its silence from the latest chunk', () => {
    const { call, answer, neighbours } = start();
    neighbours.clock.advance(9_000);
    call.listener.onEvent(events.text('a'));
    neighbours.clock.advance(9_000);
    expect(answer.said).toEqual(['chunk 0:a']);
    neighbours.clock.advance(1_000);
    expect(answer.said).toEqual(['chunk 0:a', 'keep-alive']);
  });

  test('is not assumed for a whole answer, which gets no comments', () => {
    const { answer, neighbours } = start({ isStream: false });
    neighbours.clock.advance(60_000);
    expect(answer.said).toEqual([]);
  });
});

describe('slow reader', () => {
  test('pauses its provider until it reads again', () => {
    const { call, answer } = start();
    answer.isStalled = true;
    call.listener.onEvent(events.text('a'));
    expect(call.isPaused).toBe(true);
    answer.drain();
    expect(call.isPaused).toBe(false);
  });

  test('is cut after a minute without reading, and the worker is told', async () => {
    const { call, answer, result, neighbours } = start();
    answer.isStalled = true;
    call.listener.onEvent(events.text('a'));
    neighbours.clock.advance(59_999);
    expect(call.isCancelled).toBe(false);
    neighbours.clock.advance(1);
    expect(await result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    // It was cut, which does not count as leaving.
    expect([call.isCancelled, call.cancelledFor]).toEqual([true, undefined]);
    expect(answer.said).toEqual(['chunk 0:a', 'abandon']);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test('is reported as such, and the provider is not blamed, if the worker gave up first', async () => {
    const { call, answer, result, neighbours } = start();
    answer.isStalled = true;
    call.listener.onEvent(events.text('a'));
    call.listener.onEnd(undefined);
    expect(await result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    expect(answer.said).toEqual(['chunk 0:a', 'abandon slow']);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test('is not cut while it reads a little, nor while another answer of its connection has its turn, but once it reads nothing', async () => {
    const { call, answer, result, neighbours } = start();
    answer.isStalled = true;
    answer.takenBytes = undefined;
    call.listener.onEvent(events.text('a'));
    neighbours.clock.advance(300_000);
    answer.takenBytes = 0;
    for (let i = 0; i < 10; i += 1) {
      neighbours.clock.advance(45_000);
      answer.takenBytes += 1;
    }
    expect([call.isPaused, call.isCancelled, answer.said]).toEqual([true, false, ['chunk 0:a']]);
    // It is checked every 15 s.
    neighbours.clock.advance(15_000 + 59_999);
    expect(call.isCancelled).toBe(false);
    neighbours.clock.advance(1);
    expect(await result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });
});

describe('a client that hardly reads', () => {
  test('is cut after ten minutes, as one that reads nothing is, and the worker is told', async () => {
    const { call, answer, result, neighbours } = start();
    answer.isStalled = true;
    call.listener.onEvent(events.text('a'));
    for (let i = 0; i < 13; i += 1) {
      expect(call.isCancelled).toBe(false);
      answer.takenBytes = i;
      neighbours.clock.advance(45_000);
    }
    answer.takenBytes = 13;
    neighbours.clock.advance(30_000);
    expect(await result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    expect([call.isCancelled, answer.said]).toEqual([true, ['chunk 0:a', 'abandon slow']]);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test('wins no time by making room for a little more now and then, but all of it by reading at an ordinary pace', async () => {
    const cycle = ({ answer, call, neighbours }: ReturnType<typeof start>, bytes: number, ms = 40_000): void => {
      answer.isStalled = true;
      call.listener.onEvent(events.text('a'));
      neighbours.clock.advance(ms);
      answer.takenBytes = (answer.takenBytes ?? 0) + bytes;
      answer.drain();
    };
    const ordinary = start();
    for (let i = 0; i < 60; i += 1) cycle(ordinary, 40 * 1_024);
    expect(ordinary.call.isCancelled).toBe(false);
    const tiny = start();
    for (let i = 0; i < 15; i += 1) cycle(tiny, 512);
    expect(tiny.call.isCancelled).toBe(false);
    cycle(tiny, 512);
    expect(await tiny.result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    expect(tiny.call.isCancelled).toBe(true);
    // Nor by making it each time before it is looked at.
    const early = start();
    for (let i = 0; i < 44; i += 1) cycle(early, 512, 14_000);
    expect(early.call.isCancelled).toBe(false);
    cycle(early, 512, 14_000);
    expect(await early.result).toEqual({ kind: 'gone', wasSent: true, isOwed: true });
    early.answer.drain();
    expect([early.answer.said.filter((said) => said.startsWith('abandon')), early.neighbours.clock.pendingTimers()]).toEqual([['abandon slow'], 0]);
  });
});

describe('what is kept of a stream until its end', () => {
  test('takes room; without it the stream is broken off, and its worker is told', async () => {
    const taken: number[] = [];
    const answer = createRecordedAnswer();
    let held = 5;
    Object.assign(answer, { heldChars: () => held });
    const { call, result, neighbours } = start({ answer, takeRoom: (bytes) => taken.push(bytes) < 3 });
    for (const more of [0, 10, 0, 20, 30]) {
      held += more;
      call.listener.onEvent(events.text('a'));
    }
    expect(await result).toEqual({ kind: 'cut' });
    expect([taken, call.isCancelled, call.cancelledFor, answer.said.at(-1)]).toEqual([[10, 20, 30], true, undefined, 'cut GARBAGE']);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });
});

describe('whole answer', () => {
  test('is sent once its figures are known', async () => {
    const { call, answer, result } = start({ isStream: false });
    call.listener.onEvent(events.body('x'));
    expect(answer.said).toEqual([]);
    call.play(events.end());
    expect(await result).toEqual({ kind: 'complete' });
  });

  test('without room for it is not given, and counts as failed', async () => {
    const asked: number[] = [];
    const { call, answer, result } = start({ isStream: false, takeRoom: (bytes) => asked.push(bytes) > 1 });
    const body = events.body('x');
    call.listener.onEvent(body);
    call.listener.onEvent(events.end());
    expect(await result).toMatchObject({ kind: 'failed', failed: { class: 'GARBAGE', retryable: true }, trace: 'journaled' });
    expect([answer.said, asked]).toEqual([[], [body.body?.choices.length]]);
  });

  test('without a body counts as failed', async () => {
    const { call, answer, result } = start({ isStream: false });
    call.play(events.end());
    expect(await result).toMatchObject({ kind: 'failed', failed: { class: 'EMPTY' } });
    expect(answer.said).toEqual([]);
  });
});

test.each([
  ['NO_CREDENTIAL', 0, 'none'],
  ['ACCOUNTS_AWAY', 0, 'none'],
  ['RATE_LIMITED', 0, 'none'],
  ['BAD_REQUEST', 0, 'none'],
  ['BAD_REQUEST', 400, 'journaled'],
  ['CONNECT', 0, 'journaled'],
] as const)('a failure %s with status %d leaves at its worker: %s', async (failureClass, status, trace) => {
  const { call, result } = start();
  call.play(events.failed(failureClass, { status }));
  expect(await result).toMatchObject({ kind: 'failed', trace });
});

test.each([
  ['link_lost', 'DISCONNECTED', 'lost'],
  ['deadline_exceeded', 'TIMEOUT_IDLE', 'lost'],
  ['peer_unavailable', 'CONNECT', 'none'],
  ['overloaded', 'CONNECT', 'none'],
  ['billing_unavailable', 'CONNECT', 'none'],
] as const)('a call that ends with %s failed as %s and left %s at its worker', async (code, failureClass, trace) => {
  const { call, result } = start();
  call.listener.onEnd(new Fault(code, 'test'));
  expect(await result).toMatchObject({ kind: 'failed', trace, failed: { class: failureClass, retryable: true } });
});

test('a worker that could not start because quota is away fails as our fault, and no other is asked', async () => {
  const { call, result } = start();
  call.listener.onEnd(new Fault('quota_unavailable', 'test'));
  expect(await result).toMatchObject({ kind: 'failed', trace: 'none', failed: { class: 'QUOTA_AWAY', retryable: false } });
});

test('a provider without a worker counts as unreachable, whoever’s credential it would have been', async () => {
  const neighbours = createFakeNeighbours(planWith([]));
  const options = { workers: { ...neighbours.workers, dispatch: () => undefined }, clock: neighbours.clock, heartbeatMs: 1, activity: { lastSentMs: 0 }, answer: createRecordedAnswer(), request: { byok: true }, isStream: true, choices: 1 };
  expect(await runAttempt({ ...options, route: newRoute(), earlier: [], decisionId: '', onJournaled: () => undefined })).toMatchObject({ kind: 'failed', trace: 'none', failed: { class: 'CONNECT', retryable: true } });
});

test('a request that cannot be encoded fails only its attempt', async () => {
  const neighbours = createFakeNeighbours(planWith([]));
  const workers = {
    ...neighbours.workers,
    dispatch: () => {
      throw new Fault('bad_message', 'too large');
    },
  };
  const options = { workers, clock: neighbours.clock, heartbeatMs: 1, activity: { lastSentMs: 0 }, answer: createRecordedAnswer(), request: {}, isStream: true, choices: 1 };
  expect(await runAttempt({ ...options, route: newRoute(), earlier: [], decisionId: '', onJournaled: () => undefined })).toMatchObject({ kind: 'failed', trace: 'none' });
  expect(neighbours.clock.pendingTimers()).toBe(0);
});
