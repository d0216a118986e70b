import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createAllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import { together } from '@signalbox/runtime/turn';
import { oneTurn, until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import { createUpstream, idleMsOf, type Upstream, type UpstreamCall, type UpstreamListener } from './upstream.js';

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

async function originOf(body: string): Promise<string> {
  server = createServer((_request, response) => response.end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

/** Records the calls for one answer; `onData` runs when the body arrives, in the turn that ends it. */
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
          // Two turns later, any further call would have been made.
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

describe('an address that an account gave', () => {
  let sent: string[];
  let failed: string[];
  let upstream: Upstream;
  beforeEach(() => {
    sent = [];
    failed = [];
  });
  afterEach(async () => {
    await upstream.close();
    server?.closeAllConnections();
  });
  const dialing = (...origins: readonly string[]): void => {
    upstream = createUpstream('http://127.0.0.1:1', createDialer({ allow: createAllowList(origins.map((origin) => new URL(origin).host)) }));
  };
  const postTo = (origin: string, name: string): UpstreamCall =>
    upstream.post({ path: '/', headers: [], body: Buffer.from('{}'), origin, isGuarded: true }, name, { onSent: () => sent.push(name), onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: (kind) => failed.push(`${name} ${kind}`) });
  const hanging = async (): Promise<string> => {
    server = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  };

  test('makes only requests to the same address wait, until a call there ends', async () => {
    const origin = await hanging();
    const other = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const elsewhere = `http://127.0.0.1:${String((other.address() as AddressInfo).port)}`;
    dialing(origin, elsewhere);
    const calls = Array.from({ length: 64 }, (_, n) => postTo(origin, `hangs-${String(n)}`));
    await until(() => sent.length >= 64);
    postTo(origin, 'waits');
    postTo(elsewhere, 'elsewhere');
    await until(() => sent.length >= 65);
    expect(sent.at(-1)).toBe('elsewhere');
    calls[0]?.abort();
    await until(() => sent.length >= 66);
    expect([sent.at(-1), failed]).toEqual(['waits', []]);
    other.closeAllConnections();
    other.close();
  });

  test.each([['EMFILE', 'unable'], ['ECONNREFUSED', 'connect']])('that cannot be connected to for %s is told as %s', async (code, loss) => {
    const refusal = Object.assign(new Error('no'), { code, syscall: 'connect' });
    upstream = createUpstream('http://127.0.0.1:1', { ...createDialer(), connect: (_target, callback) => void setImmediate(() => callback(refusal, null)) });
    postTo('http://somewhere.example', 'asks');
    await until(() => failed.length > 0);
    expect([failed, sent]).toEqual([[`asks ${loss}`], []]);
  });

  test('has a queue of at most 256', async () => {
    const origin = await hanging();
    dialing(origin);
    for (let n = 0; n < 64; n += 1) postTo(origin, `hangs-${String(n)}`);
    await until(() => sent.length >= 64);
    for (let n = 0; n < 257; n += 1) postTo(origin, `waits-${String(n)}`);
    expect(failed).toEqual(['waits-256 connect']);
  });

  test('has room again when a waiting request is given up, and no connection is closed when its turn would have come', async () => {
    const held: ServerResponse[] = [];
    let connections = 0;
    server = createServer((_request, response) => void held.push(response)).listen(0, '127.0.0.1');
    server.on('connection', () => (connections += 1));
    await once(server, 'listening');
    const origin = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    dialing(origin);
    for (let n = 0; n < 64; n += 1) postTo(origin, `runs-${String(n)}`);
    while (held.length < 64) await new Promise(setImmediate);
    const waiting = Array.from({ length: 256 }, (_, n) => postTo(origin, `waits-${String(n)}`));
    for (const call of waiting) call.abort();
    postTo(origin, 'next');
    held[0]?.end('over');
    while (sent.length < 65) await new Promise(setImmediate);
    while (held.length < 65) await new Promise(setImmediate);
    expect([sent.at(-1), failed, connections]).toEqual(['next', [], 64]);
  });

  test('serves one request after another without end', async () => {
    const origin = await originOf('whole');
    dialing(origin);
    for (let n = 0; n < 66; n += 1) {
      await new Promise<void>((resolve, reject) => {
        upstream.post({ path: '/', headers: [], body: Buffer.from('{}'), origin, isGuarded: true }, `req_${String(n)}`, { onHead: () => undefined, onData: () => undefined, onEnd: resolve, onError: reject });
      });
    }
  });

  test('fails the waiting requests when it is closed', async () => {
    const origin = await hanging();
    dialing(origin);
    for (let n = 0; n < 64; n += 1) postTo(origin, `hangs-${String(n)}`);
    while (sent.length < 64) await new Promise(setImmediate);
    postTo(origin, 'waits');
    await upstream.close();
    expect(failed[0]).toBe('waits connect');
    expect(failed).toHaveLength(65);
  });
});

describe('connections are shared out between accounts', () => {
  let upstream: Required<Upstream>;
  const held: ServerResponse[] = [];
  const sent: string[] = [];
  beforeEach(async () => {
    server = createServer((_request, response) => void held.push(response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    upstream = createUpstream(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, undefined, 10);
    sent.length = held.length = 0;
  });
  afterEach(async () => {
    await upstream.close();
    server?.closeAllConnections();
  });
  const post = (accountId: string, place = upstream.enter({}, accountId)): UpstreamCall =>
    upstream.post({ path: '/', headers: [], body: Buffer.from('{}') }, accountId, { onSent: () => sent.push(accountId), onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: () => undefined }, place);

  test('an account with slow answers on most of them leaves some to the others', async () => {
    post('acct_2');
    for (let n = 0; n < 20; n += 1) post('acct_1');
    await until(() => held.length >= 8);
    post('acct_2');
    await until(() => held.length >= 9);
    expect(sent.filter((accountId) => accountId === 'acct_2')).toHaveLength(2);
  });

  test('an account that is alone may have them all; waiting requests get their turn by what their account has, however many wait before them', async () => {
    for (let n = 0; n < 30; n += 1) post('acct_1');
    await until(() => held.length >= 10);
    for (let n = 0; n < 2; n += 1) post('acct_2');
    for (let n = 0; n < 2; n += 1) {
      held[n]?.end('over');
      await until(() => held.length >= 11 + n);
    }
    expect(sent.slice(10)).toEqual(['acct_2', 'acct_2']);
  });

  test('the next request is of the account that has the fewest', async () => {
    for (const accountId of ['acct_2', 'acct_2', ...new Array<string>(7).fill('acct_1'), 'acct_4']) post(accountId);
    await until(() => held.length >= 10);
    for (const accountId of ['acct_1', 'acct_2', 'acct_3']) post(accountId);
    for (let n = 0; n < 2; n += 1) {
      held[n]?.end('over');
      await until(() => held.length >= 11 + n);
    }
    expect(sent.slice(10)).toEqual(['acct_3', 'acct_2']);
  });

  test('an unused place goes to the next, even one that was still waiting; a place with a posted request stays taken until that is over', async () => {
    const places = Array.from({ length: 10 }, () => upstream.enter({}, 'acct_1'));
    const late = upstream.enter({}, 'acct_1');
    const next = upstream.enter({}, 'acct_1');
    expect([places.every(({ turn }) => turn === undefined), late.turn === undefined, next.turn === undefined]).toEqual([true, false, false]);
    const call = post('acct_1', places[0]);
    places[0]?.leave();
    late.leave();
    for (let turn = 0; turn < 10; turn += 1) await oneTurn();
    expect(next.turn).toBeDefined();
    places[1]?.leave();
    places[1]?.leave();
    await next.turn;
    const last = upstream.enter({}, 'acct_1');
    expect(last.turn).toBeDefined();
    await until(() => held.length >= 1);
    call.abort();
    await last.turn;
  });
});

test('reports the head of an answer, its body and its end', async () => {
  expect(await heardOf(() => undefined)).toEqual(['200', 'whole', 'end']);
});

test('reports nothing more of a call that is aborted while its end is pending', async () => {
  expect(await heardOf((call) => together(() => call.abort()))).toEqual(['200', 'whole']);
});

test('a host that goes on sending after a complete answer is cut off', async () => {
  let goOn: () => void = () => undefined;
  let cut: Promise<unknown> = Promise.resolve();
  server = createServer((request, response) => {
    cut = once(request.socket, 'close');
    response.write('whole');
    goOn = () => response.write('x'.repeat(8_192));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = createUpstream(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  const heard: string[] = [];
  await new Promise<void>((resolve) => {
    const onData = (bytes: Buffer): void => {
      heard.push(bytes.toString());
      call.release();
      resolve();
    };
    const call = upstream.post({ path: '/', headers: [], body: Buffer.from('{}') }, 'req_1/1', { onHead: () => undefined, onData, onEnd: () => heard.push('end'), onError: (kind) => heard.push(kind) });
  });
  goOn();
  await cut;
  expect(heard).toEqual(['whole']);
  await upstream.close();
});

describe('a request has been given to the provider', () => {
  let tcp: TcpServer;
  let upstream: Upstream | undefined;
  const sockets: Socket[] = [];
  const portOf = ({ address }: { address(): unknown }): string => String((address() as AddressInfo).port);
  /** Accepts connections and reads nothing from them. */
  const listen = async (): Promise<string> => {
    tcp = createTcpServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => undefined);
      sockets.push(socket);
    }).listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    return `127.0.0.1:${portOf({ address: () => tcp.address() })}`;
  };
  const SILENT: UpstreamListener = { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: () => undefined };
  const post = (through: Upstream, bytes = 2, isGuarded = false): UpstreamCall => through.post({ path: '/', headers: [], body: Buffer.alloc(bytes, 'x'), isGuarded }, 'req_1/1', SILENT);
  afterEach(async () => {
    await upstream?.close();
    for (const socket of sockets.splice(0)) socket.destroy();
    tcp.close();
  });

  test('once all of it is written to a connection, until that is closed', async () => {
    upstream = createUpstream(`http://${await listen()}`);
    const call = post(upstream);
    expect(call.isSent()).toBe(false);
    await until(() => call.isSent());
    call.abort();
    expect(call.isSent()).toBe(false);
  });

  test('on a connection that served before, too', async () => {
    upstream = createUpstream(await originOf('whole'));
    const through = upstream;
    await new Promise<void>((resolve) => void through.post({ path: '/', headers: [], body: Buffer.from('{}') }, 'req_1/1', { ...SILENT, onEnd: resolve }));
    const call = post(through);
    await until(() => call.isSent());
  });

  test('not while the rest of its body waits in the socket', async () => {
    upstream = createUpstream(`http://${await listen()}`);
    const call = post(upstream, 32 * 1_048_576);
    await until(() => sockets.length >= 1);
    // Within these turns the kernel takes what it can buffer, which is only a part.
    for (let turn = 0; turn < 100; turn += 1) await oneTurn();
    expect(call.isSent()).toBe(false);
    sockets[0]?.resume();
    await until(() => call.isSent());
  });

  test('not before the connection is established', async () => {
    upstream = createUpstream(`https://${await listen()}`);
    const call = post(upstream);
    await until(() => sockets.length >= 1);
    for (let turn = 0; turn < 100; turn += 1) await oneTurn();
    expect(call.isSent()).toBe(false);
  });

  test('not while it waits for a connection of its pool', async () => {
    const host = await listen();
    upstream = createUpstream(`http://${host}`, createDialer({ allow: createAllowList([host]) }));
    const through = upstream;
    const calls = Array.from({ length: 65 }, () => post(through, 2, true));
    await until(() => calls.filter((call) => call.isSent()).length === 64 && sockets.length === 64);
    expect(calls.at(-1)?.isSent()).toBe(false);
    calls[0]?.abort();
    await until(() => calls.at(-1)?.isSent() === true);
  });
});

describe('a connection that is lost', () => {
  let tcp: TcpServer;
  let upstream: Required<Upstream>;
  afterEach(async () => {
    await upstream.close();
    tcp.close();
  });
  const WHOLE = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole';
  /** Answers the requests of each connection with these words in order, and closes it behind one that is not whole. */
  const answering = async (...answers: readonly string[]): Promise<void> => {
    tcp = createTcpServer((socket) => {
      let asked = 0;
      socket.on('error', () => undefined);
      socket.on('data', () => {
        const answer = answers[asked++] ?? '';
        if (answer === WHOLE) socket.write(answer);
        else socket.end(answer);
      });
    }).listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    upstream = createUpstream(`http://127.0.0.1:${String((tcp.address() as AddressInfo).port)}`);
  };
  /** How a request ends. Its connection is free again by then, which undici makes it a turn after the answer. */
  const ask = async (): Promise<string> => {
    const end = await new Promise<string>((resolve) => void upstream.post({ path: '/', headers: [], body: Buffer.from('{}') }, 'req_1/1', { onHead: () => undefined, onData: () => undefined, onEnd: () => resolve('end'), onError: resolve }));
    await oneTurn();
    await oneTurn();
    return end;
  };

  test('is stale if it served a request before, and is closed before it answers the next', async () => {
    await answering(WHOLE, WHOLE);
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual(['end', 'end', 'stale', 'end']);
  });

  test('is stale alone: who asks again does not get another one that has been idle as long', async () => {
    await answering(WHOLE);
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['end', 'end', 'end']);
    expect(await Promise.all([ask(), ask()])).toEqual(['stale', 'stale']);
    expect(await Promise.all([ask(), ask()])).toEqual(['end', 'end']);
  });

  test.each([
    ['its first request was not answered', []],
    ['the answer had begun', [WHOLE, 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwh']],
    ['an interim answer had come', [WHOLE, 'HTTP/1.1 102 Processing\r\n\r\n']],
    ['what came is not HTTP', [WHOLE, 'oops\r\n\r\n']],
  ])('is not stale if %s', async (_what, answers) => {
    await answering(...answers);
    for (let n = 1; n < answers.length; n += 1) expect(await ask()).toBe('end');
    expect(await ask()).toBe('disconnected');
  });
});

test.each([
  ['https://api.example', 0, false, 50_000],
  ['https://api.example', 31, false, 50_000],
  ['https://api.example', 32, false, 4_000],
  ['https://own.example', 1, true, 50_000],
  ['https://own.example', 2, true, 4_000],
  ['http://vllm:8000', 0, false, 4_000],
])('an idle connection to %s that is number %i (given by an account: %s) is kept for %i ms', (origin, place, isGuarded, ms) => {
  expect(idleMsOf(new URL(origin), place, isGuarded)).toBe(ms);
});
