import { afterEach, expect, test } from '@jest/globals';
import { together } from '@signalbox/runtime/turn';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createUpstream, type UpstreamListener } from './upstream.js';

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

async function originOf(body: string): Promise<string> {
  server = createServer((_request, response) => response.end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

/** Hears one answer; `onData` runs when its body has come, in the turn that ends it. */
async function heardOf(onData: (call: { abort(): void }) => void): Promise<readonly string[]> {
  const origin = await originOf('whole');
  const upstream = createUpstream(origin);
  const heard: string[] = [];
  try {
    await new Promise<void>((resolve) => {
      const listener: UpstreamListener = {
        onHead: (status) => heard.push(String(status)),
        onData: (bytes) => {
          heard.push(bytes.toString());
          onData(call);
          // Two turns later whatever would come has come.
          setImmediate(() => setImmediate(() => setImmediate(resolve)));
        },
        onEnd: () => heard.push('end'),
        onError: (kind) => heard.push(kind),
      };
      const call = upstream.post({ path: '/', headers: [], body: Buffer.from('{}') }, 'req_1/1', listener);
    });
    return heard;
  } finally {
    await upstream.close();
  }
}

test('tells of an answer, its body and its end', async () => {
  expect(await heardOf(() => undefined)).toEqual(['200', 'whole', 'end']);
});

test('tells nothing more of a call that is aborted while its end waits for its turn', async () => {
  expect(await heardOf((call) => together(() => call.abort()))).toEqual(['200', 'whole']);
});
