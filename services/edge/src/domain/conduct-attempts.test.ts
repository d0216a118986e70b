/** One attempt after another: which comes next, what its worker is told of its outcome, and what the client hears. */
import { describe, expect, test } from '@jest/globals';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { plannedAt, planWith } from '../testing/callers.js';
import { admissionOf, events, type Script } from '../testing/neighbours.js';
import { answersWith, breaks, diesWith, fails, inTurn, refusedBy, streamsWith } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import type { RetryBudget } from './retry-budget.js';

describe('attempts', () => {
  test('an answer is told delivered, once', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('hi') });
    expect(await run()).toMatchObject({ result: 'answered' });
    expect([answer.said, neighbours.outcomes, neighbours.released]).toEqual([['body 0:hi!stop'], ['a#1 DELIVERED'], []]);
  });

  test('a failed attempt is superseded by the one that answers', async () => {
    const { neighbours, answer, run } = story({ a: fails('PROVIDER_ERROR'), b: answersWith('hi') });
    await run();
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
    expect(neighbours.calls.map(({ request }) => [request.attempt, request.retryOf])).toEqual([[1, []], [2, [1]]]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'PROVIDER_ERROR'], ['b', undefined]]);
  });

  test.each([
    ['an answer', answersWith('hi'), []],
    ['a refusal', fails('RATE_LIMITED', { status: 429 }), ['a/m']],
    ['a fault of ours', breaks('link_lost'), ['a/m']],
  ])('after %s plans of before that name its endpoint are used again, or not', async (_what, script, doubted) => {
    const { neighbours, run } = story({ a: script });
    await run();
    expect(neighbours.doubted).toEqual(doubted);
  });

  test('tries three at most, then discards them all', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONNECT'), b: fails('PROVIDER_ERROR'), c: fails('EMPTY'), d: answersWith('never') });
    expect(await run()).toMatchObject({ result: 'refused' });
    expect(neighbours.outcomes).toEqual(['a#1 DISCARDED', 'b#2 DISCARDED', 'c#3 DISCARDED']);
    expect(answer.refusal).toMatchObject({ kind: 'attempts' });
    expect(neighbours.released).toEqual([]);
  });

  /** Fails on its first credential, and does `then` on the other. */
  const limited = (then: Script): Script => (call) => (call.request.retryOf?.length === 0 ? fails('RATE_LIMITED', { status: 429, otherCredential: true })(call) : then(call));

  test('an endpoint whose credential is limited is asked again with the other, before any other endpoint', async () => {
    const { neighbours, answer, run } = story({ a: limited(answersWith('hi')), b: answersWith('never') });
    await run();
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'a#2 DELIVERED']);
    expect(neighbours.calls.map(({ request }) => [request.endpointId, request.attempt, request.retryOf, request.heldNanoUsd])).toEqual([['a/m', 1, [], '1000000000'], ['a/m', 2, [1], '1000000000']]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'RATE_LIMITED'], ['a', undefined]]);
  });

  test('once, and within three attempts and the budget of retries', async () => {
    const always = fails('CREDENTIAL', { status: 401, otherCredential: true });
    const { neighbours, run } = story({ a: always, b: always, c: answersWith('never') });
    await run();
    expect(neighbours.outcomes).toEqual(['a#1 DISCARDED', 'a#2 DISCARDED', 'b#3 DISCARDED']);
    const alone = story({ a: always });
    await alone.run();
    // As of a plan without fallbacks: the other credential is no other provider.
    expect(alone.neighbours.outcomes).toEqual(['a#1 DISCARDED', 'a#2 DISCARDED']);
    expect(alone.neighbours.calls.map(({ request }) => request.endpointId)).toEqual(['a/m', 'a/m']);
    const spent = story({ a: limited(answersWith('never')) });
    spent.neighbours.retries = { noteRequest: () => undefined, hasRoom: () => false, take: () => false };
    await spent.run();
    expect(spent.neighbours.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test('what reached no provider costs no retry: only what follows a call does', async () => {
    const unsent = fails('NO_CREDENTIAL', { status: 0 });
    const once = (): RetryBudget => {
      let left = 1;
      return { noteRequest: () => undefined, hasRoom: () => left > 0, take: () => left-- > 0 };
    };
    const well = story({ a: unsent, b: fails('RATE_LIMITED', { status: 0 }), c: answersWith('hi') });
    well.neighbours.retries = { ...once(), take: () => false };
    await well.run();
    expect(well.answer.said).toEqual(['body 0:hi!stop']);
    const between = story({ a: fails('PROVIDER_ERROR'), b: unsent, c: answersWith('hi') });
    between.neighbours.retries = once();
    await between.run();
    expect(between.answer.said).toEqual(['body 0:hi!stop']);
    const spent = story({ a: unsent, b: fails('PROVIDER_ERROR'), c: answersWith('never') });
    spent.neighbours.retries = { ...once(), take: () => false };
    await spent.run();
    expect(spent.answer.said).toEqual(['refuse attempts']);
  });

  const spentFor = (isSpent: (accountId: string, isOwn: boolean) => boolean): RetryBudget => ({ noteRequest: () => undefined, hasRoom: (...of) => !isSpent(...of), take: (...of) => !isSpent(...of) });

  test('after a prompt that is too long the next is asked whatever is left of the budget; what fails then costs a retry as ever', async () => {
    const tooLong = fails('CONTEXT_LENGTH', { status: 400 });
    const { neighbours, answer, run } = story({ a: tooLong, b: tooLong, c: answersWith('hi') });
    neighbours.retries = spentFor(() => true);
    expect(await run()).toMatchObject({ result: 'answered' });
    expect(answer.said).toEqual(['body 0:hi!stop']);
    const failing = story({ a: tooLong, b: fails('PROVIDER_ERROR'), c: answersWith('never') });
    failing.neighbours.retries = spentFor(() => true);
    await failing.run();
    expect([failing.answer.refusal, failing.neighbours.calls.length]).toMatchObject([{ kind: 'attempts', isCutShort: true }, 2]);
  });

  test('a request whose attempts were all made is not told that one was left out', async () => {
    const { neighbours, answer, run } = story({ a: fails('PROVIDER_ERROR') });
    neighbours.retries = spentFor(() => true);
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'attempts', isCutShort: false });
  });

  test('a retry is taken from the pot of whoever owns the credential that it is made with', async () => {
    const { neighbours, answer, run } = story({ a: fails('PROVIDER_ERROR'), b: answersWith('hi') });
    neighbours.plan = planWith([plannedAt('a', { byok: true }), plannedAt('b')]);
    const asked: string[] = [];
    const noted: string[] = [];
    neighbours.retries = { noteRequest: (accountId, isOwn) => void noted.push(`${accountId} ${String(isOwn)}`), hasRoom: () => true, take: (accountId, isOwn) => asked.push(`${accountId} ${String(isOwn)}`) > 0 };
    await run();
    neighbours.plan = planWith([plannedAt('a'), plannedAt('b', { byok: true })]);
    await run();
    expect([answer.said.length, noted, asked]).toEqual([2, ['acct_1 true', 'acct_1 false'], ['acct_1 false', 'acct_1 true']]);
  });

  test('a client hears that it got nothing once that is written down, or after two seconds', async () => {
    const slow = story({ a: fails('GARBAGE') });
    let write = (): void => undefined;
    slow.neighbours.heard = new Promise((resolve) => (write = resolve));
    const refused = slow.run();
    await slow.neighbours.clock.advanceAsync(1_999);
    expect([slow.neighbours.outcomes, slow.answer.said]).toEqual([['a#1 DISCARDED'], []]);
    write();
    expect(await refused).toMatchObject({ result: 'refused' });
    expect(slow.answer.said).toEqual(['refuse attempts']);

    const away = story({ a: breaks('link_lost') });
    away.neighbours.heard = new Promise(() => undefined);
    const late = away.run();
    await away.neighbours.clock.advanceAsync(2_000);
    expect(await late).toMatchObject({ result: 'refused' });
  });

  test('a client is not kept waiting for what nobody has written down', async () => {
    const { neighbours, answer, run } = story({ a: fails('NO_CREDENTIAL', { status: 0 }) });
    neighbours.heard = new Promise(() => undefined);
    await run();
    expect(answer.said).toEqual(['refuse attempts']);
  });

  test('a failure that no other endpoint can mend ends the plan', async () => {
    const { neighbours, run } = story({ a: fails('BAD_REQUEST', { retryable: false, status: 400 }), b: answersWith('never') });
    await run();
    expect(neighbours.calls.length).toBe(1);
    expect(neighbours.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test.each<[string, Record<string, Script | undefined>, number]>([
    ['no provider has a worker', { a: undefined, b: undefined }, 1],
    ['every credential is benched', { a: fails('NO_CREDENTIAL', { status: 0 }) }, 1],
    ['every credential rests', { a: fails('RATE_LIMITED', { status: 0 }) }, 1],
    ['no worker could be reached', { a: breaks('peer_unavailable'), b: undefined }, 1],
    ['one provider answered with an error', { a: fails('NO_CREDENTIAL', { status: 0 }), b: fails('PROVIDER_ERROR') }, 0],
    ['the link broke after sending', { a: breaks('link_lost') }, 0],
  ])('when %s, the hold is released by whoever must', async (_name, scripts, released) => {
    const { neighbours, run } = story(scripts);
    await run();
    expect(neighbours.released.length).toBe(released);
  });

  describe('an attempt that is lost with its replica of a worker', () => {
    const lost = { name: 'replica 1' };
    const none: RetryBudget = { noteRequest: () => undefined, hasRoom: () => false, take: () => false };

    test.each<[string, boolean, Script, readonly string[]]>([
      ['a whole answer', false, answersWith('hi'), ['body 0:hi!stop']],
      ['a stream, which had opened', true, streamsWith('hi'), ['chunk 0:', 'chunk 0:hi', 'finish 0:!stop']],
    ])('before a word is made at another, where the plan has no other endpoint, and one is paid: %s', async (_name, stream, answers, said) => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.started(), events.head(), events.role()), answers) }, { request: { stream } });
      expect(await run()).toMatchObject({ result: 'answered' });
      expect(answer.said).toEqual(said);
      expect(neighbours.calls.map(({ request, besides }) => [request.endpointId, request.attempt, request.retryOf, request.heldNanoUsd, besides])).toEqual([['a/m', 1, [], '1000000000', undefined], ['a/m', 2, [1], '1000000000', lost]]);
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 SUPERSEDED', 'a#2 DELIVERED'], []]);
      expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'DISCONNECTED'], ['a', undefined]]);
    });

    test('after a word is not: its client has been told', async () => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.text('hi')), streamsWith('never')) }, { request: { stream: true } });
      expect(await run()).toMatchObject({ result: 'cut' });
      expect([answer.said, neighbours.calls.length, neighbours.outcomes]).toEqual([['chunk 0:hi', 'cut DISCONNECTED'], 1, ['a#1 DELIVERED']]);
    });

    test('is made there behind the other endpoints of its plan, which are known to stand', async () => {
      const well = story({ a: inTurn(diesWith(lost), answersWith('never')), b: answersWith('hi') });
      await well.run();
      expect(well.neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
      const ill = story({ a: inTurn(diesWith(lost), answersWith('hi')), b: fails('PROVIDER_ERROR') });
      await ill.run();
      expect(ill.neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 SUPERSEDED', 'a#3 DELIVERED']);
      expect(ill.neighbours.calls.map(({ request, besides }) => [request.retryOf, besides])).toEqual([[[], undefined], [[1], undefined], [[1, 2], lost]]);
    });

    test('is made there once for each endpoint, within three attempts and the budget of retries', async () => {
      const alone = story({ a: diesWith(lost) });
      expect(await alone.run()).toMatchObject({ result: 'refused' });
      expect([alone.neighbours.outcomes, alone.answer.said, alone.neighbours.released]).toEqual([['a#1 DISCARDED', 'a#2 DISCARDED'], ['refuse attempts'], []]);
      const two = story({ a: diesWith(lost), b: diesWith(lost) });
      await two.run();
      expect(two.neighbours.calls.map(({ provider }) => provider)).toEqual(['a', 'b', 'a']);
      const spent = story({ a: inTurn(diesWith(lost), answersWith('never')) });
      spent.neighbours.retries = none;
      await spent.run();
      expect(spent.neighbours.outcomes).toEqual(['a#1 DISCARDED']);
    });

    test.each<[FaultCode, string]>([
      ['store_unavailable', 'which cannot write its log'],
      ['billing_unavailable', 'which billing does not know yet'],
      ['overloaded', 'which has too much in work'],
    ])('or refused by it (%s), %s, is made at another: no provider has met it, and no retry is spent', async (code) => {
      const { neighbours, answer, run } = story({ a: inTurn(refusedBy(lost, code), answersWith('hi')) });
      neighbours.retries = none;
      expect(await run()).toMatchObject({ result: 'answered' });
      expect(answer.said).toEqual(['body 0:hi!stop']);
      expect(neighbours.calls.map(({ request, besides }) => [request.endpointId, request.attempt, besides])).toEqual([['a/m', 1, undefined], ['a/m', 2, lost]]);
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 SUPERSEDED', 'a#2 DELIVERED'], []]);
    });

    test('or refused, is not made again where there is no other, or where none would do better', async () => {
      const alone = story({ a: inTurn(refusedBy(lost, 'store_unavailable', false), answersWith('never')) });
      expect(await alone.run()).toMatchObject({ result: 'refused' });
      const unheld = story({ a: inTurn(refusedBy(lost, 'quota_unavailable'), answersWith('never')) });
      expect(await unheld.run()).toMatchObject({ result: 'refused' });
      expect([alone, unheld].map(({ neighbours }) => [neighbours.calls.length, neighbours.released.length])).toEqual([[1, 1], [1, 1]]);
    });

    test('is discarded by its worker, which ends the hold, where no other replica can be reached', async () => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.started()), breaks('peer_unavailable')) });
      expect(await run()).toMatchObject({ result: 'refused' });
      expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ failed: { class: 'DISCONNECTED' } }, { failed: { class: 'CONNECT' } }] });
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 DISCARDED', 'a#2 DISCARDED'], []]);
    });

    test.each<[string, Script]>([
      ['its provider, which broke the connection', (call) => { call.replica = lost; fails('DISCONNECTED', { status: 0 })(call); }],
      ['its deadline', (call) => { call.replica = lost; call.listener.onEnd(new Fault('deadline_exceeded', 'test')); }],
      ['a worker that cannot be reached at all', breaks('peer_unavailable')],
      ['a worker that ended it without a word', (call) => { call.replica = lost; call.play(); }],
    ])('is told from one that failed by %s, which is not made again', async (_name, script) => {
      const { neighbours, run } = story({ a: inTurn(script, answersWith('never')) });
      expect(await run()).toMatchObject({ result: 'refused' });
      expect(neighbours.calls.length).toBe(1);
    });

    test('is not made again for a client that has left', async () => {
      const { neighbours, answer, run } = story({ a: (call) => { diesWith(lost)(call); answer.leave(); } });
      expect(await run()).toMatchObject({ result: 'gone' });
      expect([neighbours.calls.length, neighbours.outcomes]).toEqual([1, ['a#1 DISCARDED']]);
    });
  });

  test.each([
    ['is journaled', events.started()],
    ['answers', events.head()],
  ])('an attempt is superseded as soon as a later one %s, and not before', async (_name, first) => {
    const { neighbours, answer, run } = story({ a: breaks('link_lost'), b: () => undefined }, { request: { stream: true } });
    const done = run();
    await neighbours.clock.settle();
    expect(neighbours.outcomes).toEqual([]);
    neighbours.calls[1]?.listener.onEvent(first);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED']);
    neighbours.calls[1]?.play(events.text('x'), events.finish(), events.end());
    await done;
    expect(answer.said).toEqual(['chunk 0:x', 'finish 0:!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test.each<[string, Script | undefined]>([
    ['finds no credential', fails('NO_CREDENTIAL', { status: 0 })],
    ['has no worker', undefined],
  ])('an attempt whose link broke is discarded when all that follows %s: its worker ends the hold', async (_name, later) => {
    const { neighbours, run } = story({ a: breaks('link_lost'), b: later });
    expect(await run()).toMatchObject({ result: 'refused' });
    expect(neighbours.outcomes.at(0)).toBe('a#1 DISCARDED');
    expect(neighbours.released).toEqual([]);
  });

  test('of an attempt whose client left before it was known to be journaled, nobody says that it superseded another', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONNECT'), b: () => undefined }, { request: { stream: true } });
    const done = run();
    await neighbours.clock.settle();
    answer.leave();
    await done;
    expect(neighbours.outcomes).toEqual(['b#2 DELIVERED']);
  });

  test('a stream fails over while no content was sent, and shows one opening only', async () => {
    const { neighbours, answer, run } = story({ a: (call) => call.play(events.head(), events.role(), events.failed('PROVIDER_ERROR')), b: streamsWith('hi') }, { request: { stream: true } });
    await run();
    expect(answer.said).toEqual(['chunk 0:', 'chunk 0:hi', 'finish 0:!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('a stream that breaks after content is cut and charged, never tried again', async () => {
    const { neighbours, answer, run } = story({ a: (call) => call.play(events.text('hi'), events.failed('DISCONNECTED')), b: streamsWith('never') }, { request: { stream: true } });
    expect(await run()).toMatchObject({ result: 'cut' });
    expect(answer.said).toEqual(['chunk 0:hi', 'cut DISCONNECTED']);
    expect(neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('a client that leaves cancels the attempt, which counts as delivered', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONNECT'), b: (call) => call.listener.onEvent(events.text('hi')) }, { request: { stream: true } });
    const done = run();
    await neighbours.clock.settle();
    answer.leave();
    expect(await done).toMatchObject({ result: 'gone' });
    expect(neighbours.calls[1]?.isCancelled).toBe(true);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });

  test.each([
    ['of a stream hung up by itself', true, true, 'client_left', ['a#1 DELIVERED']],
    ['of a stream was cut off by us', true, false, undefined, ['a#1 DISCARDED']],
    ['of a whole answer hung up by itself', false, true, 'client_left', ['a#1 DELIVERED']],
    ['of a whole answer was cut off by us', false, false, undefined, ['a#1 DISCARDED']],
  ] as const)('a worker hears whether its client %s', async (_case, stream, byItself, why, outcomes) => {
    const { neighbours, answer, run } = story({ a: () => undefined }, { request: { stream } });
    const done = run();
    await neighbours.clock.settle();
    answer.leave(byItself);
    expect(await done).toMatchObject({ result: 'gone' });
    expect(neighbours.calls.map(({ isCancelled, cancelledFor }) => [isCancelled, cancelledFor])).toEqual([[true, why]]);
    expect(neighbours.outcomes).toEqual(outcomes);
  });

  test('the worker of an answer kept in reserve hears that edge lives while another is tried, and is told what became of it', async () => {
    let fail: () => void = () => undefined;
    const stalls: Script = (call) => void (fail = () => fails('TIMEOUT_IDLE')(call));
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: stalls }, { request: { needs: { responseFormat: 'json_object' } } });
    const running = run();
    await neighbours.clock.advanceAsync(25_000);
    expect(neighbours.tended).toEqual(['a#1', 'a#1', 'a#1']);
    fail();
    expect((await running).result).toBe('answered');
    expect(answer.said).toEqual(['body 0:no JSON!stop']);
    await neighbours.clock.advanceAsync(60_000);
    expect([neighbours.tended.length, neighbours.outcomes]).toEqual([3, ['a#1 DELIVERED', 'b#2 SUPERSEDED']]);
  });

  describe('a client that asked for JSON and leaves while an answer that is none is kept in reserve', () => {
    const json = { request: { needs: { responseFormat: 'json_object' } } };
    const noJson = answersWith('no JSON');

    test('pays the one that was being tried, not both', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: (call) => call.listener.onEvent(events.head()) }, json);
      const running = run();
      await neighbours.clock.settle();
      answer.leave();
      expect(await running).toMatchObject({ result: 'gone' });
      expect(neighbours.outcomes).toEqual(['b#2 DELIVERED', 'a#1 SUPERSEDED']);
      await neighbours.clock.advanceAsync(60_000);
      expect(neighbours.tended).toEqual(['a#1']);
    });

    test('leaves it to the workers where nobody knows whether another was begun', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: () => undefined }, json);
      const running = run();
      await neighbours.clock.settle();
      answer.leave();
      await running;
      expect(neighbours.outcomes).toEqual(['b#2 DELIVERED']);
    });

    test('pays it where no other was begun', async () => {
      const { neighbours, answer, run } = story({ a: (call) => { noJson(call); answer.leave(); }, b: noJson }, json);
      expect(await run()).toMatchObject({ result: 'gone' });
      expect([neighbours.calls.length, neighbours.outcomes, neighbours.released]).toEqual([1, ['a#1 DELIVERED'], []]);
    });

    test('pays it where the other has just failed', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: (call) => { fails('TIMEOUT_IDLE')(call); answer.leave(); } }, json);
      expect(await run()).toMatchObject({ result: 'gone' });
      expect([answer.said, neighbours.outcomes]).toEqual([[], ['a#1 DELIVERED', 'b#2 SUPERSEDED']]);
    });
  });

  test('an answer kept in reserve is given once workers have it written down that it counts, and two seconds later at most', async () => {
    for (const waitMs of [1_900, 2_000]) {
      const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: breaks('link_lost') }, { request: { needs: { responseFormat: 'json_object' } } });
      let hear: () => void = () => undefined;
      neighbours.heard = new Promise((resolve) => (hear = resolve));
      const running = run();
      await neighbours.clock.advanceAsync(waitMs);
      expect([neighbours.outcomes, answer.said.length]).toEqual([['a#1 DELIVERED', 'b#2 SUPERSEDED'], waitMs < 2_000 ? 0 : 1]);
      hear();
      expect((await running).result).toBe('answered');
      expect(answer.said).toEqual(['body 0:no JSON!stop']);
    }
  });

  test('nor does it wait when the drain is over: told as delivered, it is given, and its client not told that it costs nothing', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: breaks('link_lost') }, { request: { needs: { responseFormat: 'json_object' } } });
    neighbours.heard = new Promise(() => undefined);
    const running = run();
    await neighbours.clock.settle();
    expect([neighbours.outcomes, answer.said]).toEqual([['a#1 DELIVERED', 'b#2 SUPERSEDED'], []]);
    expect(answer.stop()).toBe(true);
    expect((await running).result).toBe('answered');
    expect(answer.said).toEqual(['body 0:no JSON!stop']);
  });

  test('a client gone between two attempts is charged nothing', async () => {
    const { neighbours, answer, run } = story({
      a: (call) => {
        call.play(events.failed('CONNECT'));
        answer.leave();
      },
      b: answersWith('never'),
    });
    expect(await run()).toMatchObject({ result: 'gone' });
    expect([neighbours.calls.length, neighbours.outcomes]).toEqual([1, ['a#1 DISCARDED']]);
  });
});

describe('what a request was served with out of an advance', () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '500', tokens: '20' };
  const served = (told: ReturnType<typeof story>): ReturnType<typeof story> => {
    told.neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500', heldTokens: '20', draw })];
    return told;
  };

  test('goes with each of its attempts', async () => {
    const { neighbours, run } = served(story({ a: fails('PROVIDER_ERROR'), b: answersWith('hi') }));
    await run();
    expect(neighbours.calls.map(({ request }) => request.draw)).toEqual([draw, draw]);
    expect(neighbours.released).toEqual([]);
  });

  test('goes back with a request that no worker had, and with one that no plan is left for', async () => {
    const nowhere = served(story({ a: undefined }));
    await nowhere.run();
    const unplanned = served(story({}));
    await unplanned.run();
    expect([nowhere.neighbours.released, unplanned.neighbours.released]).toEqual([['chatcmpl-0123456789 adv_1'], ['chatcmpl-0123456789 adv_1']]);
  });
});
