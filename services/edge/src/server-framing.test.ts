/** Where a request ends and what it names, as seen by clients that write HTTP in unusual ways. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { oneTurn, until } from '@signalbox/testkit/until';
import type { Socket } from 'node:net';
import { chatText, hello, readRaw, startDoor, type Door } from './testing/door.js';
import type { PlayedCall } from './testing/neighbours.js';
import { answersWith, streamsWith } from './testing/scripts.js';

const answers = answersWith('ok');
const BODY = JSON.stringify(hello);

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

test('what a client sends behind its last request costs it no answer; it is given up when it leaves', async () => {
  const last = chatText(door.key, BODY, { lines: 'connection: close\r\n' });
  expect((await readRaw(door.raw(`${last}${chatText(door.key, BODY)}`))).match(/^HTTP\/1\.1 .*|"content":"ok"/gm)).toEqual(['HTTP/1.1 200 OK', '"content":"ok"']);
  expect(door.neighbours.calls).toHaveLength(1);
  door.neighbours.scripts.set('a', () => undefined);
  const socket = door.raw(`${last}x`);
  await until(() => door.neighbours.calls.length === 2);
  socket.end();
  await until(() => door.neighbours.calls[1]?.isCancelled === true && door.metrics.inFlight() === 0);
});

test('a request behind one whose answer ends the connection is not run: nobody would be told what it cost', async () => {
  door.isOpen = false;
  const socket = door.raw(chatText(door.key, BODY) + chatText(door.key, BODY) + chatText(door.key, BODY));
  expect((await readRaw(socket)).match(/^HTTP\/1\.1 .*|^connection: .*/gim)).toEqual(['HTTP/1.1 200 OK', 'Connection: close']);
  expect([door.neighbours.calls.length, door.metrics.inFlight()]).toEqual([1, 0]);
});

test('nor are so many that they would fill the memory', async () => {
  door.isOpen = false;
  let call: PlayedCall | undefined;
  door.neighbours.scripts.set('a', (played) => void (call = played));
  let begun = 0;
  door.server.prependListener('request', () => (begun += 1));
  const socket = door.raw(chatText(door.key, BODY).repeat(20_000));
  let told = '';
  socket.on('data', (part) => (told += String(part)));
  // The connection ends while it is still written to.
  socket.on('error', () => undefined);
  const isClosed = new Promise((resolve) => socket.once('close', resolve));
  await until(() => call !== undefined && begun > 33);
  for (let turn = 0; turn < 100; turn += 1) await oneTurn();
  expect(begun).toBeLessThan(2_000);
  if (call !== undefined) answers(call);
  await isClosed;
  expect(told.match(/^HTTP\/1\.1 .*|"content":"ok"/gm)).toEqual(['HTTP/1.1 200 OK', '"content":"ok"']);
  expect(door.metrics.inFlight()).toBe(0);
});

const UPGRADE = 'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n';

test('a request that offers another protocol is answered in this one; the answer ends the connection unless it is certain that nothing came with the request', async () => {
  const text = chatText(door.key, BODY, { lines: UPGRADE });
  const chunked = text.replace(/content-length: \d+/, 'transfer-encoding: chunked').replace(BODY, `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`);
  for (const sent of [text + chatText(door.key, BODY), chunked, text.replace('upgrade: h2c', 'upgrade:  h2c')]) {
    expect((await readRaw(door.raw(sent))).match(/^HTTP\/1\.1 .*|^connection: .*|"content":"ok"/gim)).toEqual(['HTTP/1.1 200 OK', 'Connection: close', '"content":"ok"']);
  }
  expect(await readRaw(door.raw(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\n${UPGRADE}\r\n`))).toMatch(/^HTTP\/1\.1 200 [^]*^connection: close/im);
  expect([door.neighbours.calls.length, door.metrics.inFlight()]).toEqual([3, 0]);
});

test('a client that offers another protocol with each request keeps its connection, in however many pieces its requests arrive', async () => {
  const socket = door.raw('');
  let told = '';
  socket.on('data', (bytes: Buffer) => (told += bytes.toString()));
  const answers = (): readonly string[] => told.match(/HTTP\/1\.1 .*|^connection: .*|"content":"ok"/gim) ?? [];
  const kept = ['HTTP/1.1 200 OK', 'Connection: keep-alive', '"content":"ok"'];
  for (const [count, lines] of [[1, UPGRADE], [2, UPGRADE], [3, '']] as const) {
    const text = chatText(door.key, BODY, { lines });
    const head = text.indexOf('\r\n\r\n') + 4;
    for (const piece of [text.slice(0, 30), text.slice(30, head), text.slice(head, head + 9), text.slice(head + 9)]) {
      socket.write(piece);
      await oneTurn();
    }
    await until(() => answers().length === 3 * count && told.endsWith('}'));
  }
  expect(answers()).toEqual([...kept, ...kept, ...kept]);
  // What came before is not counted any more: behind another request it is not certain that nothing was lost.
  socket.write(chatText(door.key, BODY, { lines: UPGRADE }));
  await until(() => answers().length === 12);
  expect(answers().slice(9)).toEqual(['HTTP/1.1 200 OK', 'Connection: close', '"content":"ok"']);
  expect([door.neighbours.calls.length, door.metrics.inFlight()]).toEqual([4, 0]);
});

test.each([
  ['the rest of a request whose beginning was lost', chatText('none', BODY), 40],
  ['a whole request behind an empty line that was lost, and what is none', `\r\n${chatText('none', BODY)}NONSENSE\r\n\r\n`, 2],
])('nor does %s cut the stream before it', async (_what, behind, lost) => {
  let call: PlayedCall | undefined;
  door.neighbours.scripts.set('a', (played) => void (call = played));
  const stream = chatText(door.key, JSON.stringify({ ...hello, stream: true }), { lines: UPGRADE });
  let served: Socket | undefined;
  door.server.once('connection', (connection: Socket) => (served = connection));
  const socket = door.raw(stream + behind.slice(0, lost));
  await until(() => call !== undefined);
  socket.write(behind.slice(lost));
  await until(() => served?.bytesRead === stream.length + behind.length);
  await oneTurn();
  if (call !== undefined) streamsWith('ok')(call);
  expect(await readRaw(socket)).toMatch(/^HTTP\/1\.1 200 [^]*^connection: close[^]*"content":"ok"[^]*\[DONE\][^]*\r\n\r\n$/im);
  expect([door.neighbours.calls.length, door.metrics.inFlight()]).toEqual([1, 0]);
});

test('who speaks HTTP/2 without asking is told that it is not spoken here', async () => {
  expect(await readRaw(door.raw('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'))).toMatch(/^HTTP\/1\.1 400 [^]*"Only HTTP\/1\.1 is spoken here, not HTTP\/2\."/);
});

test('a connection of HTTP/1.0 ends behind a body in chunks: what stands before us may have seen its end elsewhere', async () => {
  const head = chatText(door.key, '', { lines: 'connection: keep-alive\r\n' }).replace('HTTP/1.1', 'HTTP/1.0').replace('content-length: 0', 'transfer-encoding: chunked');
  expect(await readRaw(door.raw(`${head}${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`))).toMatch(/^HTTP\/1\.1 200 [^]*connection: close/i);
});

test.each(['/v1/chat/completions#x', '/v1/chat/completions/?a#/x', 'ftp://x/v1/chat/completions', 'HTTPS://x:1/v1/chat/completions?a=b://c'])('a completion is asked for at %s', async (target) => {
  const text = chatText(door.key, BODY, { lines: 'connection: close\r\n' }).replace('/v1/chat/completions', target);
  expect(await readRaw(door.raw(text))).toMatch(/^HTTP\/1\.1 200 /);
});
