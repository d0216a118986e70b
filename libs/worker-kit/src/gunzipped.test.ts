import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip, gzipSync } from 'node:zlib';
import { Gunzipped, isGzip } from './gunzipped.js';
import { createUpstream, type Upstream, type UpstreamCall } from './upstream.js';

let server: Server;
let upstream: Upstream;
let answer: (response: ServerResponse) => void;
let asked: IncomingHttpHeaders | undefined;
let heard: string[];
beforeEach(async () => {
  heard = [];
  server = createServer((request, response) => {
    asked = request.headers;
    request.resume().on('end', () => answer(response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  upstream = createUpstream(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
});
afterEach(async () => {
  await upstream.close();
  server.closeAllConnections();
  server.close();
});

const post = (onData: (bytes: Buffer, call: UpstreamCall) => void = (bytes) => heard.push(bytes.toString())): void => {
  const call = upstream.post({ path: '/', headers: [], body: Buffer.from('{}') }, 'req_1/1', { onHead: (status) => heard.push(String(status)), onData: (bytes) => onData(bytes, call), onEnd: () => heard.push('end'), onError: (kind) => heard.push(kind) });
};
const GZIP = { 'content-encoding': 'gzip' };
const isOver = (): boolean => heard.at(-1) === 'end' || heard.at(-1) === 'disconnected';

test('the provider is asked not to compress', async () => {
  answer = (response) => response.end('plain');
  post();
  await until(isOver);
  expect([asked?.['accept-encoding'], heard]).toEqual(['identity', ['200', 'plain', 'end']]);
});

describe('an answer that is compressed anyway', () => {
  test.each([200, 400])('is delivered unpacked, with its status %d, however it is split', async (status) => {
    const packed = gzipSync('{"id":"1"}');
    answer = (response) => {
      response.writeHead(status, { 'content-encoding': 'GZIP' });
      for (const byte of packed) response.write(Buffer.of(byte));
      response.end();
    };
    post();
    await until(isOver);
    expect([heard[0], heard.slice(1, -1).join(''), heard.at(-1)]).toEqual([String(status), '{"id":"1"}', 'end']);
  });

  test('delivers the content of a stream without delay, including what came before it breaks off', async () => {
    let response: ServerResponse | undefined;
    answer = (given) => (response = given);
    post();
    await until(() => response !== undefined);
    response?.writeHead(200, GZIP);
    const gzip = createGzip();
    gzip.on('data', (bytes: Buffer) => response?.write(bytes));
    for (const word of ['one', 'two']) {
      gzip.write(word);
      gzip.flush();
      await until(() => heard.at(-1) === word);
    }
    gzip.write('three');
    gzip.flush(() => setImmediate(() => response?.destroy()));
    await until(isOver);
    expect(heard).toEqual(['200', 'one', 'two', 'three', 'disconnected']);
  });

  test('and is not valid gzip counts as broken off', async () => {
    answer = (response) => response.writeHead(200, GZIP).end('{"id":"1"}');
    post();
    await until(isOver);
    expect(heard).toEqual(['200', 'disconnected']);
  });

  test.each(['abort', 'release'] as const)('is unpacked no further once its listener has had enough: %s', async (how) => {
    answer = (response) => response.writeHead(200, GZIP).end(gzipSync(Buffer.alloc(64 * 1_024 * 1_024)));
    let bytes = 0;
    post((part, call) => {
      bytes += part.length;
      if (bytes > 1_000_000) call[how]();
    });
    await until(() => bytes > 1_000_000);
    // The same or another connection is in use again: any rest of the first answer would have been delivered by now.
    answer = (response) => response.end('next');
    post();
    await until(() => heard.at(-1) === 'end');
    expect([bytes < 1_100_000, heard]).toEqual([true, ['200', '200', 'next', 'end']]);
  });
});

test('back-pressure of the listener pauses the source', async () => {
  const told: string[] = [];
  let bytes = 0;
  const gunzipped = new Gunzipped({ onData: (part) => (bytes += part.length), onEnd: () => told.push('end'), onBroken: () => told.push('broken'), pauseSource: () => told.push('pause'), resumeSource: () => told.push('resume') });
  gunzipped.pause();
  gunzipped.push(gzipSync(Buffer.alloc(1_024 * 1_024)));
  for (let i = 0; i < 100 && !told.includes('pause'); i += 1) gunzipped.push(gzipSync(Buffer.alloc(1_024 * 1_024)));
  gunzipped.end();
  expect([bytes, told]).toEqual([0, ['pause']]);
  gunzipped.resume();
  await until(() => told.includes('end'));
  expect([bytes > 1_024 * 1_024, told[0]]).toEqual([true, 'pause']);
});

test('nothing is unpacked after a stop', async () => {
  const packed = gzipSync(Buffer.alloc(4 * 1_024 * 1_024));
  const bytes = [0, 0];
  const told: string[] = [];
  const [first, second] = [0, 1].map((n) => new Gunzipped({ onData: (part) => ((bytes[n] = (bytes[n] ?? 0) + part.length), n === 0 && first?.stop()), onEnd: () => told.push(`end ${n}`), onBroken: () => told.push(`broken ${n}`), pauseSource: () => undefined, resumeSource: () => undefined }));
  for (const gunzipped of [first, second]) {
    gunzipped?.push(packed);
    gunzipped?.end();
  }
  await until(() => told.length > 0);
  expect([told, bytes[1], (bytes[0] ?? 0) < 100_000]).toEqual([['end 1'], 4 * 1_024 * 1_024, true]);
});

test.each([['gzip', true], ['x-gzip', true], [' GZip ', true], [undefined, false], ['identity', false], ['br', false], ['gzip, gzip', false], [['gzip', 'gzip'], false]])('content-encoding %j is gzip: %s', (coding, is) => {
  expect(isGzip({ 'content-encoding': coding })).toBe(is);
});
