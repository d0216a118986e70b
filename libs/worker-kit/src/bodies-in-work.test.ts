import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { bodiesBytesMax, createBodiesInWork, type BodiesInWork } from './bodies-in-work.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
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
  const room = bodies.enter(MIB / 2, 'acct_other');
  await expect(rig.run(large(0.6 * MIB))).rejects.toMatchObject({ code: 'overloaded' });
  expect([rig.log, rig.provider.requests.length, bodies.bytes()]).toEqual([[], 0, MIB / 2]);
  rig.provider.enqueue(ANSWER, ANSWER);
  expect((await rig.run(large(10_000))).at(-1)).toMatchObject({ end: {} });
  room.leave();
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

test('files that are fetched for a request count with the bodies until it ends; one account has half of the room for them', () => {
  const first = bodies.enter(0, 'acct_a');
  first.grow(400_000);
  const second = bodies.enter(0, 'acct_a');
  expect(() => second.grow(200_000)).toThrow('overloaded');
  const other = bodies.enter(0, 'acct_b');
  other.grow(400_000);
  expect(() => bodies.enter(0, 'acct_c').grow(300_000)).toThrow('overloaded');
  expect(() => bodies.enter(300_000, 'acct_c')).toThrow('overloaded');
  // Small files always have room, as small bodies do.
  other.grow(65_536);
  expect(bodies.bytes()).toBe(800_000);
  first.leave();
  second.grow(200_000);
  for (const room of [second, other]) room.leave();
  expect(bodies.bytes()).toBe(0);
  // One that is alone always has room.
  const alone = bodies.enter(MIB / 2, 'acct_a');
  alone.grow(3 * MIB);
  alone.leave();
  expect(bodies.bytes()).toBe(0);
});

test('a file that the adapter fetched is counted until the attempt ends', async () => {
  const seen: number[] = [];
  rig.provider.enqueue(ANSWER);
  const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
  rig.use(systemClock, {
    bodies,
    adapter: { ...adapter, compose: (request, secret, caller) => {
      caller?.grow(MIB / 2);
      seen.push(bodies.bytes());
      return adapter.compose(request, secret, caller);
    } },
  });
  expect((await rig.run(large(10_000))).at(-1)).toMatchObject({ end: {} });
  expect([seen, bodies.bytes()]).toEqual([[MIB / 2], 0]);
});

test('the room follows from the memory of the process, and has a bound', () => {
  expect([512 * MIB, 24_576 * MIB].map((bytes) => Math.round(bodiesBytesMax(bytes) / MIB))).toEqual([85, 1_024]);
});
