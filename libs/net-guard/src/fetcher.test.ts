import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createAllowList } from './allow-list.js';
import { createDialer } from './dialer.js';
import { createFetchFile, type Fetched, type FetchFile } from './fetcher.js';
import { mediaTypeOf, sniffMediaType } from './media-type.js';

const PNG = Buffer.from('\x89PNG\r\n\x1a\n0000', 'latin1');
const LIMITS = { bytesMax: 1_000, timeoutMs: 5_000, mediaTypes: ['image/png', 'image/jpeg', 'text/plain'] };

describe('fetching a file', () => {
  let answer: RequestListener;
  let port: number;
  let stop: () => Promise<void>;
  let fetchFile: FetchFile;
  let seen: { url: string; headers: IncomingHttpHeaders }[];

  beforeEach(async () => {
    seen = [];
    answer = (_request, response) => void response.end();
    const server = createServer((request, response) => {
      seen.push({ url: request.url ?? '', headers: request.headers });
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
    stop = () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    fetchFile = createFetchFile({ dialer: dialer(), clock: systemClock });
  });
  afterEach(() => stop());

  const dialer = () =>
    createDialer({
      allow: createAllowList([`files.internal:${String(port)}`]),
      ports: [80, 443, port],
      resolve: (hostname) => Promise.resolve(hostname === 'slow.example' ? new Promise<string[]>(() => undefined) : ['127.0.0.1']),
    });
  const url = (path = '/a.png', host = 'files.internal'): string => `http://${host}:${String(port)}${path}`;
  const reason = async (fetched: Promise<Fetched>): Promise<string> => {
    const result = await fetched;
    return result.ok ? 'ok' : result.refusal.reason;
  };

  test('gives the bytes and what they are, and sends nothing but the URL', async () => {
    answer = (_request, response) => void response.writeHead(200, { 'content-type': 'image/jpg' }).end(PNG);
    expect(await fetchFile(url('/a.png?sig=1#part'), LIMITS)).toEqual({ ok: true, bytes: PNG, mediaType: 'image/png' });
    expect(seen).toMatchObject([{ url: '/a.png?sig=1', headers: { host: `files.internal:${String(port)}`, 'accept-encoding': 'identity' } }]);
    expect(Object.keys(seen[0]?.headers ?? {}).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });

  test.each([
    ['status', (_request, response) => void response.writeHead(404).end()],
    ['status', (_request, response) => void response.writeHead(204).end()],
    ['status', (_request, response) => void response.writeHead(206, { 'content-type': 'image/png' }).end(PNG)],
    ['status', (_request, response) => void response.writeHead(302).end()],
    ['media-type', (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(PNG)],
    ['media-type', (_request, response) => void response.writeHead(200, { 'content-type': 'image/svg+xml' }).end('<svg/>')],
    ['media-type', (_request, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end('<html>')],
    ['media-type', (_request, response) => void response.writeHead(200, { 'content-type': 'application/octet-stream' }).end('%PDF-1.7')],
    ['media-type', (_request, response) => void response.writeHead(200).end('text')],
    ['media-type', (_request, response) => void response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' }).end(PNG)],
    ['too-large', (_request, response) => void response.writeHead(200, { 'content-type': 'image/png', 'content-length': '1001' }).end(Buffer.alloc(1_001))],
    [
      'too-large',
      (_request, response) => void (response.writeHead(200, { 'content-type': 'image/png' }), response.write(PNG), response.end(Buffer.alloc(1_000))),
    ],
    ['unreachable', (_request, response) => void response.destroy()],
    ['unreachable', (_request, response) => void (response.writeHead(200, { 'content-length': '500' }), response.write(PNG, () => response.destroy()))],
    ['unreachable', (_request, response) => void response.writeHead(200, { 'x-long': 'a'.repeat(20_000) }).end(PNG)],
  ] as readonly (readonly [string, RequestListener])[])('refuses as %s: case %#', async (expected, listener) => {
    answer = listener;
    expect(await reason(fetchFile(url(), LIMITS))).toBe(expected);
  });

  test('a file that comes byte by byte is not kept so', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' });
      for (const byte of PNG) response.write(Buffer.of(byte));
      for (let i = 0; i < 30_000; i += 1) response.write('x');
      response.end();
    };
    const join = jest.spyOn(Buffer, 'concat');
    try {
      const file = await fetchFile(url(), { ...LIMITS, bytesMax: 100_000 });
      expect(file.ok && file.bytes.equals(Buffer.concat([PNG, Buffer.alloc(30_000, 'x')]))).toBe(true);
      expect(Math.max(...join.mock.calls.map(([parts]) => parts.length))).toBeLessThan(100);
    } finally {
      join.mockRestore();
    }
  });

  test('takes a text for what its server says it is', async () => {
    answer = (_request, response) => void response.writeHead(200, { 'content-type': 'Text/Plain; charset=utf-8' }).end('hello');
    expect(await fetchFile(url(), LIMITS)).toMatchObject({ ok: true, mediaType: 'text/plain' });
  });

  test('follows a redirect, relative or whole, and checks where it leads', async () => {
    answer = (request, response) => {
      if (request.url === '/a.png') response.writeHead(302, { location: '/b.png' }).end();
      else if (request.url === '/b.png') response.writeHead(307, { location: url('/c.png') }).end();
      else response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
    };
    expect(await reason(fetchFile(url(), LIMITS))).toBe('ok');
    expect(seen.map((request) => request.url)).toEqual(['/a.png', '/b.png', '/c.png']);
  });

  test.each([
    ['address', 'http://169.254.169.254/latest/meta-data/'],
    ['address', 'http://[::1]/'],
    ['address', 'http://0x7f.1/'],
    ['address', 'http://other.example/'],
    ['port', 'http://files.internal:22/'],
    ['scheme', 'file:///etc/passwd'],
    ['bad-url', 'http://user:pass@files.internal/'],
    ['bad-url', 'http://'],
  ])('a redirect is refused as %s: %s', async (expected, location) => {
    answer = (_request, response) => void response.writeHead(302, { location }).end();
    expect(await reason(fetchFile(url(), LIMITS))).toBe(expected);
    expect(seen).toHaveLength(1);
  });

  test('gives up after four redirects', async () => {
    answer = (_request, response) => void response.writeHead(302, { location: '/again' }).end();
    expect(await reason(fetchFile(url(), LIMITS))).toBe('too-many-redirects');
    expect(seen).toHaveLength(5);
  });

  test('a host that is not allowed hears nothing', async () => {
    expect(await reason(fetchFile(url('/', 'other.example'), LIMITS))).toBe('address');
    expect(seen).toHaveLength(0);
  });

  test.each(['/hang', '/drip'])('is over at its deadline, however the server dawdles: %s', async (path) => {
    const clock = createFakeClock();
    let arrived: () => void = () => undefined;
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    answer = (request, response) => {
      if (request.url === '/drip') response.writeHead(200, { 'content-type': 'image/png' }).write('\x89');
      arrived();
    };
    const fetched = createFetchFile({ dialer: dialer(), clock })(url(path), LIMITS);
    await arrival;
    clock.advance(5_000);
    expect(await reason(fetched)).toBe('timeout');
    expect(clock.pendingTimers()).toBe(0);
  });

  test('is over at its deadline while a name server dawdles', async () => {
    const clock = createFakeClock();
    const fetched = createFetchFile({ dialer: dialer(), clock })(url('/', 'slow.example'), LIMITS);
    clock.advance(5_000);
    expect(await reason(fetched)).toBe('timeout');
  });

  test('a client cannot tell a name that leads inside from one that does not exist', async () => {
    const sentences = await Promise.all(
      [['10.0.0.1'], []].map(async (addresses) => {
        const result = await createFetchFile({ dialer: createDialer({ resolve: () => Promise.resolve(addresses) }), clock: systemClock })(
          'http://x.example/',
          LIMITS,
        );
        return result.ok ? '' : result.refusal.sentence;
      }),
    );
    expect(new Set(sentences).size).toBe(1);
  });
});

describe('media types', () => {
  test.each([
    ['\x89PNG\r\n\x1a\n', 'image/png'],
    ['\xff\xd8\xff\xe0', 'image/jpeg'],
    ['GIF87a', 'image/gif'],
    ['GIF89a', 'image/gif'],
    ['RIFF\x10\x00\x00\x00WEBPVP8 ', 'image/webp'],
    ['\x00\x00\x00\x18ftypheic', 'image/heic'],
    ['\x00\x00\x00\x18ftypmif1', 'image/heif'],
    ['\x00\x00\x00\x18ftypavif', 'image/avif'],
    ['%PDF-1.4', 'application/pdf'],
    ['RIFF\x10\x00\x00\x00WAVEfmt ', undefined],
    ['<svg', undefined],
    ['', undefined],
  ])('%j is %s', (head, type) => {
    expect(sniffMediaType(Buffer.from(head, 'latin1'))).toBe(type);
  });

  test.each([
    ['GIF89a', 'image/png', ['image/png', 'image/gif'], 'image/gif'],
    ['GIF89a', 'image/gif', ['image/png'], undefined],
    ['nothing', 'image/gif', ['image/gif'], undefined],
    ['nothing', 'text/plain; charset=x', ['text/plain'], 'text/plain'],
    ['nothing', '', ['text/plain'], undefined],
    ['\r\n\r\n%PDF-1.7', 'application/pdf', ['application/pdf'], 'application/pdf'],
    ['\ufeff%PDF-1.7', 'application/octet-stream', ['application/pdf'], 'application/pdf'],
    ['\n%PDF-1.7', 'application/pdf', ['image/png'], undefined],
    ['see %PDF-1.7', 'text/plain', ['text/plain', 'application/pdf'], 'text/plain'],
    [`${' '.repeat(1_024)}%PDF-1.7`, 'application/pdf', ['application/pdf'], undefined],
  ])('%j said to be %j, taken %j: %s', (bytes, declared, accepted, type) => {
    expect(mediaTypeOf(Buffer.from(bytes), declared, accepted)).toBe(type);
  });
});
