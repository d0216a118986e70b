/** Attempts in a row: which one comes next, which outcomes workers are told, and what the client gets. */
import { describe, expect, test } from '@jest/globals';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { plannedAt, planWith } from '../testing/callers.js';
import { admissionOf, events, type Script } from '../testing/neighbours.js';
import { answersWith, breaks, diesWith, fails, inTurn, refusedBy, streamsWith } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import type { RetryBudget } from './retry-budget.js';

describe('attempts', () => {
  test('an answer is told as delivered, once', async () => {
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
  ])('after %s, kept plans with its endpoint are used again, or not', async (_what, script, doubted) => {
    const { neighbours, run } = story({ a: script });
    await run();
    expect(neighbours.doubted).toEqual(doubted);
  });

  test('at most three attempts are made, and then all discarded', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONNECT'), b: fails('PROVIDER_ERROR'), c: fails('EMPTY'), d: answersWith('never') });
    expect(await run()).toMatchObject({ result: 'refused' });
    expect(neighbours.outcomes).toEqual(['a#1 DISCARDED', 'b#2 DISCARDED', 'c#3 DISCARDED']);
    expect(answer.refusal).toMatchObject({ kind: 'attempts' });
    expect(neighbours.released).toEqual([]);
  });

  /** Fails on its first credential, and does `then` on the other. */
  const limited = (then: Script): Script => (call) => (call.request.retryOf?.length === 0 ? fails('RATE_LIMITED', { status: 429, otherCredential: true })(call) : then(call));

  test('an endpoint whose credential is rate-limited is tried with another credential before any other endpoint', async () => {
    const { neighbours, answer, run } = story({ a: limited(answersWith('hi')), b: answersWith('never') });
    await run();
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'a#2 DELIVERED']);
    expect(neighbours.calls.map(({ request }) => [request.endpointId, request.attempt, request.retryOf, request.heldNanoUsd])).toEqual([['a/m', 1, [], '1000000000'], ['a/m', 2, [1], '1000000000']]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'RATE_LIMITED'], ['a', undefined]]);
  });

  /** Loses a kept connection the first time, and does `then` after it. */
  const staleFirst = (then: Script): Script => (call) => (call.request.attempt === 1 ? fails('DISCONNECTED', { staleConnection: true })(call) : then(call));

  test('an endpoint whose kept connection was closed is tried on another before any other endpoint, and once', async () => {
    const { neighbours, answer, run } = story({ a: staleFirst(answersWith('hi')), b: answersWith('never') });
    await run();
    expect(answer.said).toEqual(['body 0:hi!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'a#2 DELIVERED']);
    const alone = story({ a: fails('DISCONNECTED', { staleConnection: true }) });
    await alone.run();
    expect(alone.neighbours.outcomes).toEqual(['a#1 DISCARDED', 'a#2 DISCARDED']);
  });

  test('this happens once, within three attempts and the retry budget', async () => {
    const always = fails('CREDENTIAL', { status: 401, otherCredential: true });
    const { neighbours, run } = story({ a: always, b: always, c: answersWith('never') });
    await run();
    expect(neighbours.outcomes).toEqual(['a#1 DISCARDED', 'a#2 DISCARDED', 'b#3 DISCARDED']);
    const alone = story({ a: always });
    await alone.run();
    // As in a plan without fallbacks: another credential is not another provider.
    expect(alone.neighbours.outcomes).toEqual(['a#1 DISCARDED', 'a#2 DISCARDED']);
    expect(alone.neighbours.calls.map(({ request }) => request.endpointId)).toEqual(['a/m', 'a/m']);
    const spent = story({ a: limited(answersWith('never')) });
    spent.neighbours.retries = { noteRequest: () => undefined, hasRoom: () => false, take: () => false };
    await spent.run();
    expect(spent.neighbours.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test('an attempt that reached no provider does not make the next one count as a retry', async () => {
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

  test('after a prompt that is too long the next attempt does not need the retry budget, but one after its failure does', async () => {
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

  test('if an endpoint with more room for the prompt is down, the error tells for how long', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONTEXT_LENGTH', { status: 400 }) });
    neighbours.plan = planWith([plannedAt('a')], { retryAfterMs: 6_500 });
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'attempts', retryAfterMs: 6_500, attempts: [{ provider: 'a' }] });
  });

  test('if all planned attempts were made, the error does not say that one was left out', async () => {
    const { neighbours, answer, run } = story({ a: fails('PROVIDER_ERROR') });
    neighbours.retries = spentFor(() => true);
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'attempts', isCutShort: false });
  });

  test('a retry counts against the budget of the owner of its credential', async () => {
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

  test('a client is told that nothing is charged once that is written down, or after two seconds', async () => {
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

  test('a client does not wait if no worker has anything to write down', async () => {
    const { neighbours, answer, run } = story({ a: fails('NO_CREDENTIAL', { status: 0 }) });
    neighbours.heard = new Promise(() => undefined);
    await run();
    expect(answer.said).toEqual(['refuse attempts']);
  });

  test('a failure that no other endpoint can avoid ends the plan', async () => {
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
  ])('when %s, the hold is released by the service responsible', async (_name, scripts, released) => {
    const { neighbours, run } = story(scripts);
    await run();
    expect(neighbours.released.length).toBe(released);
  });

  describe('an attempt that is lost together with its worker replica', () => {
    const lost = { name: 'replica 1' };
    const none: RetryBudget = { noteRequest: () => undefined, hasRoom: () => false, take: () => false };

    test.each<[string, boolean, Script, readonly string[]]>([
      ['a whole answer', false, answersWith('hi'), ['body 0:hi!stop']],
      ['a stream that had sent its role', true, streamsWith('hi'), ['chunk 0:', 'chunk 0:hi', 'finish 0:!stop']],
    ])('before content is repeated at another replica, if the plan has no other endpoint, and one attempt is charged: %s', async (_name, stream, answers, said) => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.started(), events.head(), events.role()), answers) }, { request: { stream } });
      expect(await run()).toMatchObject({ result: 'answered' });
      expect(answer.said).toEqual(said);
      expect(neighbours.calls.map(({ request, besides }) => [request.endpointId, request.attempt, request.retryOf, request.heldNanoUsd, besides])).toEqual([['a/m', 1, [], '1000000000', undefined], ['a/m', 2, [1], '1000000000', lost]]);
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 SUPERSEDED', 'a#2 DELIVERED'], []]);
      expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'DISCONNECTED'], ['a', undefined]]);
    });

    test('after content is not repeated: the client gets an error', async () => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.text('hi')), streamsWith('never')) }, { request: { stream: true } });
      expect(await run()).toMatchObject({ result: 'cut' });
      expect([answer.said, neighbours.calls.length, neighbours.outcomes]).toEqual([['chunk 0:hi', 'cut DISCONNECTED'], 1, ['a#1 DELIVERED']]);
    });

    test('is repeated after the other endpoints of the plan, whose workers are not known to fail', async () => {
      const well = story({ a: inTurn(diesWith(lost), answersWith('never')), b: answersWith('hi') });
      await well.run();
      expect(well.neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
      const ill = story({ a: inTurn(diesWith(lost), answersWith('hi')), b: fails('PROVIDER_ERROR') });
      await ill.run();
      expect(ill.neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 SUPERSEDED', 'a#3 DELIVERED']);
      expect(ill.neighbours.calls.map(({ request, besides }) => [request.retryOf, besides])).toEqual([[[], undefined], [[1], undefined], [[1, 2], lost]]);
    });

    test('is repeated once for each endpoint, within three attempts and the retry budget', async () => {
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
      ['overloaded', 'which is overloaded'],
    ])('or refused by the replica (%s), %s, is repeated at another one without counting as a retry, since it reached no provider', async (code) => {
      const { neighbours, answer, run } = story({ a: inTurn(refusedBy(lost, code), answersWith('hi')) });
      neighbours.retries = none;
      expect(await run()).toMatchObject({ result: 'answered' });
      expect(answer.said).toEqual(['body 0:hi!stop']);
      expect(neighbours.calls.map(({ request, besides }) => [request.endpointId, request.attempt, besides])).toEqual([['a/m', 1, undefined], ['a/m', 2, lost]]);
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 SUPERSEDED', 'a#2 DELIVERED'], []]);
    });

    test('or refused, is not repeated if there is no other replica, or if none could serve it', async () => {
      const alone = story({ a: inTurn(refusedBy(lost, 'store_unavailable', false), answersWith('never')) });
      expect(await alone.run()).toMatchObject({ result: 'refused' });
      const unheld = story({ a: inTurn(refusedBy(lost, 'quota_unavailable'), answersWith('never')) });
      expect(await unheld.run()).toMatchObject({ result: 'refused' });
      expect([alone, unheld].map(({ neighbours }) => [neighbours.calls.length, neighbours.released.length])).toEqual([[1, 1], [1, 1]]);
    });

    test('is discarded by its worker, which ends the hold, if no other replica can be reached', async () => {
      const { neighbours, answer, run } = story({ a: inTurn(diesWith(lost, events.started()), breaks('peer_unavailable')) });
      expect(await run()).toMatchObject({ result: 'refused' });
      expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ failed: { class: 'DISCONNECTED' } }, { failed: { class: 'CONNECT' } }] });
      expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 DISCARDED', 'a#2 DISCARDED'], []]);
    });

    test.each<[string, Script]>([
      ['its provider, which broke the connection', (call) => { call.replica = lost; fails('DISCONNECTED', { status: 0 })(call); }],
      ['its deadline', (call) => { call.replica = lost; call.listener.onEnd(new Fault('deadline_exceeded', 'test')); }],
      ['a worker that cannot be reached at all', breaks('peer_unavailable')],
      ['a worker that ended the call without a result', (call) => { call.replica = lost; call.play(); }],
    ])('differs from one that failed by %s, which is not repeated', async (_name, script) => {
      const { neighbours, run } = story({ a: inTurn(script, answersWith('never')) });
      expect(await run()).toMatchObject({ result: 'refused' });
      expect(neighbours.calls.length).toBe(1);
    });

    test('is not repeated for a client that has left', async () => {
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
  ])('an attempt whose link broke is discarded when all later ones %s: its worker ends the hold', async (_name, later) => {
    const { neighbours, run } = story({ a: breaks('link_lost'), b: later });
    expect(await run()).toMatchObject({ result: 'refused' });
    expect(neighbours.outcomes.at(0)).toBe('a#1 DISCARDED');
    expect(neighbours.released).toEqual([]);
  });

  test('an attempt supersedes no other if its client left before it was known to be journaled', async () => {
    const { neighbours, answer, run } = story({ a: fails('CONNECT'), b: () => undefined }, { request: { stream: true } });
    const done = run();
    await neighbours.clock.settle();
    answer.leave();
    await done;
    expect(neighbours.outcomes).toEqual(['b#2 DELIVERED']);
  });

  test('a stream fails over while no content was sent, and sends its role only once', async () => {
    const { neighbours, answer, run } = story({ a: (call) => call.play(events.head(), events.role(), events.failed('PROVIDER_ERROR')), b: streamsWith('hi') }, { request: { stream: true } });
    await run();
    expect(answer.said).toEqual(['chunk 0:', 'chunk 0:hi', 'finish 0:!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('a stream that breaks after content is cut and charged, and not retried', async () => {
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
    ['of a whole answer hung up by itself', false, true, 'client_left', ['a#1 DELIVERED once ended']],
    ['of a whole answer was cut off by us', false, false, undefined, ['a#1 DISCARDED']],
  ] as const)('a worker is told whether its client %s', async (_case, stream, byItself, why, outcomes) => {
    const { neighbours, answer, run } = story({ a: () => undefined }, { request: { stream } });
    const done = run();
    await neighbours.clock.settle();
    answer.leave(byItself);
    expect(await done).toMatchObject({ result: 'gone' });
    expect(neighbours.calls.map(({ isCancelled, cancelledFor }) => [isCancelled, cancelledFor])).toEqual([[true, why]]);
    expect(neighbours.outcomes).toEqual(outcomes);
  });

  test('the worker of an answer in reserve is told that edge is alive while another attempt runs, and then its outcome', async () => {
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

  describe('a client that asked for JSON and leaves while an invalid answer is in reserve', () => {
    const json = { request: { needs: { responseFormat: 'json_object' } } };
    const noJson = answersWith('no JSON');

    test('pays for the running attempt only', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: (call) => call.listener.onEvent(events.head()) }, json);
      const running = run();
      await neighbours.clock.settle();
      answer.leave();
      expect(await running).toMatchObject({ result: 'gone' });
      expect(neighbours.outcomes).toEqual(['b#2 DELIVERED once ended', 'a#1 SUPERSEDED']);
      await neighbours.clock.advanceAsync(60_000);
      expect(neighbours.tended).toEqual(['a#1']);
    });

    test('leaves the decision to the workers if it is unknown whether another attempt began', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: () => undefined }, json);
      const running = run();
      await neighbours.clock.settle();
      answer.leave();
      await running;
      expect(neighbours.outcomes).toEqual(['b#2 DELIVERED once ended']);
    });

    test('pays for the answer in reserve if no other attempt began', async () => {
      const { neighbours, answer, run } = story({ a: (call) => { noJson(call); answer.leave(); }, b: noJson }, json);
      expect(await run()).toMatchObject({ result: 'gone' });
      expect([neighbours.calls.length, neighbours.outcomes, neighbours.released]).toEqual([1, ['a#1 DELIVERED'], []]);
    });

    test('pays for the answer in reserve if the other attempt has just failed', async () => {
      const { neighbours, answer, run } = story({ a: noJson, b: (call) => { fails('TIMEOUT_IDLE')(call); answer.leave(); } }, json);
      expect(await run()).toMatchObject({ result: 'gone' });
      expect([answer.said, neighbours.outcomes]).toEqual([[], ['a#1 DELIVERED', 'b#2 SUPERSEDED']]);
    });
  });

  test('an answer in reserve is given once its workers have written the outcome down, at the latest after two seconds', async () => {
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

  test('it is also given when the drain is over, since its workers were told that it is delivered', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: breaks('link_lost') }, { request: { needs: { responseFormat: 'json_object' } } });
    neighbours.heard = new Promise(() => undefined);
    const running = run();
    await neighbours.clock.settle();
    expect([neighbours.outcomes, answer.said]).toEqual([['a#1 DELIVERED', 'b#2 SUPERSEDED'], []]);
    expect(answer.stop()).toBe(true);
    expect((await running).result).toBe('answered');
    expect(answer.said).toEqual(['body 0:no JSON!stop']);
  });

  test('a client that leaves between two attempts is charged nothing', async () => {
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

describe('the draw of a request', () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '500', tokens: '20' };
  const served = (told: ReturnType<typeof story>): ReturnType<typeof story> => {
    told.neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500', heldTokens: '20', draw })];
    return told;
  };

  test('is sent with each of its attempts', async () => {
    const { neighbours, run } = served(story({ a: fails('PROVIDER_ERROR'), b: answersWith('hi') }));
    await run();
    expect(neighbours.calls.map(({ request }) => request.draw)).toEqual([draw, draw]);
    expect(neighbours.released).toEqual([]);
  });

  test('is given back if no worker took the request, and if no attempt is left in its plan', async () => {
    const nowhere = served(story({ a: undefined }));
    await nowhere.run();
    const unplanned = served(story({}));
    await unplanned.run();
    expect([nowhere.neighbours.released, unplanned.neighbours.released]).toEqual([['chatcmpl-0123456789 adv_1'], ['chatcmpl-0123456789 adv_1']]);
  });
});
