import { expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { methodsOf } from './channel.js';
import { decodeBatch, encodeBatch } from './link-codec.js';
import { ITEM, LinkItem, PART_BYTES } from './link-item.js';
import { createAssembling, LinkServer, type Assembling } from './link-server.js';

const MIB = 1_048_576;

function linkOf(assembling: Assembling): { readonly link: LinkServer; readonly send: (call: number, kind: number, more: boolean) => void; readonly answered: LinkItem[] } {
  const answered: LinkItem[] = [];
  const link = new LinkServer({
    methods: methodsOf('worker'), handlers: { unary: {}, stream: { Dispatch: () => Promise.resolve() } }, clock: systemClock, log: silentLog, assembling,
    write: (batch) => answered.push(...decodeBatch(encodeBatch(batch))) > 0, onFinished: () => undefined,
  });
  const send = (call: number, kind: number, more: boolean): void => {
    const item = new LinkItem(call, kind);
    item.method = kind === ITEM.open ? 'Dispatch' : '';
    item.payload = kind === ITEM.cancel ? Buffer.alloc(0) : Buffer.alloc(PART_BYTES);
    item.more = more;
    link.receive(encodeBatch([item]));
  };
  return { link, send, answered };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('of calls that are cancelled in the read that brings them one that streams is begun and told, another is not begun, and the others keep their order', async () => {
  const begun: string[] = [];
  const link = new LinkServer({
    methods: methodsOf('worker'), clock: systemClock, log: silentLog, assembling: createAssembling(), write: () => true, onFinished: () => undefined,
    handlers: {
      unary: { Outcome: (_request, { requestId }) => (begun.push(requestId), {}) },
      stream: { Dispatch: (_request, call) => new Promise((resolve) => call.onAbort(({ code }) => resolve(void begun.push(`${call.requestId} ${code}`)))) },
    },
  });
  const opening = (call: number, method: string): LinkItem => Object.assign(new LinkItem(call, ITEM.open), { method, requestId: `${method} ${String(call)}` });
  link.receive(encodeBatch([opening(1, 'Outcome'), opening(2, 'Dispatch'), opening(3, 'Outcome'), opening(4, 'Outcome')]));
  expect(begun).toEqual([]);
  link.receive(encodeBatch([new LinkItem(2, ITEM.cancel), new LinkItem(3, ITEM.cancel)]));
  await turn();
  expect(begun).toEqual(['Dispatch 2 cancelled', 'Outcome 1', 'Outcome 4']);
});

test('half-received requests of all links together have a bound: the one beyond it is overloaded, the others go on', async () => {
  const assembling = { bytes: 0, bytesMax: 3 * PART_BYTES };
  const [one, two] = [linkOf(assembling), linkOf(assembling)];
  one.send(1, ITEM.open, true);
  one.send(2, ITEM.open, true);
  two.send(1, ITEM.open, true);
  two.send(2, ITEM.open, true);
  await turn();
  expect([one, two].map(({ answered }) => answered.map(({ call, fault }) => [call, fault?.code]))).toEqual([[], [[2, 'overloaded']]]);
  expect(assembling.bytes).toBe(3 * PART_BYTES);
});

test('what was received gives its room back when its request is whole, is cancelled, or loses its link', () => {
  const assembling = createAssembling();
  const { link, send } = linkOf(assembling);
  for (let call = 1; call <= 3; call += 1) send(call, ITEM.open, true);
  expect(assembling.bytes).toBe(3 * PART_BYTES);
  send(1, ITEM.message, false);
  expect(assembling.bytes).toBe(2 * PART_BYTES);
  send(2, ITEM.cancel, false);
  expect(assembling.bytes).toBe(PART_BYTES);
  link.abort();
  expect(assembling.bytes).toBe(0);
});

test.each([
  [16, 64],
  [512, 128],
  [24_576, 256],
])('of %d MiB of memory they may hold %d, which is one message at least', (memory, most) => {
  expect(createAssembling(memory * MIB).bytesMax).toBe(most * MIB);
});
