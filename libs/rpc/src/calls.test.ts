import { afterEach, describe, expect, test } from '@jest/globals';
import type { AdmitRequest, AdmitRequest__Output, AdmitResponse, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DispatchEvent, DispatchEvent__Output, DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import type { ServiceArea } from '@signalbox/contracts/load';
import type { CallInfo, Emitter, Handlers, RpcClient } from './call.js';
import type { Keepalive } from './channel.js';
import { createRpcClient } from './client.js';
import { createRpcServer, type RpcServer } from './server.js';

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Pair {
  readonly client: RpcClient;
  readonly server: RpcServer;
}

async function connect(door: 'link' | 'unary' | 'in-process', area: ServiceArea, handlers: Handlers, keepalive?: Keepalive): Promise<Pair> {
  const doors = door === 'in-process' ? new Map<string, object>() : undefined;
  const server = createRpcServer({ area, handlers, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, doors, ...(keepalive === undefined ? {} : { keepalive }) });
  const port = await server.start();
  open.push(() => server.stop(0));
  const client = createRpcClient({ area, addresses: [`127.0.0.1:${String(port)}`], door: door === 'unary' ? door : 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000, doors, ...(keepalive === undefined ? {} : { keepalive }) });
  open.push(() => client.close());
  return { client, server };
}

function admitting(admit: (request: AdmitRequest__Output, call: CallInfo) => AdmitResponse | Promise<AdmitResponse>): Handlers {
  return { unary: { Admit: admit } };
}

function dispatching(dispatch: (request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>) => Promise<void>): Handlers {
  return { unary: {}, stream: { Dispatch: dispatch } };
}

function admit(client: RpcClient, request: AdmitRequest = {}, options: Parameters<RpcClient['unary']>[2] = {}): Promise<AdmitResponse__Output> {
  return client.unary<AdmitRequest, AdmitResponse__Output>('Admit', request, options);
}

interface Gathered {
  readonly messages: DispatchEvent__Output[];
  readonly fault: Fault | undefined;
}

function gather(client: RpcClient, request: object = {}, options: Parameters<RpcClient['stream']>[3] = {}): Promise<Gathered> {
  const messages: DispatchEvent__Output[] = [];
  return new Promise((resolve) => {
    client.stream<object, DispatchEvent__Output>('Dispatch', request, { onMessage: (message) => messages.push(message), onEnd: (fault) => resolve({ messages, fault }) }, options);
  });
}

const untilAborted = (call: CallInfo): Promise<Fault> => new Promise((resolve) => call.signal.addEventListener('abort', () => resolve(call.signal.reason as Fault), { once: true }));

const chunk = (bytes: Buffer): DispatchEvent => ({ chunk: { choices: bytes } });

describe.each(['link', 'unary', 'in-process'] as const)('through the %s door', (door) => {
  test('answers a unary call with what the handler returns', async () => {
    const { client } = await connect(door, 'quota', admitting((request) => ({ decision: 'ADMITTED', heldNanoUsd: request.amountNanoUsd, limitSource: request.accountId })));
    const answer = await admit(client, { accountId: 'acct_ü', amountNanoUsd: '9007199254740993' });
    expect(answer).toMatchObject({ decision: 'ADMITTED', heldNanoUsd: '9007199254740993', limitSource: 'acct_ü' });
    expect(client.isConnected()).toBe(true);
  });

  test('answers with an empty message', async () => {
    const { client } = await connect(door, 'quota', { unary: { Release: () => ({}) } });
    await expect(client.unary('Release', { requestId: 'r' })).resolves.toEqual({});
  });

  test('carries request id, traceparent and the deadline to the handler', async () => {
    const seen: unknown[] = [];
    const { client } = await connect(door, 'quota', admitting((_request, call) => {
      seen.push(call.requestId, call.traceparent, call.remainingMs() > 3_000 && call.remainingMs() <= 5_000);
      return {};
    }));
    await admit(client, {}, { requestId: 'req', traceparent: '00-a-b-01', deadlineMs: 5_000 });
    expect(seen).toEqual(['req', '00-a-b-01', true]);
  });

  test('streams messages in order and ends', async () => {
    const { client } = await connect(door, 'worker', dispatching((_request, _call, emit) => {
      for (let i = 0; i < 100; i += 1) emit.write(chunk(Buffer.from(String(i))));
      return Promise.resolve();
    }));
    const { messages, fault } = await gather(client);
    expect(fault).toBeUndefined();
    expect(messages.map((message) => message.chunk?.choices.toString())).toEqual(Array.from({ length: 100 }, (_, i) => String(i)));
  });

  test('carries a fault with its code and retry hint', async () => {
    const { client } = await connect(door, 'quota', admitting(() => {
      throw new Fault('store_unavailable', 'redis is away', { retryAfterMs: 1_500 });
    }));
    await expect(admit(client)).rejects.toMatchObject({ name: 'Fault', code: 'store_unavailable', retryAfterMs: 1_500, message: 'store_unavailable: redis is away' });
  });

  test('turns anything else thrown into internal_error without its text', async () => {
    const { client } = await connect(door, 'quota', admitting(() => Promise.reject(new Error('a secret'))));
    const fault = await admit(client).catch((error: unknown) => error);
    expect(fault).toMatchObject({ code: 'internal_error' });
    expect(String(fault)).not.toContain('secret');
  });

  test('delivers the messages that came before a fault of the stream', async () => {
    const { client } = await connect(door, 'worker', dispatching((_request, _call, emit) => {
      emit.write(chunk(Buffer.from('a')));
      return Promise.reject(new Fault('overloaded', 'full'));
    }));
    const { messages, fault } = await gather(client);
    expect(messages).toHaveLength(1);
    expect(fault?.code).toBe('overloaded');
  });

  test('answers unknown_method for an RPC without a handler', async () => {
    const { client } = await connect(door, 'quota', admitting(() => ({})));
    await expect(client.unary('Show', {})).rejects.toMatchObject({ code: 'unknown_method' });
    await expect(client.unary('Nonsense', {})).rejects.toMatchObject({ code: 'unknown_method' });
  });

  test('ends a call at its deadline on both sides', async () => {
    let reason: Promise<Fault> | undefined;
    const { client } = await connect(door, 'quota', admitting(async ({ accountId }, call) => {
      if (accountId === 'first') return {};
      reason = untilAborted(call);
      throw await reason;
    }));
    // Connect first: a call that gets no link before its deadline ends with `peer_unavailable` instead.
    await admit(client, { accountId: 'first' });
    await expect(admit(client, {}, { deadlineMs: 500 })).rejects.toMatchObject({ code: 'deadline_exceeded' });
    expect(['deadline_exceeded', 'cancelled']).toContain((await reason)?.code);
  });

  test('cancels a unary call by its AbortSignal, at the handler too', async () => {
    const abort = new AbortController();
    let tell: (fault: Fault) => void = () => undefined;
    const told = new Promise<Fault>((resolve) => (tell = resolve));
    const { client } = await connect(door, 'quota', admitting(async (_request, call) => {
      const reason = untilAborted(call);
      abort.abort();
      tell(await reason);
      return {};
    }));
    await expect(admit(client, {}, { signal: abort.signal })).rejects.toMatchObject({ code: 'cancelled' });
    expect((await told).code).toBe('cancelled');
    await expect(admit(client, {}, { signal: abort.signal })).rejects.toMatchObject({ code: 'cancelled' });
  });

  test('cancels a stream, at the handler too, and ends once', async () => {
    let tell: (fault: Fault) => void = () => undefined;
    const told = new Promise<Fault>((resolve) => (tell = resolve));
    const { client } = await connect(door, 'worker', dispatching(async (_request, call, emit) => {
      emit.write(chunk(Buffer.from('x')));
      tell(await untilAborted(call));
    }));
    const ends: (string | undefined)[] = [];
    await new Promise<void>((resolve) => {
      const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, {
        onMessage: () => call.cancel(),
        onEnd: (fault) => {
          ends.push(fault?.code);
          resolve();
        },
      });
    });
    expect((await told).code).toBe('cancelled');
    expect(ends).toEqual(['cancelled']);
  });

  test('says why a stream is cancelled where the door can: its own client left', async () => {
    let tell: (fault: Fault) => void = () => undefined;
    const told = new Promise<Fault>((resolve) => (tell = resolve));
    const { client } = await connect(door, 'worker', dispatching(async (_request, call, emit) => {
      emit.write(chunk(Buffer.from('x')));
      tell(await untilAborted(call));
    }));
    const end = await new Promise<Fault | undefined>((resolve) => {
      const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: () => call.cancel('client_left'), onEnd: resolve });
    });
    expect([(await told).code, end?.code]).toEqual([door === 'unary' ? 'cancelled' : 'client_left', 'cancelled']);
  });

  test('a call that ends for another reason says nothing of a client', async () => {
    let tell: (fault: Fault) => void = () => undefined;
    const told = new Promise<Fault>((resolve) => (tell = resolve));
    const { client } = await connect(door, 'worker', dispatching(async (_request, call, emit) => {
      emit.write(chunk(Buffer.from('x')));
      tell(await untilAborted(call));
    }));
    const onMessage = (): void => {
      throw new Error('a bug of the listener');
    };
    await new Promise((resolve) => void client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage, onEnd: resolve }));
    expect((await told).code).toBe('cancelled');
  });

  test('carries large messages both ways', async () => {
    const big = Buffer.alloc(5_000_000, 'abcdefghij');
    const { client } = await connect(door, 'worker', dispatching((request, _call, emit) => {
      emit.write(chunk(request.fields[0]?.value ?? Buffer.alloc(0)));
      return Promise.resolve();
    }));
    const { messages, fault } = await gather(client, { fields: [{ name: 'messages', value: big }] });
    expect(fault).toBeUndefined();
    expect(messages[0]?.chunk?.choices.equals(big)).toBe(true);
  });

  test.each([false, true])('carries a large message and those that follow it at once, to a client that pauses: %j', async (isPaused) => {
    const sizes = [10, 5_000_000, 10, 50_000, 10];
    let wrote: () => void = () => undefined;
    const isWritten = new Promise<void>((resolve) => (wrote = resolve));
    const { client } = await connect(door, 'worker', dispatching((_request, _call, emit) => {
      for (const size of sizes) emit.write(chunk(Buffer.alloc(size)));
      wrote();
      return Promise.resolve();
    }));
    const received: number[] = [];
    const fault = await new Promise<Fault | undefined>((resolve) => {
      const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: (message) => received.push(message.chunk?.choices.length ?? 0), onEnd: resolve });
      if (!isPaused) return;
      call.pause();
      void isWritten.then(() => call.resume());
    });
    expect([fault, received]).toEqual([undefined, sizes]);
  });

  test('holds the server back while the client pauses', async () => {
    let written = 0;
    let stalled: () => void = () => undefined;
    const isStalled = new Promise<void>((resolve) => (stalled = resolve));
    const { client } = await connect(door, 'worker', dispatching(async (_request, _call, emit) => {
      for (let i = 0; i < 2_000; i += 1) {
        written += 10_000;
        if (!emit.write(chunk(Buffer.alloc(10_000)))) {
          if (written > 300_000 || door !== 'unary') stalled();
          await emit.drained();
        }
      }
    }));
    let received = 0;
    let end: (fault: Fault | undefined) => void = () => undefined;
    const ended = new Promise<Fault | undefined>((resolve) => (end = resolve));
    const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: (message) => (received += message.chunk?.choices.length ?? 0), onEnd: end }, { deadlineMs: 60_000 });
    call.pause();
    await isStalled;
    expect(written).toBeLessThan(2_000_000);
    call.resume();
    expect(await ended).toBeUndefined();
    expect(received).toBe(20_000_000);
  }, 60_000);

  test('fails calls in work with a typed fault when the server is cut, and unsent ones as unavailable', async () => {
    let started: () => void = () => undefined;
    const isStarted = new Promise<void>((resolve) => (started = resolve));
    const { client, server } = await connect(door, 'quota', admitting(() => {
      started();
      return new Promise(() => undefined);
    }));
    const cut = admit(client).catch((error: unknown) => error);
    await isStarted;
    await server.stop(0);
    expect(await cut).toMatchObject({ code: 'link_lost' });
    await expect(admit(client, {}, { deadlineMs: 200 })).rejects.toMatchObject({ name: 'Fault' });
  });

  test('answers a running call before a server has stopped', async () => {
    let started: () => void = () => undefined;
    let answer: (response: object) => void = () => undefined;
    const isStarted = new Promise<void>((resolve) => (started = resolve));
    const answered = new Promise<object>((resolve) => (answer = resolve));
    const { client, server } = await connect(door, 'quota', admitting(() => (started(), answered)));
    const order: string[] = [];
    const running = admit(client).then(() => order.push('answered'));
    await isStarted;
    const stopped = server.stop(15_000).then(() => order.push('stopped'));
    // Other connections' turns, in which a server that does not wait would have stopped.
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    answer({});
    await Promise.all([running, stopped]);
    expect(order).toEqual(['answered', 'stopped']);
  });

  test('answers 5,000 calls at once', async () => {
    // This does not test the deadline, the wait for a connection, or how soon a frozen connection is noticed, so those limits are generous.
    // A unary call costs half a millisecond, both ends are this process, and all calls begin in one turn. That takes seconds of processor
    // time, during which no ping is answered, and the ping timeout would expire before the answers are read.
    const { client } = await connect(door, 'quota', admitting((request) => ({ heldNanoUsd: request.amountNanoUsd })), { timeMs: 600_000, timeoutMs: 600_000 });
    await admit(client);
    const answers = await Promise.all(Array.from({ length: 5_000 }, (_, i) => client.unary<AdmitRequest, AdmitResponse__Output>('Admit', { amountNanoUsd: String(i) }, { deadlineMs: 60_000 })));
    expect(answers.every((answer, i) => answer.heldNanoUsd === String(i))).toBe(true);
  }, 60_000);
});
