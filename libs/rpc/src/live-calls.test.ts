import { expect, test } from '@jest/globals';
import { LiveCalls } from './live-calls.js';

test('holds what a map would, whichever ids come together', () => {
  const calls = new LiveCalls<{ readonly id: number }>();
  const model = new Map<number, { readonly id: number }>();
  let state = 7;
  const next = (bound: number): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) % bound;
  for (let step = 0; step < 20_000; step += 1) {
    const id = next(3) * 512 + next(600) + (next(2) === 0 ? 0 : 0xfffffc00);
    if (!model.has(id) && next(2) === 0) {
      const call = { id };
      calls.add(call);
      model.set(id, call);
    } else {
      calls.remove(id);
      model.delete(id);
    }
    expect([calls.size, calls.get(id)]).toEqual([model.size, model.get(id)]);
  }
  for (const [id, call] of model) expect(calls.get(id)).toBe(call);
  expect(new Set(calls.takeAll())).toEqual(new Set(model.values()));
  expect([calls.size, calls.takeAll()]).toEqual([0, []]);
});
