import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { sse } from '@signalbox/testkit/fake-provider';
import { oneTurn, until } from '@signalbox/testkit/until';
import { choicesOf, chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

describe('with a hold that covers the first tranche', () => {
  const FINISH = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  /** 300 bytes, which count as 100 tokens. */
  const hundreds = (count: number): string[] => Array.from({ length: count }, () => text('abc '.repeat(75)));
  const held = (over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output =>
    requestOf({ maxTokens: 5_000, heldNanoUsd: '1000', heldTokens: '1100', heldOutputTokens: 1_024, outputPriceMax: '2000000', wholeNanoUsd: '9000', ...over });

  test('requests another tranche when three quarters are used, at the output price, and passes on the whole answer', async () => {
    rig.provider.enqueue({ chunks: [...hundreds(20), FINISH, chunk([], { usage: { ...USAGE, completion_tokens: 2_000 } }), sse('[DONE]')] });
    const events = await rig.run(held());
    expect(choicesOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBe(6_000);
    expect(rig.extended).toEqual(['3048 2124', '5096 3148']);
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '', source: 'PROVIDER', tokens: { outputText: 2_000 } });
  });

  test.each([
    ['9000', '9000', '5076'],
    ['900', '1000', '5076'],
  ])('is journaled as large as the whole answer needs, since it cannot grow after a loss of quota’s store: of %s in all, %s', async (wholeNanoUsd, amountNanoUsd, tokens) => {
    rig.provider.enqueue({ chunks: [text('a'), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    await rig.run(held({ wholeNanoUsd }));
    expect(rig.starts[0]?.held).toEqual({ amountNanoUsd, tokens });
  });

  test('never requests more than the whole answer needs', async () => {
    rig.provider.enqueue({ chunks: [...hundreds(10), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    await rig.run(held({ maxTokens: 1_030, wholeNanoUsd: '1011' }));
    expect(rig.extended).toEqual(['1011 1106']);
  });

  test('stops 64 tokens before the end of the hold if no more is granted, with finish reason length, and charges what was delivered', async () => {
    rig.grants = [false];
    rig.provider.enqueue({ chunks: hundreds(40), hang: true });
    const events = await rig.run(held());
    const deltas = choicesOf(events);
    const bytes = deltas.reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0);
    // 960 tokens, and the rest of the read in which they were reached.
    expect(bytes).toBeGreaterThanOrEqual(960 * 3);
    expect(bytes).toBeLessThanOrEqual(960 * 3 + 2_048);
    expect(deltas.at(-1)?.finish_reason).toBe('length');
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'length', stoppedBy: 'cost_cap', source: 'ESTIMATED' });
    expect(Number(rig.ends[0]?.tokens.outputText)).toBeLessThanOrEqual(1_024);
    expect(rig.extended.length).toBeGreaterThan(1);
  });

  test('even the smallest hold yields some answer before it stops', async () => {
    rig.grants = [false];
    rig.provider.enqueue({ chunks: Array.from({ length: 100 }, () => text('abc ')), hang: true });
    const events = await rig.run(held({ heldOutputTokens: 64, heldTokens: '140' }));
    const deltas = choicesOf(events);
    expect(deltas.reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBeGreaterThanOrEqual(32 * 3);
    expect(deltas.at(-1)?.finish_reason).toBe('length');
    expect(Number(rig.ends[0]?.tokens.outputText)).toBeLessThanOrEqual(64);
  });

  test('our estimate is never above the hold, however long the last chunk is', async () => {
    rig.grants = [false];
    rig.provider.enqueue({ chunks: [...hundreds(9), text('incomprehensibilities '.repeat(300))], hang: true });
    const { end } = (await rig.run(held())).at(-1) ?? {};
    expect(end).toMatchObject({ stoppedBy: 'cost_cap', source: 'ESTIMATED', tokens: { outputText: 1_024 } });
  });

  test('nor is a prompt that is reported before the answer breaks off', async () => {
    const toldPrompt = (promptTokens: number): string => chunk([], { usage: { prompt_tokens: promptTokens, completion_tokens: 0 } });
    rig.provider.enqueue({ chunks: [toldPrompt(76), text('Hello wo')], cut: true }, { chunks: [toldPrompt(77), text('Hello wo')], cut: true });
    expect((await rig.run(held())).at(-1)?.end).toMatchObject({ tokens: { inputUncached: 76, outputText: 2 } });
    expect((await rig.run(held())).at(-1)?.end).toMatchObject({ tokens: { inputUncached: 10, outputText: 2 } });
  });

  const AWAY = new Fault('quota_unavailable', 'away');

  test.each([
    ['a stream', true],
    ['an answer that is gathered', false],
  ])('if quota stays away at the end of the hold of %s, it fails as our fault after five seconds, never as a cost cap', async (_name, clientStream) => {
    rig.use(rig.clock);
    rig.grants = [AWAY];
    rig.provider.enqueue({ chunks: hundreds(40), hang: true });
    const startMs = rig.clock.monotonicMs();
    let isOver = false;
    const running = rig.run(held({ clientStream, gather: !clientStream })).finally(() => (isOver = true));
    while (!isOver) {
      await rig.clock.advanceAsync(250);
      await oneTurn();
    }
    const { end } = (await running).at(-1) ?? {};
    expect(end).toMatchObject({ cut: { class: 'QUOTA_AWAY', retryable: false }, finishReason: 'error', stoppedBy: '', source: 'ESTIMATED' });
    expect(rig.ends[0]).toMatchObject({ failure: 'QUOTA_AWAY', finishReason: 'error' });
    expect(Number(end?.tokens?.outputText)).toBeLessThanOrEqual(1_024);
    expect(Number(end?.cut?.retryAfterMs)).toBeGreaterThanOrEqual(2_000);
    expect(rig.clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(5_000);
    // These ends do not count against the endpoint: otherwise five in a row would have opened its breaker.
    rig.provider.enqueue({ chunks: [text('a'), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
  });

  test('an answer waits for quota to come back, unnoticed by the client', async () => {
    rig.grants = [AWAY, AWAY, AWAY, AWAY, AWAY, AWAY, true];
    rig.provider.enqueue({ chunks: [[...hundreds(20), FINISH, chunk([], { usage: { ...USAGE, completion_tokens: 2_000 } }), sse('[DONE]')].join('')] });
    const events = await rig.run(held());
    expect(choicesOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBe(6_000);
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '', source: 'PROVIDER' });
  });

  test('if quota was away and then grants too little to go on, it is asked again', async () => {
    const most = text('abc '.repeat(202));
    rig.grants = [AWAY, AWAY, false, false, false, false, true];
    rig.provider.enqueue({ chunks: [[most, most, most, most, most, most, FINISH, chunk([], { usage: USAGE }), sse('[DONE]')].join('')] });
    expect((await rig.run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
  });

  test('waits for the answer to its request, however fast the provider is', async () => {
    let answer: (isGranted: boolean) => void = () => undefined;
    rig.grants = [new Promise((resolve) => (answer = resolve)), true];
    rig.provider.enqueue({ chunks: [[...hundreds(20), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')].join('')] });
    let given = 0;
    const done = rig.run(held(), (event) => {
      given += event.chunk?.choices?.length ?? 0;
    });
    await until(() => rig.extended.length > 0);
    await oneTurn();
    const before = given;
    expect(before).toBeLessThan(1_024 * 3 + 4_096);
    answer(true);
    const events = await done;
    expect(given).toBeGreaterThan(before);
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
  });

  test('a provider that goes on beyond max_tokens is stopped once the text cannot be within it, and at most what was held is charged', async () => {
    const whole = 1_100;
    rig.provider.enqueue({ chunks: Array.from({ length: 40 }, () => text('abc '.repeat(250))), hang: true });
    const events = await rig.run(held({ maxTokens: whole, wholeNanoUsd: '1090' }));
    const bytes = choicesOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0);
    expect(bytes).toBeGreaterThan(whole * 16);
    expect(bytes).toBeLessThanOrEqual(whole * 16 + 6_144);
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'length', source: 'ESTIMATED', tokens: { outputText: whole } });
  });

  test('if there is no room for a tranche it requests half, and more again once that was granted', async () => {
    rig.grants = [false, false, true];
    rig.provider.enqueue({ chunks: [...hundreds(20), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    await rig.run(held());
    expect(rig.extended.slice(0, 4)).toEqual(['3048 2124', '2024 1612', '1512 1356', '2536 1868']);
  });

  test('goes on when a refusal is followed by a grant', async () => {
    rig.grants = [false, true];
    rig.provider.enqueue({ chunks: [...hundreds(12), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    expect((await rig.run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
  });

  test('an answer that ends in the read that reaches the stop is not stopped', async () => {
    rig.grants = [false];
    rig.provider.enqueue({ chunks: [...hundreds(9), `${text('abc '.repeat(50))}${FINISH}${chunk([], { usage: USAGE })}${sse('[DONE]')}`] });
    expect((await rig.run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
  });

  test('a shortened answer that the provider ends for its length says that a cap shortened it', async () => {
    rig.provider.enqueue({ chunks: [text('abc'), chunk([{ index: 0, delta: {}, finish_reason: 'length' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
    expect((await rig.run(requestOf({ maxTokens: 70, shortened: true }))).at(-1)?.end).toMatchObject({ finishReason: 'length', stoppedBy: 'cost_cap' });
  });
});

describe('without a limit that watches the hold', () => {
  const FINISH = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  const unwatched = requestOf({ heldNanoUsd: '1000', unwatchedTokens: '1100' });

  test('the hold is journaled with its tokens, since a limit may have been set when quota’s store is lost', async () => {
    rig.provider.enqueue({ chunks: [text('a'), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
    await rig.run(unwatched);
    expect(rig.starts[0]?.held).toEqual({ amountNanoUsd: '1000', tokens: '1100' });
  });

  test('the hold bounds neither the answer nor a prompt that is reported before the answer breaks off', async () => {
    rig.provider.enqueue({ chunks: [chunk([], { usage: { prompt_tokens: 5_000, completion_tokens: 0 } }), text('abc '.repeat(1_200))], cut: true });
    expect((await rig.run(unwatched)).at(-1)?.end).toMatchObject({ tokens: { inputUncached: 5_000, outputText: 1_200 } });
    expect(rig.extended).toEqual([]);
  });
});
