/** Clients that ask with `Expect: 100-continue` before they send a body. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@signalbox/testkit/until';
import { connect, type Socket } from 'node:net';
import { BODY_BYTES_MAX, chatText, hello, readRaw, startDoor, type Door } from './testing/door.js';
import type { PlayedCall } from './testing/neighbours.js';
import { answersWith, streamsWith } from './testing/scripts.js';

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answersWith('ok'));
});
afterEach(() => door.stop());

const BODY = JSON.stringify(hello);
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** A head alone, for a body of `length` bytes; `change` replaces a text of it by another. */
const headOf = (change: readonly [string, string] = ['', ''], { length = BODY.length } = {}): string => chatText(door.key, '', { lines: 'expect: 100-continue\r\n', length }).replace(...change);

/** Both ends of a connection, and what the client was told. */
async function hold(text: string): Promise<{ readonly socket: Socket; readonly served: Socket; readonly told: () => string }> {
  const serving = new Promise<Socket>((resolve) => door.server.once('connection', resolve));
  const socket = door.raw(text);
  let told = '';
  socket.on('data', (bytes: Buffer) => (told += String(bytes)));
  return { socket, served: await serving, told: () => told };
}

test.each<[string, number, readonly [string, string], object]>([
  ['a body that is too large', 413, ['', ''], { length: BODY_BYTES_MAX + 1 }],
  ['a wrong key', 401, ['Bearer sbx', 'Bearer none'], {}],
  ['no key', 401, ['authorization: ', 'x: '], {}],
  ['another type', 415, ['application/json', 'text/plain'], {}],
  ['a path that is not there', 404, ['/v1/chat/completions', '/v1/completions'], {}],
  ['a method that is not allowed', 405, ['POST', 'PUT'], {}],
  ['a large body of another route', 413, ['/v1/chat/completions', '/api/auth'], { length: BODY_BYTES_MAX }],
  ['another expectation', 417, ['100-continue', 'banana'], {}],
])('%s is refused with %i before the body is asked for, and the connection ends though it never comes', async (_what, status, change, over) => {
  const { served, told } = await hold(headOf(change, over));
  await until(() => told().endsWith('}'));
  expect([told().match(/HTTP\/1\.1 \d+/g), /^connection: close\r$/im.test(told()), served.destroyed]).toEqual([[`HTTP/1.1 ${status}`], true, false]);
  await door.neighbours.clock.advanceAsync(999);
  expect(served.destroyed).toBe(false);
  await door.neighbours.clock.advanceAsync(1);
  await until(() => served.destroyed);
  expect(door.neighbours.calls).toEqual([]);
});

test.each([
  ['/v1/chat/completions', BODY, 200],
  ['/api/auth', '{}', 400],
])('the body for %s is asked for once the head has passed, and the connection serves on', async (path, body, status) => {
  const { socket, told } = await hold(headOf(['/v1/chat/completions', path], { length: body.length }));
  await until(() => told() !== '');
  expect(told()).toBe(CONTINUE);
  socket.write(body);
  await until(() => told().endsWith('}'));
  expect(told()).not.toMatch(/^connection: close/im);
  socket.write(chatText(door.key, BODY));
  await until(() => told().match(/HTTP\/1\.1 \d+/g)?.length === 3 && told().endsWith('}'));
  expect(told().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', `HTTP/1.1 ${status}`, 'HTTP/1.1 200']);
  socket.destroy();
});

test('a stream whose body was asked for is a stream like any other', async () => {
  door.neighbours.scripts.set('a', streamsWith('o', 'k'));
  const body = JSON.stringify({ ...hello, stream: true });
  const { socket, told } = await hold(headOf(['', ''], { length: body.length }));
  await until(() => told() === CONTINUE);
  socket.write(body);
  await until(() => told().includes('data: [DONE]') && told().endsWith('\r\n\r\n'));
  expect(told().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200']);
  socket.destroy();
});

test.each([
  ['waits', ['HTTP/1.1 200', 'HTTP/1.1 100', 'HTTP/1.1 200']],
  ['does not wait', ['HTTP/1.1 200', 'HTTP/1.1 200']],
])('behind a running stream the word comes in its turn, or not at all: a client that %s', async (how, statuses) => {
  const given: PlayedCall[] = [];
  door.neighbours.scripts.set('a', (call) => void given.push(call));
  const stream = JSON.stringify({ ...hello, stream: true });
  const { socket, told } = await hold(chatText(door.key, stream) + headOf());
  const isLate = how === 'waits';
  if (!isLate) socket.write(BODY);
  await until(() => given.length === (isLate ? 1 : 2) && door.metrics.inFlight() === 2);
  for (const call of given) answersWith('ok')(call);
  if (isLate) {
    await until(() => told().endsWith(CONTINUE));
    door.neighbours.scripts.set('a', answersWith('ok'));
    socket.write(BODY);
  }
  await until(() => told().endsWith('}'));
  expect(told().match(/HTTP\/1\.1 \d+/g)).toEqual(statuses);
  socket.destroy();
});

test.each<[string, number, readonly [string, string]]>([
  ['a wrong key', 401, ['Bearer sbx', 'Bearer none']],
  ['a path that is not there', 404, ['/v1/chat/completions', '/v1/completions']],
  ['another expectation', 417, ['100-continue', 'banana']],
])('behind a running stream a refusal for %s (%i) comes as soon as the stream ends, and the connection with it', async (_what, status, change) => {
  let given: PlayedCall | undefined;
  door.neighbours.scripts.set('a', (call) => void (given = call));
  const { served, told } = await hold(chatText(door.key, JSON.stringify({ ...hello, stream: true })) + headOf(change));
  await until(() => given !== undefined);
  if (given !== undefined) streamsWith('ok')(given);
  await until(() => /\[DONE\][^]*\}$/.test(told()));
  expect(told().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', `HTTP/1.1 ${status}`]);
  await door.neighbours.clock.advanceAsync(1_000);
  await until(() => served.destroyed);
});

test('several requests at once, bodies and all, are all answered on one connection', async () => {
  const { socket, told } = await hold((headOf() + BODY).repeat(3));
  await until(() => told().match(/HTTP\/1\.1 200/g)?.length === 3 && told().endsWith('}'));
  expect(told()).not.toMatch(/^connection: close/im);
  socket.destroy();
});

test('a client that sends a large body without waiting, and reads nothing before all is sent, gets to read its refusal', async () => {
  const length = 16 * BODY_BYTES_MAX;
  const socket = connect(Number(new URL(door.url).port), '127.0.0.1');
  socket.pause();
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.write(headOf(['Bearer sbx', 'Bearer none'], { length }) + 'x'.repeat(length), (error) => (error === null || error === undefined ? resolve() : reject(error)));
  });
  const told = await readRaw(socket);
  expect([told.slice(0, 12), told.endsWith('}')]).toEqual(['HTTP/1.1 401', true]);
});
