import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { Socket } from 'node:net';
import { createAllowList } from './allow-list.js';
import { createDialer, type DialerOptions } from './dialer.js';
import { RefusedError } from './refusal.js';

const reasonOf = (text: string, options: DialerOptions = {}): string => {
  const checked = createDialer(options).check(text);
  return checked.ok ? 'ok' : checked.refusal.reason;
};

describe('the text of a URL', () => {
  test.each([
    ['https://example.com/a.png?x=1#y', 'ok'],
    ['http://example.com:80/', 'ok'],
    ['https://93.184.215.14/', 'ok'],
    ['https://[2606:4700:4700::1111]/', 'ok'],
    ['HTTPS://EXAMPLE.COM/', 'ok'],
    ['', 'bad-url'],
    ['example.com/a.png', 'bad-url'],
    ['//example.com/', 'bad-url'],
    ['https://', 'bad-url'],
    [' https://example.com/', 'bad-url'],
    ['https://exam\tple.com/', 'bad-url'],
    ['https://example.com\\@127.0.0.1/', 'bad-url'],
    ['https://user@example.com/', 'bad-url'],
    ['https://user:pass@example.com/', 'bad-url'],
    [`https://example.com/${'a'.repeat(9_000)}`, 'bad-url'],
    ['ftp://example.com/', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['gopher://example.com/', 'scheme'],
    ['data:image/png;base64,AAAA', 'scheme'],
    ['javascript:alert(1)', 'scheme'],
    ['https://example.com:8443/', 'port'],
    ['http://example.com:22/', 'port'],
    ['http://example.com:6379/', 'port'],
    ['http://127.0.0.1/', 'address'],
    ['http://10.1.2.3/', 'address'],
    ['http://169.254.169.254/latest/meta-data/', 'address'],
    ['http://[::1]/', 'address'],
    ['http://[::ffff:10.0.0.1]/', 'address'],
    ['http://[::ffff:a00:1]/', 'address'],
    ['http://[64:ff9b::7f00:1]/', 'address'],
    ['http://[fd00:ec2::254]/', 'address'],
    ['http://0.0.0.0/', 'address'],
    // Spellings that parsers turn into 127.0.0.1, 8.8.8.8 and the like.
    ['http://2130706433/', 'bad-url'],
    ['http://0x7f000001/', 'bad-url'],
    ['http://0177.0.0.1/', 'bad-url'],
    ['http://0x7f.1/', 'bad-url'],
    ['http://127.1/', 'bad-url'],
    ['http://127.0.1/', 'bad-url'],
    ['http://127.0.0.1./', 'bad-url'],
    ['http://127.0.0.%31/', 'bad-url'],
    ['http://①②⑦.0.0.1/', 'bad-url'],
    ['http://127。0。0。1/', 'bad-url'],
    ['http://0x08080808/', 'bad-url'],
    ['http://008.8.8.8/', 'bad-url'],
    ['http://256.256.256.256/', 'bad-url'],
    ['http://1.2.3.4.5/', 'bad-url'],
    ['http:/127.0.0.1/', 'bad-url'],
    ['http:127.0.0.1/', 'bad-url'],
    ['http:///127.0.0.1/', 'bad-url'],
  ])('%s: %s', (text, reason) => {
    expect(reasonOf(text)).toBe(reason);
  });

  test.each([
    ['http://10.1.2.3/', 'ok'],
    ['http://10.2.0.0/', 'address'],
    ['http://10.1.2.3:8080/', 'port'],
    ['https://files.internal:8443/', 'ok'],
    ['https://files.internal:8444/', 'port'],
    ['https://files.internal/', 'ok'],
    ['http://127.0.0.1:9000/', 'ok'],
    ['http://127.0.0.1:9001/', 'port'],
    ['http://127.0.0.1/', 'address'],
    ['http://[fd00::1]:9000/', 'ok'],
    ['http://169.254.169.254:9000/', 'address'],
    ['http://169.254.169.254/', 'address'],
  ])("under the operator's allow list %s: %s", (text, reason) => {
    const allow = createAllowList(['10.1.0.0/16', 'files.internal:8443', '127.0.0.1:9000', '[fd00::1]:9000', '169.254.0.0/16', '169.254.169.254:9000']);
    expect(reasonOf(text, { allow })).toBe(reason);
  });

  test.each(['10.0.0.1/8', 'http://x', 'a b', 'x:99999', '*', ''])('the allow list names its wrong entry %j', (entry) => {
    expect(() => createAllowList([entry])).toThrow(entry);
  });
});

describe('dialing', () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  /** A server on loopback that counts its connections. */
  async function listen(host = '127.0.0.1'): Promise<{ port: number; visits: () => number }> {
    let visits = 0;
    const server = createServer((socket) => {
      visits += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    closers.push(() => new Promise((resolve) => server.close(() => resolve())));
    const address = server.address();
    return { port: typeof address === 'object' && address !== null ? address.port : 0, visits: () => visits };
  }

  const dial = (options: DialerOptions, hostname: string, port: number, protocol = 'http:'): Promise<Socket> =>
    new Promise((resolve, reject) =>
      createDialer(options).connect({ hostname, host: `${hostname}:${String(port)}`, protocol, port: String(port) }, (...[error, socket]) =>
        error === null ? resolve(socket) : reject(error),
      ),
    );
  const refusalOf = (attempt: Promise<Socket>): Promise<string> =>
    attempt.then(
      (socket) => {
        socket.destroy();
        return 'connected';
      },
      (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : String(error)),
    );

  test.each([
    ['127.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['169.254.169.254'],
    ['fe80::1%lo'],
    ['not an address'],
    ['93.184.215.14', '10.0.0.1'],
    ['2606:4700:4700::1111', '127.0.0.1'],
  ])('a name of %s and %s is refused and nobody is dialed', async (...addresses) => {
    const { port, visits } = await listen();
    expect(await refusalOf(dial({ ports: [port], resolve: () => Promise.resolve(addresses) }, 'evil.example', port))).toBe('address');
    expect(visits()).toBe(0);
  });

  test.each(['127.0.0.1', '[::1]', '::1', '[::ffff:127.0.0.1]', '10.0.0.1'])('%s as a host is refused without a look-up', async (hostname) => {
    const resolve = (): Promise<string[]> => Promise.reject(new Error('looked up'));
    expect(await refusalOf(dial({ resolve }, hostname, 80))).toBe('address');
  });

  test('connects to the address that was looked at, after one look-up', async () => {
    const { port, visits } = await listen();
    let lookUps = 0;
    // The name is resolved only once, so a different second answer has no effect.
    const resolve = (): Promise<string[]> => Promise.resolve([lookUps++ === 0 ? '127.0.0.1' : '10.255.255.1']);
    const socket = await dial({ resolve, allow: createAllowList([`files.internal:${String(port)}`]) }, 'files.internal', port);
    expect([socket.remoteAddress, lookUps]).toEqual(['127.0.0.1', 1]);
    await new Promise((resolve_) => socket.once('close', resolve_));
    expect(visits()).toBe(1);
  });

  test('over TLS the server is told the name that was asked for, not the address: its certificate is for the name', async () => {
    let hello = '';
    const server = createServer((socket) => {
      socket.once('data', (bytes) => {
        hello = bytes.toString('latin1');
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => server.close(() => resolve())));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const options = { resolve: () => Promise.resolve(['127.0.0.1']), allow: createAllowList([`files.internal:${String(port)}`]) };
    expect(await refusalOf(dial(options, 'files.internal', port, 'https:'))).toBe('unreachable');
    expect(hello).toContain('files.internal');
  });

  test('goes on to the next address of a name when one does not answer', async () => {
    const { port } = await listen();
    const socket = await dial(
      { resolve: () => Promise.resolve(['127.0.0.2', '127.0.0.1']), ports: [port], allow: createAllowList(['127.0.0.0/8']) },
      'files.internal',
      port,
    );
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });

  test.each([
    ['unresolved', { resolve: () => Promise.resolve([]) }, 'gone.example', 80, 'http:'],
    ['port', {}, 'example.com', 25, 'http:'],
    ['scheme', {}, 'example.com', 80, 'ftp:'],
  ] as const)('is %s when told so', async (reason, options, hostname, port, protocol) => {
    expect(await refusalOf(dial(options, hostname, port, protocol))).toBe(reason);
  });

  test.each([
    ['ENOTFOUND', 'unresolved'],
    ['ENODATA', 'unresolved'],
    ['EBADNAME', 'unresolved'],
    ['ESERVFAIL', 'look-up-failed'],
    ['ETIMEOUT', 'look-up-failed'],
    ['ECANCELLED', 'look-up-failed'],
    ['ECONNREFUSED', 'look-up-failed'],
    ['EREFUSED', 'look-up-failed'],
    ['EAI_AGAIN', 'look-up-failed'],
    ['', 'look-up-failed'],
  ])('a name is wrong only where that is known: %s is %s', async (code, reason) => {
    expect(await refusalOf(dial({ resolve: () => Promise.reject(Object.assign(new Error('told'), { code })) }, 'gone.example', 80))).toBe(reason);
  });

  /** A name server on loopback: response code by query type (1 = IPv4, 28 = IPv6), undefined = no answer. */
  async function nameServer(codes: Readonly<Record<number, number | undefined>>): Promise<string> {
    const socket = createSocket('udp4');
    socket.on('message', (question, { port, address }) => {
      const code = codes[question.readUInt16BE(question.indexOf(0, 12) + 1)];
      if (code === undefined) return;
      const answer = Buffer.from(question);
      answer.writeUInt16BE(0x8180 + code, 2);
      socket.send(answer, port, address);
    });
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => socket.close(() => resolve())));
    return `127.0.0.1:${String(socket.address().port)}`;
  }

  test.each([
    ['no name by both', { 1: 3, 28: 3 }, 'unresolved'],
    ['no address by both', { 1: 0, 28: 0 }, 'unresolved'],
    ['a failure by both', { 1: 2, 28: 2 }, 'look-up-failed'],
    ['a failure by one', { 1: 3, 28: 2 }, 'look-up-failed'],
  ] as const)('name servers that tell %s', async (_what, codes, reason) => {
    expect(await refusalOf(dial({ nameServers: [await nameServer(codes)] }, 'gone.example', 80))).toBe(reason);
  });

  test('name servers that are silent are waited for no longer than a fetch is', async () => {
    const clock = createFakeClock();
    const dialing = refusalOf(dial({ nameServers: [await nameServer({})], clock }, 'gone.example', 80));
    clock.advance(3_999);
    expect(clock.pendingTimers()).toBe(1);
    clock.advance(1);
    expect(await dialing).toBe('look-up-failed');
  });

  test.each(['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'])('a named host on the metadata address stays closed: %s', async (address) => {
    expect(
      await refusalOf(dial({ resolve: () => Promise.resolve([address]), allow: createAllowList(['metadata.internal']) }, 'metadata.internal', 80)),
    ).toBe('address');
  });

  test('is unreachable when no address answers', async () => {
    const { port } = await listen();
    await closers.pop()?.();
    expect(
      await refusalOf(dial({ ports: [port], resolve: () => Promise.resolve(['127.0.0.1']), allow: createAllowList(['127.0.0.1/32']) }, 'files.internal', port)),
    ).toBe('unreachable');
  });
});
