import { afterEach, expect, test } from '@jest/globals';
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import type { AnyStreamHandler, AnyUnaryHandler, RpcClient } from './call.js';
import { createRpcClient } from './client.js';
import { createRpcServer, type RpcServer } from './server.js';

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface House {
  readonly doors: Map<string, object>;
  readonly server: RpcServer;
  readonly address: string;
  client(): RpcClient;
}

async function houseOf(handlers: { readonly Admit?: AnyUnaryHandler; readonly Dispatch?: AnyStreamHandler }): Promise<House> {
  const doors = new Map<string, object>();
  const area = handlers.Admit === undefined ? 'worker' : 'quota';
  const table = handlers.Admit === undefined ? { unary: {}, stream: { Dispatch: handlers.Dispatch ?? (() => Promise.resolve()) } } : { unary: { Admit: handlers.Admit } };
  const server = createRpcServer({ area, handlers: table, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, doors });
  const address = `127.0.0.1:${String(await server.start())}`;
  open.push(() => server.stop(0));
  const client = (): RpcClient => {
    const made = createRpcClient({ area, addresses: [address], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000, doors });
    open.push(() => made.close());
    return made;
  };
  return { doors, server, address, client };
}

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('neither side sees what the other does to its message afterwards', async () => {
  const kept = { decision: 'ADMITTED', periods: { day: 'd' } };
  const seen: string[] = [];
  const house = await houseOf({
    Admit: async (request: { accountId: string }) => {
      await later();
      seen.push(request.accountId);
      return kept;
    },
  });
  const request = { accountId: 'acct_1' };
  const answering = house.client().unary<typeof request, AdmitResponse__Output>('Admit', request);
  request.accountId = 'acct_2';
  const answer = await answering;
  kept.periods.day = 'changed';
  expect(seen).toEqual(['acct_1']);
  expect(answer).toMatchObject({ decision: 'ADMITTED', periods: { day: 'd', week: '' } });
});

test('a message that no wire could carry is refused where it is sent', async () => {
  const house = await houseOf({ Admit: () => ({ heldNanoUsd: String(2n ** 63n) }) });
  const client = house.client();
  await expect(client.unary('Admit', { amountNanoUsd: '1.5' })).rejects.toThrow(SyntaxError);
  await expect(client.unary('Admit', { amountNanoUsd: '1' })).rejects.toMatchObject({ code: 'internal_error' });
});

test('a call that is given up in the turn in which it is asked is not begun', async () => {
  const begun: string[] = [];
  const house = await houseOf({ Admit: ({ accountId }: { accountId: string }) => (begun.push(accountId), {}) });
  const client = house.client();
  const givingUp = new AbortController();
  const calls = [client.unary('Admit', { accountId: 'given up' }, { signal: givingUp.signal }), client.unary('Admit', { accountId: 'kept' })];
  givingUp.abort();
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(begun).toEqual(['kept']);
});

test('a stop lets running calls finish and takes no new ones', async () => {
  let finish: (answer: object) => void = () => undefined;
  const house = await houseOf({ Admit: () => new Promise((resolve) => (finish = resolve)) });
  const client = house.client();
  const running = client.unary<object, AdmitResponse__Output>('Admit', {});
  await later();
  const stopping = house.server.stop(5_000);
  await expect(client.unary('Admit', {}, { deadlineMs: 50 })).rejects.toBeInstanceOf(Fault);
  finish({ limitSource: 'late' });
  expect(await running).toMatchObject({ limitSource: 'late' });
  await stopping;
  expect(house.doors.size).toBe(0);
});

test('a client that closes ends its own calls on both sides, and nobody else’s', async () => {
  const aborted: string[] = [];
  const house = await houseOf({
    Dispatch: (request: { requestId: string }, call) =>
      new Promise((_resolve, reject) =>
        call.onAbort((reason) => {
          aborted.push(request.requestId);
          reject(reason);
        }),
      ),
  });
  const [leaving, staying] = [house.client(), house.client()];
  const ends: string[] = [];
  const ask = (client: RpcClient, requestId: string) => client.stream('Dispatch', { requestId }, { onMessage: () => undefined, onEnd: (fault) => ends.push(`${requestId} ${fault?.code ?? 'well'}`) });
  ask(leaving, 'a');
  ask(staying, 'b');
  await later();
  await leaving.close();
  await later();
  expect(aborted).toEqual(['a']);
  expect(ends).toEqual(['a link_lost']);
});

test('a handler that writes on regardless of a paused reader is stopped, and what it wrote arrives', async () => {
  let wrote = 0;
  const house = await houseOf({
    Dispatch: (_request, _call, emit) => {
      const bytes = Buffer.alloc(100_000);
      while (wrote < 100) {
        emit.write({ chunk: { choices: bytes } });
        wrote += 1;
      }
      return Promise.resolve();
    },
  });
  const received: number[] = [];
  const fault = await new Promise<Fault | undefined>((resolve) => {
    const call = house.client().stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: (message) => received.push(message.chunk?.choices.length ?? 0), onEnd: resolve });
    call.pause();
  });
  expect(fault?.code).toBe('overloaded');
  expect(wrote).toBeLessThan(8);
  expect(received).toEqual(Array.from({ length: wrote }, () => 100_000));
});

test('messages and ends wait for the turn of their receiver', async () => {
  const order: string[] = [];
  const house = await houseOf({
    Dispatch: (_request, call, emit) => {
      call.onAbort(() => order.push('aborted'));
      emit.write({ started: {} });
      order.push('written');
      return new Promise(() => undefined);
    },
  });
  await new Promise<void>((resolve) => {
    const call = house.client().stream('Dispatch', {}, {
      onMessage: () => {
        order.push('received');
        call.cancel();
        order.push('cancelled');
      },
      onEnd: () => resolve(),
    });
    order.push('asked');
  });
  await later();
  expect(order).toEqual(['asked', 'written', 'received', 'cancelled', 'aborted']);
});
