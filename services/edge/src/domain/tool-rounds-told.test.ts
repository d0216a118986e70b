import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { callerWith } from '../testing/callers.js';
import { admissionOf, events } from '../testing/neighbours.js';
import { calling, chunkOf, ours, saying, story, streaming, theirs, type Setting } from '../testing/rounds-story.js';

const capped = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
const AWAY = new Fault('quota_unavailable', 'away');
const talking = [events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1)];
const cut = events.end({ cut: events.failed('DISCONNECTED').failed ?? null, finishReason: 'error' });

interface Unheard extends ReturnType<typeof story> {
  /** Lets the worker write the outcome down. */
  hear(): void;
  /** The client got the end of its answer. */
  hasEnded(): boolean;
}

/** A request whose workers do not write outcomes down. `rooms`: quota's answer to each further round; the last one repeats. */
function unheard(setting: Setting, ...rooms: readonly (boolean | Fault)[]): Unheard {
  const told = story(setting);
  const { fake, turn, answer } = told;
  turn.caller = capped;
  fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
  let asked = 0;
  const extend = (): Promise<boolean> => {
    const room = rooms[Math.min(asked++, rooms.length - 1)] ?? true;
    return room instanceof Fault ? Promise.reject(room) : Promise.resolve(room);
  };
  let hear: () => void = () => undefined;
  const heard = new Promise<void>((resolve) => (hear = resolve));
  const { tellOutcome } = fake.workers;
  Object.assign(fake.quota, { extend });
  Object.assign(fake.workers, {
    tellOutcome: (...terms: Parameters<typeof tellOutcome>): Promise<boolean> => {
      const written = tellOutcome(...terms);
      return terms[3] === 'DELIVERED' ? heard.then(() => written) : written;
    },
  });
  return { ...told, hear: () => hear(), hasEnded: () => answer.said.some((said) => /^(body|finish|refuse|cut)/.test(said)) };
}

const stream = { request: { stream: true } };
const ENDS: readonly (readonly [string, () => Unheard, string])[] = [
  ['there is no room for another round', () => unheard({ rounds: [(call) => call.play(...calling(ours()))] }, false), 'body 0:!length'],
  ['there is none in a stream', () => unheard({ ...stream, rounds: [(call) => call.play(...streaming(ours()))] }, false), 'finish 0:!length'],
  ['its rounds are used up', () => unheard({ roundsMax: 1, rounds: [(call) => call.play(...calling(ours()))] }), 'body 0:!stop'],
  ['quota is away', () => unheard({ ...stream, rounds: [(call) => call.play(...talking), (call) => call.play(...streaming(ours()))] }, true, AWAY), 'refuse fault'],
  ['a round fails', () => unheard({ ...stream, rounds: [(call) => call.play(...talking), (call) => call.play(...streaming(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))] }), 'cut PROVIDER_ERROR'],
  ['a round breaks off within its calls', () => unheard({ ...stream, rounds: [(call) => call.play(...talking), (call) => call.play(...streaming(ours()).slice(0, -2), cut)] }), 'cut DISCONNECTED'],
  ['a round breaks off', () => unheard({ ...stream, rounds: [(call) => call.play(...streaming(ours())), (call) => call.play(events.role(), events.text('It is'), cut)] }), 'cut DISCONNECTED'],
];

test.each(ENDS)('if %s, the end is given once workers have written down that unseen calls are charged', async (_why, tell, end) => {
  const { fake, answer, run, hear, hasEnded } = tell();
  const running = run();
  await fake.clock.advanceAsync(1_900);
  expect([hasEnded(), fake.outcomes.some((outcome) => outcome.includes('DELIVERED'))]).toEqual([false, true]);
  hear();
  await running;
  expect(answer.said.at(-1)).toBe(end);
});

test.each(ENDS)('if %s, a worker that is away delays the end by at most two seconds', async (_why, tell, end) => {
  const { fake, answer, run } = tell();
  const running = run();
  await fake.clock.advanceAsync(2_000);
  await running;
  expect(answer.said.at(-1)).toBe(end);
});

test.each([
  ['words', () => unheard({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] }), 'body 0:It is 42.!stop'],
  ["calls of the client's own", () => unheard({ tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...calling(ours(), theirs))] }), 'body 0:!tool_calls'],
  ['text that breaks off', () => unheard({ ...stream, rounds: [(call) => call.play(...talking), (call) => call.play(events.role(), events.text('It is'), cut)] }), 'cut DISCONNECTED'],
  ['text of a stream, beside calls', () => unheard({ ...stream, rounds: [(call) => call.play(...talking)] }, false), 'finish 0:!length'],
])('an answer that ends in %s does not wait', async (_what, tell, end) => {
  const { answer, run } = tell();
  await run();
  expect(answer.said.at(-1)).toBe(end);
});

test('of a round that breaks off its worker is told after those before it, so that one message can name all of them', async () => {
  const { fake, run } = story({ ...stream, rounds: [(call) => call.play(...talking), (call) => call.play(...streaming(ours())), (call) => call.play(events.role(), events.text('It is'), cut)] });
  await run();
  expect(fake.outcomes.map((outcome) => outcome.replace(/^.*#/, ''))).toEqual(['1 DELIVERED followed', '2 DELIVERED followed', '3 DELIVERED']);
});
