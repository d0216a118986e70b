import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { bodiesBytesMax, createBodiesInWork, type BodiesInWork } from './bodies-in-work.js';
import { requestOf, startDispatchRig, text, UNSENDABLE, USAGE, type DispatchRig } from './testing/dispatch-rig.js';

const MIB = 1_048_576;
const ANSWER = { body: { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }], usage: USAGE } };

let rig: DispatchRig;
let bodies: BodiesInWork;
beforeEach(async () => {
  rig = await startDispatchRig();
  bodies = createBodiesInWork(MIB);
  rig.use(systemClock, { bodies });
});
afterEach(() => rig.stop());

const large = (bytes: number, over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output =>
  requestOf({ requestId: `chatcmpl-${String(bytes)}`, stream: false, clientStream: false, fields: [{ name: 'messages', value: Buffer.from(JSON.stringify([{ role: 'user', content: 'x'.repeat(bytes) }])) }], ...over });

test('a body without room beside the others is refused before anything is journaled or sent; a body that is alone, and small ones, always have room', async () => {
  const leave = bodies.enter(MIB / 2);
  await expect(rig.run(large(0.6 * MIB))).rejects.toMatchObject({ code: 'overloaded' });
  expect([rig.log, rig.provider.requests.length, bodies.bytes()]).toEqual([[], 0, MIB / 2]);
  rig.provider.enqueue(ANSWER, ANSWER);
  expect((await rig.run(large(10_000))).at(-1)).toMatchObject({ end: {} });
  leave();
  expect((await rig.run(large(3 * MIB))).at(-1)).toMatchObject({ end: {} });
  expect(bodies.bytes()).toBe(0);
});

test.each<[string, (body: DispatchRequest__Output) => Promise<unknown>, Partial<DispatchRequest__Output>]>([
  ['an answer', (body) => (rig.provider.enqueue(ANSWER), rig.run(body)), {}],
  ['a failure', (body) => (rig.provider.enqueue({ status: 500, body: 'no' }), rig.run(body)), {}],
  ['a request that the wire refuses', async (body) => expect(await rig.run(body)).toMatchObject([{ failed: { class: UNSENDABLE.class } }]), { providerModelId: 'unsendable' }],
  ['no credential', (body) => rig.run(body), { byok: true, byokHandle: 'gone' }],
  ['a journal that fails', (body) => {
    rig.use(systemClock, { bodies, journal: { start: () => Promise.reject(new Fault('overloaded', 'test')) } as never });
    return expect(rig.run(body)).rejects.toMatchObject({ code: 'overloaded' });
  }, {}],
  ['a caller that leaves', (body) => (rig.provider.enqueue({ chunks: [text('a')], hang: true }), rig.run(body, (event, leave) => event.chunk !== undefined && leave())), { stream: true, clientStream: true }],
])('the room is freed after %s', async (_end, run, over) => {
  const running = run(large(0.6 * MIB, over));
  expect(bodies.bytes()).toBeGreaterThan(0.6 * MIB);
  await running;
  expect(bodies.bytes()).toBe(0);
});

test('the room follows from the memory of the process, and has a bound', () => {
  expect([512 * MIB, 24_576 * MIB].map((bytes) => Math.round(bodiesBytesMax(bytes) / MIB))).toEqual([85, 1_024]);
});
