/** Clients that read their answers slowly, partly, late or not at all. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { oneTurn, until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { accountWith, keyWith } from './testing/callers.js';
import { chatText, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { events, type PlayedCall } from './testing/neighbours.js';
import { chunkOf, ours, streaming, withTools } from './testing/rounds-story.js';
import { answersWith, inTurn } from './testing/scripts.js';

const answers = answersWith('ok');

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

/** A connection whose client reads nothing, until the kernel's buffers are full. */
const connectDeaf = async (): Promise<{ readonly socket: Socket; readonly served: Socket }> => {
  const serving = once(door.server, 'connection');
  const socket = door.raw('');
  const [served] = (await serving) as [Socket];
  served.write(Buffer.alloc(64 * 1_024 * 1_024));
  return { socket, served };
};

test('a stream that is not read for a minute is given up, and ends with an error chunk for a client that reads on', async () => {
  const given: PlayedCall[] = [];
  door.neighbours.scripts.set('a', (call) => {
    given.push(call);
    for (const event of [events.head(), events.role(), events.text('some words')]) call.listener.onEvent(event);
  });
  const { socket } = await connectDeaf();
  socket.write(chatText(door.key, JSON.stringify({ ...hello, stream: true })));
  await until(() => given[0]?.isPaused === true);
  door.neighbours.clock.advance(75_000);
  await until(() => door.metrics.inFlight() === 0);
  let tail = '';
  socket.on('data', (bytes: Buffer) => (tail = (tail + bytes.toString('latin1')).slice(-4_096)));
  await until(() => tail.includes('[DONE]') || socket.closed);
  expect(door.unread).toEqual(['stalled']);
  expect([given[0]?.isCancelled, tail]).toEqual([true, expect.stringMatching(/some words[^]*"code":"answer_not_read"[^]*"finish_reason":"error"[^]*\[DONE\]/)]);
  socket.destroy();
});

test('an answer that its client does not take is given up after a minute, with the pipelined requests behind it, even if the client sends more', async () => {
  door.neighbours.scripts.set('a', (call) => {
    if (call === door.neighbours.calls[0]) call.listener.onEvent(events.text('hi'));
  });
  const { socket } = await connectDeaf();
  const body = chatText(door.key, JSON.stringify({ ...hello, stream: true }));
  socket.write(`${body}${body}`);
  await until(() => door.neighbours.calls.length === 2 && door.neighbours.calls[0]?.isPaused === true);
  await door.neighbours.clock.advanceAsync(60_000);
  await until(() => door.metrics.inFlight() === 0);
  expect(door.neighbours.calls[1]?.cancelledFor).toBe('client_left');
  socket.destroy();
});

/** A stream whose first round says something to a client that does not read, and calls a tool of ours; a second round follows. */
const askInRounds = async (): Promise<{ readonly calls: readonly PlayedCall[]; readonly socket: Socket; readonly served: Socket }> => {
  withTools(door.neighbours, []);
  door.neighbours.scripts.set('a', inTurn((call) => call.play(events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1)), () => undefined));
  const { socket, served } = await connectDeaf();
  socket.write(chatText(door.key, JSON.stringify({ ...hello, stream: true, plugins: ['code-exec'] })));
  const { calls } = door.neighbours;
  await until(() => calls.length === 2);
  return { calls, socket, served };
};

test('who has not read the text of one round is sent nothing of the next before it reads, and is given up if it does not', async () => {
  const { calls: [, second], socket } = await askInRounds();
  expect(second?.isPaused).toBe(true);
  await door.neighbours.clock.advanceAsync(75_000);
  await until(() => door.metrics.inFlight() === 0);
  expect([second?.isCancelled, door.unread]).toEqual([true, ['stalled']]);
  socket.destroy();
});

test('it is sent the next round once it has read', async () => {
  const { calls: [, second], socket } = await askInRounds();
  socket.resume();
  await until(() => second?.isPaused === false);
  second?.play(events.text('It is 42.'), events.finish(), events.end());
  await until(() => door.metrics.inFlight() === 0);
  expect([second?.isCancelled, door.unread]).toEqual([false, []]);
  socket.destroy();
});

test('a client that reads a large answer slowly is not cut off before it stops reading', async () => {
  const picture = 'x'.repeat(48 * 1_024 * 1_024);
  door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text(picture)));
  const socket = door.raw(chatText(door.key, JSON.stringify({ ...hello, stream: true })));
  await until(() => door.neighbours.calls[0]?.isPaused === true);
  const call = door.neighbours.calls[0];
  let read = 0;
  for (let minute = 0; minute < 3; minute += 1) {
    const enough = read + 8 * 1_024 * 1_024;
    while (read < enough) {
      const part = socket.read() as Buffer | null;
      read += part?.length ?? 0;
      if (part === null) await oneTurn();
    }
    await door.neighbours.clock.advanceAsync(60_000);
    expect([call?.isCancelled, door.metrics.inFlight()]).toEqual([false, 1]);
  }
  await door.neighbours.clock.advanceAsync(75_000);
  await until(() => door.metrics.inFlight() === 0);
  expect(call?.isCancelled).toBe(true);
  socket.destroy();
});

test('a stream that waits for an earlier answer does not count as unread', async () => {
  door.neighbours.scripts.set('a', () => undefined);
  const body = chatText(door.key, JSON.stringify({ ...hello, stream: true }));
  const socket = door.raw(`${body}${body}`);
  await until(() => door.neighbours.calls.length === 2);
  const [first, second] = door.neighbours.calls;
  second?.listener.onEvent(events.text('second '.repeat(10_000)));
  await until(() => second?.isPaused === true);
  await door.neighbours.clock.advanceAsync(600_000);
  expect([second?.isCancelled, door.metrics.inFlight()]).toEqual([false, 2]);
  first?.play(events.text('first'), events.finish(), events.end());
  const told = readRaw(socket, 'END');
  await until(() => second?.isPaused === false);
  second?.play(events.text('END'), events.finish(), events.end());
  const text = await told;
  expect(text.indexOf('first')).toBeLessThan(text.indexOf('second'));
  socket.destroy();
});

test('only few answers are made for a client that sends requests without reading', async () => {
  const socket = door.raw('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100));
  const text = await readRaw(socket, '"overloaded"');
  expect(text.match(/HTTP\/1.1 200/g)).toHaveLength(33);
  socket.destroy();
});

test('of answers that still wait on a connection when it closes nothing is kept', async () => {
  door.neighbours.scripts.set('a', () => undefined);
  const before = door.neighbours.clock.pendingTimers();
  const serving = once(door.server, 'connection');
  const socket = door.raw(chatText(door.key, JSON.stringify(hello)).repeat(40));
  const [served] = (await serving) as [Socket];
  // Those beyond are refused, and their refusals wait.
  await until(() => door.neighbours.calls.length === 33);
  socket.destroy();
  await until(() => served.closed && door.metrics.inFlight() === 0);
  await door.neighbours.clock.advanceAsync(60_000);
  expect(door.neighbours.clock.pendingTimers()).toBe(before);
});

test('a client whose answer makes no progress is cut off after a minute', async () => {
  let open = (): void => undefined;
  door.accounts.gate = new Promise((resolve) => {
    open = resolve;
  });
  const serving = once(door.server, 'connection');
  const socket = door.raw(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\n\r\n`);
  const [served] = (await serving) as [Socket];
  await until(() => door.accounts.lookUps === 1);
  expect(served.timeout).toBe(60_000);
  served.emit('timeout');
  expect(served.destroyed).toBe(true);
  open();
  socket.destroy();
});

test.each([
  ['refusal', (): string => chatText('junk', '{}')],
  ['earlier answer', (): string => chatText(door.key, JSON.stringify(hello), { lines: 'idempotency-key: k\r\n' })],
])('so is one whose %s makes no progress', async (_case, text) => {
  door.accounts.add(door.key, { key: keyWith(), account: accountWith({ storeAnswers: true }) });
  expect((await door.chat(hello, { 'idempotency-key': 'k' })).status).toBe(200);
  const { socket, served } = await connectDeaf();
  socket.write(text());
  await until(() => served.timeout === 60_000);
  served.emit('timeout');
  expect(served.destroyed).toBe(true);
  socket.destroy();
});

test.each([
  ['whole completion', (): string => chatText(door.key, JSON.stringify(hello))],
  ['stream that has ended', (): string => chatText(door.key, JSON.stringify({ ...hello, stream: true }))],
  ['refusal', (): string => chatText('junk', '{}')],
  ['answer of another path', (): string => 'GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'],
])('a %s of which its client takes hardly anything is cut off after ten minutes, and counted', async (_case, text) => {
  const { socket, served } = await connectDeaf();
  socket.write(text());
  await until(() => served.timeout === 60_000);
  // The kernel takes bytes of a connection by the megabyte: the client's single ones are played.
  const { _handle: handle } = served as unknown as { readonly _handle: object };
  let taken = 0;
  Object.defineProperty(handle, 'bytesWritten', { get: () => (taken += 1) });
  for (let second = 0; second < 600; second += 15) {
    await door.neighbours.clock.advanceAsync(15_000);
    expect([served.destroyed, door.unread]).toEqual([false, []]);
  }
  await door.neighbours.clock.advanceAsync(30_000);
  expect([served.destroyed, door.unread]).toEqual([true, ['slow']]);
  socket.destroy();
});

test('a completion behind such an answer is not affected by its timeout', async () => {
  door.neighbours.scripts.set('a', () => undefined);
  const serving = once(door.server, 'connection');
  const socket = door.raw(`GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n${chatText(door.key, JSON.stringify(hello))}`);
  socket.resume();
  const [served] = (await serving) as [Socket];
  await until(() => door.neighbours.calls.length === 1);
  await until(() => served.timeout === 0);
  socket.destroy();
});
