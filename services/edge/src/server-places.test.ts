/** Places of requests: incomplete and slow requests of one account leave places to others. */
import { makeApiKey } from '@signalbox/kernel/api-key';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@signalbox/testkit/until';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { createRequestPlaces } from './domain/request-places.js';
import { accountWith, keyWith } from './testing/callers.js';
import { chatText, errorOf, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { events, type PlayedCall } from './testing/neighbours.js';
import { answersWith } from './testing/scripts.js';

const PLACES = 10;

let door: Door;
let other: string;
const sockets: Socket[] = [];
beforeEach(async () => {
  door = await startDoor({ places: createRequestPlaces(PLACES, 0) });
  door.neighbours.scripts.set('a', answersWith('ok'));
  other = makeApiKey(randomBytes);
  door.accounts.add(other, { key: keyWith({ id: 'key_other' }), account: accountWith({ id: 'acct_other' }) });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  return door.stop();
});

const asOther = (): Promise<Response> => door.chat(hello, { authorization: `Bearer ${other}` });
/** Sends only the first byte of a body; collects the answer. */
const begins = (): { readonly told: string } => {
  const socket = door.raw(chatText(door.key, '{', { length: 100 }));
  sockets.push(socket);
  const heard = { told: '' };
  socket.on('data', (bytes: Buffer) => (heard.told += String(bytes)));
  return heard;
};

test('incomplete requests leave places to other accounts, and to complete requests of their own', async () => {
  expect((await asOther()).status).toBe(200);
  expect((await door.chat(hello)).status).toBe(200);
  const idle = Array.from({ length: 3 * PLACES }, begins);
  await until(() => idle.filter(({ told }) => told !== '').length === 3 * PLACES - PLACES / 2);
  for (const { told } of idle) if (told !== '') expect(told).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*"code":"overloaded"/i);
  expect((await asOther()).status).toBe(200);
  expect(await readRaw(door.raw(chatText(door.key, JSON.stringify(hello), { lines: 'connection: close\r\n' })))).toMatch(/^HTTP\/1\.1 200 /);
  for (const socket of sockets.splice(0)) socket.destroy();
  await until(() => door.metrics.inFlight() === 0);
  const again = Array.from({ length: PLACES / 2 }, begins);
  await until(() => door.metrics.inFlight() === PLACES / 2);
  expect(again.every(({ told }) => told === '')).toBe(true);
});

test('slow answers of one account leave places to others, and free them at their end', async () => {
  expect((await asOther()).status).toBe(200);
  const held: PlayedCall[] = [];
  door.neighbours.scripts.set('a', (call) => void held.push(call));
  const slow = Array.from({ length: 0.8 * PLACES }, () => door.chat(hello));
  await until(() => held.length === slow.length);
  const refused = await door.chat(hello);
  expect([await errorOf(refused), refused.headers.get('retry-after')]).toEqual([[503, 'server_error', 'overloaded'], '1']);
  door.neighbours.scripts.set('a', answersWith('ok'));
  expect((await asOther()).status).toBe(200);
  for (const call of held) call.play(events.failed('BAD_REQUEST', { status: 400 }));
  await Promise.all(slow);
  expect((await door.chat(hello)).status).toBe(200);
});

test('a single account may take all places', async () => {
  const held: PlayedCall[] = [];
  door.neighbours.scripts.set('a', (call) => void held.push(call));
  const all = Array.from({ length: PLACES }, () => door.chat(hello));
  await until(() => held.length === PLACES);
  expect((await door.chat(hello)).status).toBe(503);
  for (const call of held) call.play(events.failed('BAD_REQUEST', { status: 400 }));
  await Promise.all(all);
});

test('aborted bodies count as bad requests, and many of them block the key for a moment', async () => {
  for (let n = 0; n <= 200; n += 1) {
    const socket = door.raw(chatText(door.key, '{', { length: 100 }));
    await until(() => door.metrics.inFlight() === 1);
    socket.destroy();
    await until(() => door.metrics.inFlight() === 0);
  }
  expect(await errorOf(await door.chat(hello))).toEqual([429, 'requests', 'rate_limit_exceeded']);
  expect((await asOther()).status).toBe(200);
});
