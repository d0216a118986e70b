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
    write: (batch) => answered.push(...decodeBatch(batch)) > 0, onFinished: () => undefined,
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
