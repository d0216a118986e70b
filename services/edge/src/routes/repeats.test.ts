import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { randomBytes } from '@signalbox/runtime/random';
import { oneTurn, until } from '@signalbox/testkit/until';
import { LOST_MS, SETTLED_MS } from '../domain/repeats.js';
import { accountWith, keyWith, plannedAt, planWith } from '../testing/callers.js';
import { LEASE_MS } from '../testing/claims.js';
import { hello, startDoor, type Door } from '../testing/door.js';
import { events, type PlayedCall, type Script } from '../testing/neighbours.js';
import { answersWith, fails, streamsWith } from '../testing/scripts.js';

const answers = answersWith('ök');
const streams = streamsWith('ö', 'k');

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

const keeping = (storeAnswers = true, policyStoreAnswers?: boolean): void =>
  door.accounts.add(door.key, { key: keyWith(), account: accountWith({ storeAnswers, ...(policyStoreAnswers === undefined ? {} : { policyStoreAnswers }) }) });
const ask = (body: object = hello, key = 'order-1'): Promise<Response> => door.chat(body, { 'idempotency-key': key });
interface Told {
  readonly code: string;
  readonly message: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}
const errorOf = async (response: Response): Promise<readonly [number, Told]> => [response.status, ((await response.json()) as { error: Told }).error];
const claim = () => [...door.claims.kept.values()][0];
/** Waits for the ends of claims, which follow the answer. */
const ended = (): Promise<void> => until(() => claim()?.done !== undefined);

describe('a repeat of an answered request', () => {
  test.each([['whole', hello, answers], ['streamed', { ...hello, stream: true }, streams]] as const)('gets the same %s answer, without another dispatch or admission', async (_how, body, script) => {
    keeping();
    door.neighbours.scripts.set('a', script);
    const first = await ask(body);
    const text = await first.text();
    await ended();
    const asked = door.neighbours.asked.length;
    const again = await ask(body);
    expect([again.status, await again.text(), again.headers.get('idempotent-replayed')]).toEqual([200, text, 'true']);
    for (const name of ['x-request-id', 'x-router-cost', 'x-router-cost-basis', 'content-type']) expect([name, again.headers.get(name)]).toEqual([name, first.headers.get(name)]);
    expect([door.neighbours.calls.length, door.neighbours.asked.length]).toEqual([1, asked]);
  });

  test.each([
    ['the account never opted in', false, undefined, hello],
    ['the account opted out of the operator’s setting', true, false, hello],
    ['nothing of the request may be retained', true, undefined, { ...hello, zdr: true }],
  ])('gets its id and cost if %s, and no answer is kept', async (_why, operator, own, body) => {
    keeping(operator, own);
    const first = await ask(body);
    await first.text();
    await ended();
    expect(claim()?.done?.answer).toBeUndefined();
    const again = await ask(body);
    const [status, error] = await errorOf(again);
    expect([status, error.code, error.metadata]).toEqual([409, 'idempotency_completed', { request_id: first.headers.get('x-request-id'), cost_usd: 0.00002 }]);
    expect(again.headers.get('x-should-retry')).toBe('false');
    expect(door.neighbours.calls).toHaveLength(1);
  });

  test('does not get the kept answer once the account has opted out', async () => {
    keeping();
    await (await ask()).text();
    await ended();
    keeping(true, false);
    door.neighbours.clock.advance(61_000);
    const [status, { code }] = await errorOf(await ask());
    expect([status, code]).toEqual([409, 'idempotency_completed']);
  });

  test('is refused for a key of the account without the scope, and keeps its claim', async () => {
    keeping();
    await (await ask()).text();
    await ended();
    const other = makeApiKey(randomBytes);
    door.accounts.add(other, { key: keyWith({ id: 'key_2', scopes: ['usage:read'] }), account: accountWith({ storeAnswers: true }) });
    for (const idempotencyKey of ['order-1', 'order-2']) {
      const response = await door.chat(hello, { authorization: `Bearer ${other}`, 'idempotency-key': idempotencyKey });
      const [status, { code }] = await errorOf(response);
      expect([status, code]).toEqual([403, 'insufficient_scope']);
    }
    expect(door.claims.kept.size).toBe(1);
    // Another key with the scope gets the answer, too.
    door.accounts.add(other, { key: keyWith({ id: 'key_2' }), account: accountWith({ storeAnswers: true }) });
    door.neighbours.clock.advance(61_000);
    expect((await door.chat(hello, { authorization: `Bearer ${other}`, 'idempotency-key': 'order-1' })).headers.get('idempotent-replayed')).toBe('true');
  });

  test('is refused, and runs nothing, for another key that is restricted to some models; the original key still gets it', async () => {
    const limits = { costCapPeriod: '', costCaps: [], allowedModels: ['b/model'] };
    keeping();
    const text = await (await ask()).text();
    await ended();
    const other = makeApiKey(randomBytes);
    door.accounts.add(other, { key: keyWith({ id: 'key_2', limits }), account: accountWith({ storeAnswers: true }) });
    const [status, { code }] = await errorOf(await door.chat(hello, { authorization: `Bearer ${other}`, 'idempotency-key': 'order-1' }));
    expect([status, code, door.neighbours.calls.length]).toEqual([409, 'idempotency_completed', 1]);
    door.accounts.add(door.key, { key: keyWith({ limits }), account: accountWith({ storeAnswers: true }) });
    door.neighbours.clock.advance(61_000);
    expect(await (await ask()).text()).toBe(text);
  });

  test('with another body is a conflict', async () => {
    await (await ask()).text();
    await ended();
    const response = await ask({ ...hello, temperature: 1 });
    expect((await errorOf(response))[1].code).toBe('idempotency_conflict');
    expect(response.status).toBe(409);
    expect(door.neighbours.calls).toHaveLength(1);
  });
});

test('gets the cost of a stream that broke without figures from the ledger', async () => {
  door.neighbours.scripts.set('a', (call) => call.play(events.head(), events.role(), events.text('ö')));
  const first = await ask({ ...hello, stream: true });
  await first.text();
  await ended();
  const costOf = async (): Promise<unknown> => {
    const [status, { code, metadata }] = await errorOf(await ask({ ...hello, stream: true }));
    expect([status, code]).toEqual([409, 'idempotency_completed']);
    return metadata?.['cost_usd'];
  };
  expect(await costOf()).toBeNull();
  door.booked.set(first.headers.get('x-request-id') ?? '', { costNanoUsd: 9_000n, isBilled: true });
  expect(await costOf()).toBe(0.000009);
  expect(door.neighbours.calls).toHaveLength(1);
});

test('while the first request still runs is told to retry, as long as its edge is alive', async () => {
  let playing: PlayedCall | undefined;
  door.neighbours.scripts.set('a', (call) => {
    playing = call;
  });
  const first = ask();
  await until(() => playing !== undefined);
  for (let turn = 0; turn < 5; turn += 1) {
    door.neighbours.clock.advance(LEASE_MS / 2);
    await oneTurn();
  }
  const response = await ask();
  const [status, error] = await errorOf(response);
  expect([status, error.code, error.metadata?.['retryable'], response.headers.get('x-should-retry')]).toEqual([409, 'idempotency_in_progress', true, 'true']);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  if (playing !== undefined) answers(playing);
  expect((await first).status).toBe(200);
  expect(door.neighbours.calls).toHaveLength(1);
});

describe('a repeat that comes between the answer and the end of its claim', () => {
  let end: () => void;
  beforeEach(() => {
    door.claims.endGate = new Promise((resolve) => (end = resolve));
  });
  /** Sends a repeat, and ends the claim once the repeat has found it taken. */
  const again = async (body?: object): Promise<Response> => {
    const { claim: look } = door.claims;
    let looks = 0;
    door.claims.claim = async (...of) => {
      const found = await look(...of);
      looks += 1;
      return found;
    };
    const repeated = ask(body);
    await until(() => looks === 1);
    end();
    return repeated;
  };

  test('waits for the end, and gets the kept answer', async () => {
    keeping();
    const text = await (await ask()).text();
    const response = await again();
    expect([response.status, await response.text()]).toEqual([200, text]);
    expect(door.neighbours.calls).toHaveLength(1);
  });

  test('runs if nothing was charged, also with another body', async () => {
    door.neighbours.scripts.set('a', (call) => call.play(events.failed('RATE_LIMITED')));
    expect((await ask()).status).toBe(503);
    door.neighbours.scripts.set('a', answers);
    expect((await again({ ...hello, temperature: 1 })).status).toBe(200);
  });

  test('is told to retry if the end takes longer than a second', async () => {
    await (await ask()).text();
    const repeated = ask();
    await until(() => door.neighbours.clock.pendingTimers() > 0);
    for (let turn = 0; turn < 20; turn += 1) {
      door.neighbours.clock.advance(100);
      await oneTurn();
    }
    expect((await errorOf(await repeated))[1].code).toBe('idempotency_in_progress');
    end();
    await ended();
  });
});

test('a repeat of a request at another edge is checked once more, a tenth of a second later', async () => {
  await (await ask()).text();
  await ended();
  const [name, kept] = [...door.claims.kept][0] ?? [];
  if (name === undefined || kept === undefined) throw new Error('expected a claim');
  const { done, ...running } = kept;
  door.claims.kept.set(name, { ...running, requestId: 'chatcmpl-elsewhere' });
  const timers = door.neighbours.clock.pendingTimers();
  const repeated = ask();
  await until(() => door.neighbours.clock.pendingTimers() > timers);
  door.claims.kept.set(name, { ...running, requestId: 'chatcmpl-elsewhere', ...(done === undefined ? {} : { done }) });
  door.neighbours.clock.advance(100);
  expect((await errorOf(await repeated))[1].code).toBe('idempotency_completed');
});

test('a request that is not charged frees its key, also for another body', async () => {
  door.neighbours.scripts.set('a', (call) => call.play(events.failed('RATE_LIMITED')));
  expect((await ask()).status).toBe(503);
  await until(() => door.claims.kept.size === 0);
  door.neighbours.scripts.set('a', answers);
  expect((await ask({ ...hello, temperature: 1 })).status).toBe(200);
});

describe('a repeat of a request that still ran at the end of a drain', () => {
  const held: Script = (call) => call.listener.onEvent(events.started());
  /** Dispatches, and stops the request as at the end of a drain once its workers have played the last of `scripts`. */
  const stopped = async (body: object, ...scripts: readonly Script[]): Promise<Response> => {
    const providers = scripts.map((_script, at) => ['a', 'b', 'c'][at] ?? '');
    door.neighbours.plan = planWith(providers.map((provider) => plannedAt(provider)));
    for (const [at, provider] of providers.entries()) door.neighbours.scripts.set(provider, scripts[at] ?? held);
    const first = ask(body);
    await until(() => door.neighbours.calls.length === scripts.length);
    await oneTurn();
    door.stopRunning();
    return first;
  };
  const again = async (body: object = hello): Promise<string> => {
    for (const provider of ['a', 'b']) door.neighbours.scripts.set(provider, answers);
    const response = await ask(body);
    return response.status === 200 ? 'answered' : (await errorOf(response))[1].code;
  };

  test.each<[string, readonly Script[], readonly string[]]>([
    ['one attempt was under way', [held], ['a#1 DISCARDED']],
    ['another had failed before', [fails('PROVIDER_ERROR'), held], ['a#1 SUPERSEDED', 'b#2 DISCARDED']],
  ])('runs at once if its worker has written down that nothing is charged: %s', async (_what, scripts, told) => {
    const first = await stopped(hello, ...scripts);
    expect([first.status, first.headers.get('retry-after')]).toEqual([503, '1']);
    await until(() => door.claims.kept.size === 0);
    expect(door.neighbours.outcomes).toEqual(told);
    expect(await again()).toBe('answered');
  });

  test('can run before a stopping edge exits, which waits until the key is free', async () => {
    let end: () => void = () => undefined;
    door.claims.endGate = new Promise((resolve) => (end = resolve));
    await stopped(hello, held);
    for (let turn = 0; turn < 20; turn += 1) await oneTurn();
    expect(door.metrics.inFlight()).toBe(1);
    end();
    await until(() => door.metrics.inFlight() === 0);
    expect(door.claims.kept.size).toBe(0);
  });

  test.each<[string, object, readonly Script[], boolean]>([
    ['its worker could not be told', hello, [held], false],
    ['it is unknown whether a worker has the attempt after a failed one', hello, [fails('PROVIDER_ERROR'), () => undefined], true],
    ['it is a stream, for which only its worker knows what was delivered', { ...hello, stream: true }, [held], true],
    ['an answer that did not match was kept in reserve', { ...hello, response_format: { type: 'json_object' } }, [answersWith('no JSON'), held], true],
  ])('waits for the ledger if %s', async (_why, body, scripts, isHeard) => {
    door.neighbours.isHeard = isHeard;
    await stopped(body, ...scripts);
    await until(() => door.metrics.inFlight() === 0);
    expect(await again(body)).toBe('idempotency_in_progress');
    expect(door.neighbours.calls).toHaveLength(scripts.length);
  });

  test('waits for the ledger if its worker has not answered within two seconds', async () => {
    let hear: () => void = () => undefined;
    door.neighbours.heard = new Promise((resolve) => (hear = resolve));
    await stopped(hello, held);
    for (let turn = 0; turn < 20; turn += 1) await oneTurn();
    door.neighbours.clock.advance(2_000);
    await until(() => door.metrics.inFlight() === 0);
    hear();
    expect(await again()).toBe('idempotency_in_progress');
  });

  test('gets the figures that the client of a begun stream got, and those of the ledger for one that had not begun', async () => {
    const begun: Script = (call) => {
      for (const event of [events.head(), events.role(), events.text('ö')]) call.listener.onEvent(event);
      door.neighbours.onStop = () => call.play(events.end({ finishReason: 'error', cut: { class: 'STOPPED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true } }));
    };
    const body = { ...hello, stream: true };
    await (await stopped(body, begun)).text();
    await ended();
    const [status, { code, metadata }] = await errorOf(await ask(body));
    expect([status, code, metadata?.['cost_usd']]).toEqual([409, 'idempotency_completed', 0.00002]);
    door.claims.kept.clear();
    door.neighbours.calls.length = 0;
    const silent = await stopped(body, held);
    expect([silent.status, silent.headers.get('retry-after')]).toEqual([503, String(SETTLED_MS / 1_000)]);
  });

  test('waits for the ledger if the client had left by itself', async () => {
    door.neighbours.scripts.set('a', held);
    const leaving = new AbortController();
    const first = fetch(`${door.url}/v1/chat/completions`, { method: 'POST', signal: leaving.signal, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json', 'idempotency-key': 'order-1' }, body: JSON.stringify(hello) }).catch(() => undefined);
    await until(() => door.neighbours.calls.length === 1);
    leaving.abort();
    await first;
    await until(() => door.metrics.inFlight() === 0);
    door.stopRunning();
    expect(await again()).toBe('idempotency_in_progress');
  });
});

describe('after the death of an edge', () => {
  const lost = 'chatcmpl-lost';
  const leave = async (isToBegin = false): Promise<void> => {
    // The request's own claim, as another edge stored it and then stopped renewing it.
    await (await ask()).text();
    await ended();
    const [name, kept] = [...door.claims.kept][0] ?? [];
    if (name === undefined || kept === undefined) throw new Error('expected a claim');
    const { done: _done, ...rest } = kept;
    door.claims.kept.set(name, { ...rest, requestId: lost, isToBegin, leaseEndsMs: door.neighbours.clock.nowMs() });
    door.neighbours.calls.length = 0;
  };
  const codeOf = async (): Promise<string> => {
    const response = await ask();
    return response.status === 200 ? 'answered' : (await errorOf(response))[1].code;
  };

  test('a billed request is reported with its cost and never run again', async () => {
    await leave();
    door.booked.set(lost, { costNanoUsd: 7_000n, isBilled: true });
    const [status, error] = await errorOf(await ask());
    expect([status, error.code, error.metadata]).toEqual([409, 'idempotency_completed', { request_id: lost, cost_usd: 0.000007 }]);
    await ended();
    expect(await codeOf()).toBe('idempotency_completed');
    expect([door.neighbours.calls.length, door.takenOver]).toEqual([0, []]);
  });

  test('a request that had not confirmed its claim runs at once, also with another body, without an alarm', async () => {
    await leave(true);
    expect((await ask({ ...hello, temperature: 1 })).status).toBe(200);
    expect([door.neighbours.calls.length, door.takenOver]).toEqual([1, []]);
  });

  test('a request booked with a charge of 0 runs once more, when that is final', async () => {
    await leave();
    door.booked.set(lost, { costNanoUsd: 0n, isBilled: false });
    expect(await codeOf()).toBe('idempotency_in_progress');
    door.neighbours.clock.advance(SETTLED_MS);
    expect(await codeOf()).toBe('answered');
    expect([door.neighbours.calls.length, door.takenOver]).toEqual([1, []]);
  });

  test('a request without a trace in the ledger blocks its key for at most 15 minutes, and the operator is told', async () => {
    await leave();
    door.neighbours.clock.advance(LOST_MS - 1);
    expect(await codeOf()).toBe('idempotency_in_progress');
    door.neighbours.clock.advance(1);
    expect(await codeOf()).toBe('answered');
    expect(door.takenOver).toEqual([lost]);
  });
});

test('while claims cannot be written, no request with a key runs, and all others do', async () => {
  await (await door.chat(hello)).text();
  door.claims.isAway = true;
  const response = await ask();
  const [status, { code, message, metadata }] = await errorOf(response);
  // Not an error of the API key, which is valid.
  expect([status, code, message, metadata, response.headers.get('x-should-retry')]).toEqual([503, 'accounts_unavailable', expect.stringContaining('The Idempotency-Key cannot be looked up'), { retryable: true }, 'true']);
  expect((await door.chat(hello)).status).toBe(200);
  expect(door.neighbours.calls).toHaveLength(2);
});

test.each([['', 400], [' ', 400], ['x'.repeat(256), 400], ['x'.repeat(255), 200], ['a b', 200]])('a key of the form %j is answered %d', async (key, status) => {
  // fetch trims header values.
  const response = await ask(hello, key);
  expect(response.status).toBe(status);
});

test('a client that left before the end of its whole answer gets it when it repeats the request', async () => {
  keeping();
  let playing: PlayedCall | undefined;
  door.neighbours.scripts.set('a', (call) => {
    playing = call;
  });
  const leaving = new AbortController();
  const first = fetch(`${door.url}/v1/chat/completions`, { method: 'POST', signal: leaving.signal, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json', 'idempotency-key': 'order-1' }, body: JSON.stringify(hello) }).catch(() => undefined);
  await until(() => playing !== undefined);
  leaving.abort();
  await first;
  for (let turn = 0; turn < 20; turn += 1) await oneTurn();
  expect(playing?.isCancelled).toBe(false);
  if (playing !== undefined) answers(playing);
  await ended();
  const again = await ask();
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  expect(await again.text()).toContain('ök');
});

test('a request with the header is explained like one without it', async () => {
  door.neighbours.plan = { ...planWith([plannedAt('a')]), explanationJson: Buffer.from('{"strategy":"auto"}') };
  const toldOf = async (headers: Readonly<Record<string, string>>): Promise<object> =>
    ((await (await door.chat(hello, { 'x-router-metadata': 'enabled', ...headers })).json()) as { router_metadata: object }).router_metadata;
  const plain = await toldOf({});
  expect(plain).toMatchObject({ routing: { strategy: 'auto' }, price_version: expect.any(String) as unknown });
  expect(await toldOf({ 'idempotency-key': 'order-1' })).toEqual(plain);
});
