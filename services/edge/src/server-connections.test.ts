/** Connections: after an error they serve further requests, bodies leave room for others, and a client that leaves leaves no state. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { End__Output } from '@signalbox/contracts/worker';
import { oneTurn, until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { keyWith } from './testing/callers.js';
import { BODY_BYTES_MAX, chatText, errorOf, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { events, type PlayedCall } from './testing/neighbours.js';
import { ours, streaming, withTools } from './testing/rounds-story.js';
import { answersWith } from './testing/scripts.js';

const answers = answersWith('ok');

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

/** Waits until the server has noticed that every client left; each turn lets sockets be read. */
const noConnections = async (): Promise<void> => {
  let count = 1;
  while (count > 0) {
    await oneTurn();
    count = await new Promise<number>((resolve) => door.server.getConnections((_error, open) => resolve(open)));
  }
};

describe('connections', () => {
  test('serve further requests after every kind of error', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const ask = (body: string, type = 'application/json', path = '/v1/chat/completions', pieces = 1): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(door.url + path, { method: 'POST', agent, headers: { authorization: `Bearer ${door.key}`, 'content-type': type } }, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        request.on('socket', (socket) => sockets.add(socket));
        request.on('error', reject);
        // In several pieces: the length is not announced, and the rest arrives after the refusal.
        for (let piece = 1; piece < pieces; piece += 1) request.write(body);
        request.end(body);
      });
    const json = 'application/json';
    const tooLarge = 'x'.repeat(BODY_BYTES_MAX + 10);
    const statuses: number[] = [];
    for (const [body, type, path, pieces] of [['{'], ['{}'], ['x', 'text/plain'], [tooLarge], [tooLarge, json, '/v1/chat/completions', 20], [tooLarge, json, '/api/auth', 20], [JSON.stringify(hello)]] as const) statuses.push(await ask(body, type, path, pieces));
    agent.destroy();
    expect([statuses, sockets.size]).toEqual([[400, 400, 415, 413, 413, 413, 200], 1]);
  });

  test.each([
    [413, '/v1/chat/completions', '', ''],
    [415, '/v1/chat/completions', 'application/json', 'text/plain'],
    [401, '/v1/chat/completions', 'Bearer sbx', 'Bearer none'],
    [413, '/api/auth', '', ''],
    [404, '/v1/completions', '', ''],
    // By our wish alone.
    [400, '/v1/chat/completions', 'connection: close', 'host: y'],
    [417, '/v1/chat/completions', 'connection: close', 'expect: banana'],
    [413, '/v1/chat/completions', 'connection: close\r\n', '', 'stops'],
  ])('that close after an answer let a client read a %d of %s although it sends everything before it reads', async (status, path, from, to, edge = 'serves') => {
    door.isOpen = edge === 'serves';
    const body = 'x'.repeat(16 * BODY_BYTES_MAX);
    const socket = connect(Number(new URL(door.url).port), '127.0.0.1');
    socket.pause();
    const text = chatText(door.key, '', { lines: 'connection: close\r\n', length: body.length }).replace('/v1/chat/completions', path).replace(from, to);
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.write(text + body, (error) => (error === null || error === undefined ? resolve() : reject(error)));
    });
    const told = await readRaw(socket);
    expect([told.slice(0, 12), told.includes('onnection: close'), told.endsWith('}')]).toEqual([`HTTP/1.1 ${status}`, true, true]);
    await noConnections();
  });

  test.each([
    [true, /^HTTP\/1\.1 200 [^]*some words[^]*"message":"The service is being stopped[^}]*What was delivered is charged[^}]*"code":"overloaded","metadata":\{"retryable":true,"charged":true\}[^]*"finish_reason":"error"[^]*data: \[DONE\]/],
    [false, /^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*"message":"The service is being stopped[^}]*"code":"overloaded"/i],
  ])('whose request still runs at the end of a drain (a stream: %s) end with an error, at once or if the worker does not answer within 0.8 s', async (stream, told) => {
    const given: PlayedCall[] = [];
    door.neighbours.scripts.set('a', (call) => {
      given.push(call);
      if (stream) for (const event of [events.head(), events.role(), events.text('some words')]) call.listener.onEvent(event);
    });
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream })));
    let seen = '';
    socket.on('data', (bytes: Buffer) => (seen += bytes.toString()));
    await until(() => given.length === 1 && seen.includes('some words') === stream);
    door.stopRunning();
    if (stream) {
      await door.neighbours.clock.advanceAsync(799);
      expect([seen.includes('"error"'), given[0]?.isCancelled]).toEqual([false, false]);
      door.neighbours.clock.advance(1);
    }
    await until(() => door.metrics.inFlight() === 0 && told.test(seen));
    expect([given.length, given[0]?.isCancelled, given[0]?.cancelledFor]).toEqual([1, true, undefined]);
    socket.destroy();
  });

  const stopped: End__Output['cut'] = { class: 'STOPPED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true };

  test('with a stream that is stopped at the end of a drain get its charge in the last chunk and the trailers, if its worker gives it', async () => {
    let given: PlayedCall | undefined;
    door.neighbours.scripts.set('a', (call) => {
      given = call;
      for (const event of [events.head(), events.role(), events.text('some words')]) call.listener.onEvent(event);
    });
    // Content that was on its way comes first.
    door.neighbours.onStop = () => given?.play(events.text(' more'), events.end({ finishReason: 'error', cut: stopped, source: 'ESTIMATED' }));
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true })));
    let seen = '';
    socket.on('data', (bytes: Buffer) => (seen += bytes.toString()));
    await until(() => seen.includes('some words'));
    door.stopRunning();
    await until(() => door.metrics.inFlight() === 0 && seen.includes('[DONE]') && seen.endsWith('\r\n\r\n'));
    const last = seen.slice(seen.lastIndexOf('data: {'));
    expect(last).toMatch(/"error":\{"message":"[^"]*What was delivered is charged[^}]*"code":"overloaded"[^]*"finish_reason":"error"[^]*"usage":\{"prompt_tokens":10,"completion_tokens":5,[^]*"x_router":\{"provider":"a","cost_usd":0\.00002,/);
    expect(last.slice(last.indexOf('[DONE]'))).toMatch(/X-Router-Cost: 0\.000020000\r\n/i);
    expect([seen.split(' more').length, seen.split('x_router').length, door.neighbours.stopped, door.neighbours.outcomes, given?.isCancelled]).toEqual([2, 2, ['a#1'], ['a#1 DELIVERED'], false]);
    socket.destroy();
  });

  test('with a stream that is stopped between two rounds get its charge at once', async () => {
    withTools(door.neighbours, [], { runTool: (_request, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))) });
    door.neighbours.scripts.set('a', (call) => call.play(events.role(), events.text('Let me see. '), ...streaming(ours()).slice(1)));
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true, plugins: ['code-exec'] })));
    let seen = '';
    socket.on('data', (bytes: Buffer) => (seen += bytes.toString()));
    await until(() => seen.includes('Let me see. ') && door.neighbours.tended.length > 0);
    door.stopRunning();
    await until(() => door.metrics.inFlight() === 0 && seen.endsWith('\r\n\r\n'));
    const last = seen.slice(seen.lastIndexOf('data: {'));
    expect(last).toMatch(/"error":\{"message":"[^"]*What was delivered is charged[^}]*"code":"overloaded"[^]*"finish_reason":"error"[^]*"usage":\{"prompt_tokens":10,"completion_tokens":5,[^]*"x_router":\{"provider":"a","cost_usd":0\.00002,[^]*X-Router-Cost: 0\.000020000\r\n/i);
    expect(door.neighbours.outcomes).toEqual(['a#1 DELIVERED']);
    socket.destroy();
  });

  test('with a stream that is stopped while it ends by itself get the whole answer', async () => {
    let given: PlayedCall | undefined;
    door.neighbours.scripts.set('a', (call) => {
      given = call;
      for (const event of [events.head(), events.role(), events.text('some words')]) call.listener.onEvent(event);
    });
    door.neighbours.onStop = () => given?.play(events.finish(), events.end());
    const asked = door.chat({ ...hello, stream: true });
    await until(() => given !== undefined);
    await oneTurn();
    door.stopRunning();
    const text = await (await asked).text();
    expect([text.includes('"error"'), text.includes('"finish_reason":"stop"'), text.includes('x_router')]).toEqual([false, true, true]);
  });

  test('with large bodies of one account leave room for others and for small ones, and give it back with the answer', async () => {
    const held: PlayedCall[] = [];
    door.neighbours.scripts.set('a', (call) => void held.push(call));
    const large = { ...hello, messages: [{ role: 'user', content: 'x'.repeat(0.9 * BODY_BYTES_MAX) }] };
    const first = [door.chat(large), door.chat(large)];
    await until(() => held.length === 2);
    const refused = await door.chat(large);
    expect([await errorOf(refused), refused.headers.get('retry-after')]).toEqual([[503, 'server_error', 'overloaded'], '1']);
    first.push(door.chat(hello));
    await until(() => held.length === 3);
    for (const call of held) answers(call);
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200]);
    await until(() => door.metrics.inFlight() === 0);
    door.neighbours.scripts.set('a', answers);
    expect((await door.chat(large)).status).toBe(200);
  });

  test.each(['while they run', 'once they are answered'])('with large bodies behind a stream give the room back when the client leaves %s', async (when) => {
    const held: PlayedCall[] = [];
    door.neighbours.scripts.set('a', (call) => void held.push(call));
    const large = { ...hello, messages: [{ role: 'user', content: 'x'.repeat(0.9 * BODY_BYTES_MAX) }] };
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true })) + chatText(door.key, JSON.stringify(large)).repeat(2));
    await until(() => held.length === 3);
    if (when === 'once they are answered') for (const call of held.slice(1)) answers(call);
    await until(() => door.metrics.inFlight() === (when === 'once they are answered' ? 1 : 3));
    socket.destroy();
    await until(() => door.metrics.inFlight() === 0);
    door.neighbours.scripts.set('a', answers);
    expect((await door.chat(large)).status).toBe(200);
  });

  test('that close in the middle of a body leave nothing behind', async () => {
    const socket = door.raw(chatText(door.key, '{"mod', { length: 100 }));
    await until(() => door.metrics.inFlight() === 1);
    socket.destroy();
    await until(() => door.metrics.inFlight() === 0);
    expect(door.neighbours.asked).toEqual([]);
  });

  test('that close while the key is looked up leave nothing behind', async () => {
    let open = (): void => undefined;
    door.accounts.gate = new Promise((resolve) => {
      open = resolve;
    });
    const socket = door.raw(chatText(door.key, '{"mod', { length: 100 }));
    await until(() => door.accounts.lookUps === 1);
    socket.destroy();
    await once(socket, 'close');
    await noConnections();
    open();
    await until(() => door.metrics.inFlight() === 0);
  });

  test.each([
    ['closes its connection', (socket: Socket): unknown => socket.end(), 'client_left'],
    ['breaks its connection', (socket: Socket): unknown => socket.resetAndDestroy(), 'client_left'],
    ['sends garbage behind its request', (socket: Socket): unknown => socket.write('NONSENSE\r\n\r\n'), 'client_left'],
    ['asks for a tunnel behind its request', (socket: Socket): unknown => socket.write('CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n'), 'client_left'],
    ['is cut off at the end of a drain', (): unknown => door.server.closeAllConnections(), undefined],
    ['is cut off for its key', (): unknown => expect(door.cutKey(keyWith().id)).toBe(1), undefined],
  ] as const)('tell the worker the difference when a client %s', async (_case, part, why) => {
    let call: PlayedCall | undefined;
    door.neighbours.scripts.set('a', (played) => void (call = played));
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(chatText(door.key, body));
    await until(() => call !== undefined);
    part(socket);
    await until(() => call?.isCancelled === true);
    expect(call?.cancelledFor).toBe(why);
    socket.destroy();
  });

  test.each([
    ['leaves', (socket: Socket): unknown => socket.destroy(), 'client_left'],
    ['is cut off at the end of a drain', (): unknown => door.server.closeAllConnections(), undefined],
    ['is cut off for its key', (): unknown => expect(door.cutKey(keyWith().id)).toBe(3), undefined],
  ] as const)('give up pipelined requests too when their client %s', async (_case, part, why) => {
    door.neighbours.scripts.set('a', () => undefined);
    const [whole, streamed] = [hello, { ...hello, stream: true }].map((body) => chatText(door.key, JSON.stringify(body)));
    const socket = door.raw(`${streamed}${whole}${streamed}`);
    await until(() => door.neighbours.calls.length === 3);
    part(socket);
    await until(() => door.metrics.inFlight() === 0);
    expect(door.neighbours.calls.map((call) => [call.isCancelled, call.cancelledFor])).toEqual(Array(3).fill([true, why]));
    socket.destroy();
  });

  describe('data that arrives too late after a running stream does not cut it', () => {
    const streamed = (): string => chatText(door.key, JSON.stringify({ ...hello, stream: true }));
    const late = JSON.stringify(hello);
    const half = (key: string): string => chatText(key, late.slice(0, 9), { length: late.length });

    test.each([
      ['half a head', 'is told of it behind the stream', (): string => 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n', '', /408 [^]*request_timeout/],
      ['half a body', 'is not run, whatever comes then', (): string => half(door.key), late.slice(9), /\[DONE\]\n\n\r\n0[^]*\r\n\r\n$/],
      ['half a body behind another stream', 'is not run, whatever comes then', (): string => streamed() + half(door.key), late.slice(9), /\[DONE\]\n\n\r\n0[^]*\r\n\r\n$/],
      ['half the body of a refused request', 'has its refusal behind the stream', (): string => half('junk'), '', /401 [^]*invalid_api_key/],
    ] as const)('%s %s, and the connection ends', async (_what, _how, text, rest, end) => {
      door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('begun')));
      const serving = once(door.server, 'connection');
      const socket = door.raw(streamed() + text());
      const [served] = (await serving) as [Socket];
      const running = text().split('"stream"').length;
      const behind = text().includes('content-length') ? 1 : 0;
      await until(() => door.neighbours.calls.length === running && door.metrics.inFlight() >= running + (text().includes('junk') ? 0 : behind));
      door.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), served);
      const told = readRaw(socket);
      socket.write(rest);
      for (let turn = 0; turn < 5; turn += 1) await oneTurn();
      expect(door.neighbours.calls.map(({ isCancelled }) => isCancelled)).toEqual(Array(running).fill(false));
      for (const call of door.neighbours.calls.slice()) call.play(events.finish(), events.end());
      const answered = await told;
      expect(answered.match(/data: \[DONE\]/g)).toHaveLength(running);
      expect(answered).toMatch(end);
      await until(() => door.metrics.inFlight() === 0);
      expect(door.neighbours.calls).toHaveLength(running);
    });
  });

  test('a client that leaves its stream cancels the attempt', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const controller = new AbortController();
    const response = await fetch(`${door.url}/v1/chat/completions`, { method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ ...hello, stream: true }) });
    expect(response.status).toBe(200);
    controller.abort();
    await until(() => door.neighbours.calls[0]?.isCancelled === true && door.metrics.inFlight() === 0);
    expect(door.neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('a client that closes its sending side counts as gone, since it cannot be told from one that left', async () => {
    door.neighbours.scripts.set('a', () => undefined);
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(chatText(door.key, body));
    await until(() => door.neighbours.calls.length === 1);
    socket.end();
    await until(() => door.neighbours.calls[0]?.isCancelled === true && door.metrics.inFlight() === 0);
    expect(door.neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  describe('a connection without a request in time', () => {
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

    test('is closed silently, since its client would take a 408 for the answer to its next request', async () => {
      const serving = once(door.server, 'connection');
      const socket = door.raw('');
      const [served] = (await serving) as [Socket];
      door.server.emit('clientError', late, served);
      expect(await readRaw(socket)).toBe('');
      await noConnections();
    });

    test('is served if an unread request had arrived', async () => {
      const text = chatText(door.key, JSON.stringify(hello), { lines: 'connection: close\r\n' });
      // Its first bytes are read in a later turn than the one in which it is accepted.
      door.server.once('connection', (served: Socket) => void door.server.emit('clientError', late, served));
      expect(await readRaw(door.raw(text))).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    });
  });

  describe('a client that never closes its side', () => {
    /** A client that keeps reading, and both ends of its connection. */
    const hold = async (text: string): Promise<{ readonly socket: Socket; readonly served: Socket; readonly told: () => string }> => {
      const serving = once(door.server, 'connection');
      const socket = connect({ port: Number(new URL(door.url).port), host: '127.0.0.1', allowHalfOpen: true });
      let told = '';
      socket.on('data', (bytes: Buffer) => (told += String(bytes)));
      socket.on('error', () => undefined);
      socket.write(text);
      const [served] = (await serving) as [Socket];
      return { socket, served, told: () => told };
    };
    /** Does what node:http does when a request has not arrived in time. */
    const timeOut = (served: Socket): boolean => door.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), served);

    test('and whose body comes too late is refused, leaves nothing behind, and its later data reaches no provider', async () => {
      const body = JSON.stringify(hello);
      const { socket, served, told } = await hold(chatText(door.key, body.slice(0, -1), { length: body.length }));
      await until(() => door.metrics.inFlight() === 1);
      timeOut(served);
      await until(() => told().includes('request_timeout'));
      socket.write(body.slice(-1));
      await until(() => door.metrics.inFlight() === 0);
      await noConnections();
      expect([told().match(/HTTP\/1.1 \d+/g), door.neighbours.asked]).toEqual([['HTTP/1.1 408'], []]);
      socket.destroy();
    });

    test('and does not speak HTTP is cut off a second after its refusal', async () => {
      const { socket, served, told } = await hold('NONSENSE\r\n\r\n');
      await until(() => told().includes('HTTP/1.1 400'));
      expect(served.destroyed).toBe(false);
      await door.neighbours.clock.advance(1_000);
      expect(served.destroyed).toBe(true);
      await noConnections();
      socket.destroy();
    });

    test('and gets its answer before its body is complete gets no second answer', async () => {
      const { socket, served, told } = await hold(chatText(door.key, '{', { length: 2 * BODY_BYTES_MAX }));
      await until(() => told().includes('payload_too_large'));
      timeOut(served);
      await noConnections();
      expect(told().match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413']);
      socket.destroy();
    });
  });

  test('invalid data after a running stream is never answered within it', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(chatText(door.key, body));
    await once(socket, 'data');
    socket.write('NONSENSE\r\n\r\n');
    expect(await readRaw(socket)).not.toContain('HTTP/1.1 400');
  });

  test('nor is a second request with an invalid body', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true })));
    await once(socket, 'data');
    socket.write(chatText(door.key, '').replace('content-length: 0', 'transfer-encoding: chunked') + 'NONSENSE\r\n');
    expect(await readRaw(socket)).not.toContain('HTTP/1.1 400');
  });

  test('nor is the method CONNECT', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true })));
    await once(socket, 'data');
    socket.write('CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n');
    expect(await readRaw(socket)).not.toContain('HTTP/1.1 405');
    await until(() => door.metrics.inFlight() === 0);
  });

  test('invalid data after a request that has reached a provider is not answered as its refusal', async () => {
    door.neighbours.scripts.set('a', () => undefined);
    const body = JSON.stringify(hello);
    const socket = door.raw(chatText(door.key, body));
    await until(() => door.neighbours.calls.length === 1);
    const closed = once(socket, 'close');
    let answer = '';
    socket.on('data', (bytes: Buffer) => (answer += String(bytes)));
    socket.write('NONSENSE\r\n\r\n');
    await closed;
    expect(answer).toBe('');
  });
});
