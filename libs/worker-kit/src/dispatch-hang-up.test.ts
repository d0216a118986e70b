/** A caller that leaves before the head of the answer. The titles continue "a request whose caller left". */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { Secret } from '@signalbox/runtime/secret';
import { until } from '@signalbox/testkit/until';
import { createCredentialPool } from './credentials.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { CARD, requestOf, startDispatchRig, type DispatchRig, USAGE } from './testing/dispatch-rig.js';
import { createUpstream, type Upstream } from './upstream.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

/** Ends the call once `isReached`; resolves when the attempt is journaled, or with the clock's help. */
async function leaveWhen(
  request: DispatchRequest__Output,
  isReached: () => boolean,
  code: FaultCode = 'client_left',
): Promise<{ readonly done: Promise<void> }> {
  let tell: (reason: Fault) => void = () => undefined;
  const { signal } = new AbortController();
  const done = rig.dispatch(
    request,
    { requestId: request.requestId, traceparent: '', signal, onAbort: (listener) => void (tell = listener), remainingMs: () => Infinity },
    { write: () => true, drained: () => Promise.resolve() },
  );
  await until(isReached);
  tell(new Fault(code, 'left'));
  return { done };
}
/** As `leaveWhen`, until the attempt is over. */
const leftWhen = async (...of: Parameters<typeof leaveWhen>): Promise<void> => (await leaveWhen(...of)).done;
const isAsked = (): boolean => rig.provider.requests.length > 0;
const PROMPT = { inputUncached: 10, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 };

test('because its client hung up: only the prompt is owed, which the provider has', async () => {
  rig.provider.enqueue({ hang: true });
  await leftWhen(requestOf(), isAsked);
  expect(rig.ends).toMatchObject([
    { source: 'ESTIMATED', flags: ['estimated'], status: 0, tokens: PROMPT, costNanoUsd: 10_000n, finishReason: 'error', undelivered: false },
  ]);
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'DELIVERED false']);
  expect(rig.observed).toEqual([]);
});

test.each<FaultCode>(['cancelled', 'link_lost', 'deadline_exceeded'])('by %s: nothing is owed', async (code) => {
  rig.provider.enqueue({ hang: true });
  await leftWhen(requestOf(), isAsked, code);
  expect(rig.ends).toMatchObject([{ source: 'ESTIMATED', flags: [], costNanoUsd: 0n }]);
});

test('because its client hung up: the prompt is charged at the card for its size', async () => {
  const dear = { ...CARD, id: 'card-2', inputUncached: '2000000000' };
  rig.provider.enqueue({ hang: true });
  await leftWhen(
    requestOf({
      promptTokens: 1_000,
      steps: [
        { fromPromptTokens: 0, card: CARD },
        { fromPromptTokens: 1_000, card: dear },
      ],
    }),
    isAsked,
  );
  expect(rig.ends).toMatchObject([{ costNanoUsd: 2_000_000n, flags: ['estimated'] }]);
});

test('on the account’s own credential: what it cost there is reported', async () => {
  const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
  rig.use(systemClock, {
    ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], systemClock), isAtOwnAddress: false }) },
  });
  rig.provider.enqueue({ hang: true });
  await leftWhen(requestOf({ byok: true, byokHandle: 'cred_1' }), isAsked);
  expect([rig.starts[0]?.byok, rig.ends[0]?.costNanoUsd, rig.ends[0]?.flags]).toEqual([true, 10_000n, ['estimated']]);
});

test('while most of the request was still in the socket: nothing is owed', async () => {
  const sockets: Socket[] = [];
  const deaf = createServer({ pauseOnConnect: true }, (socket) => void sockets.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  const origin = `http://127.0.0.1:${String((deaf.address() as AddressInfo).port)}`;
  const through = createUpstream(origin);
  rig.use(systemClock, { adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: `${origin}/v1` }), upstream: through });
  const long = Buffer.from(JSON.stringify([{ role: 'user', content: 'x'.repeat(32 * 1_048_576) }]));
  try {
    await leftWhen(requestOf({ fields: [{ name: 'messages', value: long }] }), () => sockets.length > 0);
    expect(rig.ends).toMatchObject([{ costNanoUsd: 0n, flags: [] }]);
  } finally {
    await through.close();
    for (const socket of sockets) socket.destroy();
    deaf.close();
  }
});

/** Ends the call once the provider's status has arrived; resolves when the attempt is over. */
async function leftAtStatus(code: FaultCode): Promise<void> {
  const through = createUpstream(rig.provider.origin);
  let heads = 0;
  const seeing: Upstream = {
    ...through,
    post: (request, id, to) =>
      through.post(request, id, {
        onHead: (...head) => void ((heads += 1), to.onHead(...head)),
        onData: (bytes) => to.onData(bytes),
        onEnd: () => to.onEnd(),
        onError: (kind) => to.onError(kind),
      }),
  };
  rig.use(systemClock, { upstream: seeing });
  await leftWhen(requestOf(), () => heads > 0, code);
  await through.close();
}

test('a status that refuses costs nothing, even if its body is still to come', async () => {
  rig.provider.enqueue({ status: 500, chunks: ['{"err'], hang: true });
  await leftAtStatus('client_left');
  expect(rig.ends).toMatchObject([{ status: 500, costNanoUsd: 0n, flags: [] }]);
});

test.each<[FaultCode, boolean, readonly string[]]>([
  ['client_left', true, ['DELIVERED false']],
  ['cancelled', false, ['DISCARDED false']],
  ['link_lost', false, []],
  ['deadline_exceeded', false, []],
])('after a 2xx status without content the prompt is booked: by %s, the end says whether the client left (%s), and the outcome is %j', async (code, clientLeft, told) => {
  rig.provider.enqueue({ chunks: [': thinking\n\n'], hang: true });
  await leftAtStatus(code);
  expect(rig.ends).toMatchObject([{ status: 200, tokens: PROMPT, costNanoUsd: 10_000n, flags: ['estimated'], clientLeft }]);
  expect(rig.log.slice(2)).toEqual(told);
});

describe('of a whole answer', () => {
  const whole = (over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output => requestOf({ stream: false, clientStream: false, ...over });

  test.each([
    ['client_left', 10_000n],
    ['link_lost', 0n],
  ] as const)('that does not begin within another minute: by %s it is booked at %d', async (code, cost) => {
    rig.use(rig.clock);
    rig.provider.enqueue({ hang: true });
    const { done } = await leaveWhen(whole(), isAsked, code);
    await rig.clock.advanceAsync(59_999);
    expect(rig.ends).toEqual([]);
    await rig.clock.advanceAsync(1);
    await done;
    expect(rig.ends).toMatchObject([{ costNanoUsd: cost, flags: cost === 0n ? [] : ['estimated'] }]);
  });

  test.each([
    ['client_left', false, 'pays all of it where it comes', ['DELIVERED false'], false],
    ['cancelled', false, 'pays nothing where edge cut it off, as for a key that was declared compromised', ['DISCARDED false'], true],
    ['client_left', true, 'pays all of a round where it comes', ['DELIVERED false'], false],
    ['cancelled', true, 'has seen nothing of a round where edge cut it off, which says what became of all of them', [], true],
  ] as const)('by %s (rounds: %s) its client %s', async (code, rounds, _what, told, undelivered) => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const body = JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE });
    rig.provider.enqueue({ chunks: [() => held, body] });
    const { done } = await leaveWhen(whole({ rounds }), isAsked, code);
    release();
    await done;
    expect(rig.ends).toMatchObject([{ source: 'PROVIDER', costNanoUsd: 20_000n, flags: [], undelivered }]);
    expect(rig.log.slice(2)).toEqual(told);
  });

  test('beyond the limit of attempts that may go on without a caller: it is cancelled, and the prompt is owed', async () => {
    rig.use(rig.clock);
    rig.provider.enqueue(...Array.from({ length: 65 }, () => ({ hang: true })));
    const drained: Promise<void>[] = [];
    for (let n = 1; n <= 64; n += 1)
      drained.push((await leaveWhen(whole({ requestId: `chatcmpl-${String(n)}` }), () => rig.provider.requests.length === n)).done);
    expect(rig.ends).toEqual([]);
    await leftWhen(whole({ requestId: 'chatcmpl-65' }), () => rig.provider.requests.length === 65);
    expect(rig.ends).toMatchObject([{ costNanoUsd: 10_000n, flags: ['estimated'] }]);
    await rig.clock.advanceAsync(60_000);
    await Promise.all(drained);
    expect(rig.ends.map(({ costNanoUsd }) => costNanoUsd)).toEqual(Array<bigint>(65).fill(10_000n));
  });
});
