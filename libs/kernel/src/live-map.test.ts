import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LiveList, LiveMap } from './live-map.js';

const command = fc.tuple(fc.constantFrom('set', 'delete', 'get'), fc.integer({ min: 0, max: 12 }), fc.nat());

describe('LiveMap', () => {
  it('answers as a Map does, in its order, after any commands', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
        const real = new Map<number, number>();
        const map = new LiveMap<number, number>();
        for (const [name, key, value] of commands) {
          if (name === 'set') {
            real.set(key, value);
            map.set(key, value);
          } else if (name === 'delete') expect(map.delete(key)).toBe(real.delete(key));
          expect(map.get(key)).toBe(real.get(key));
          expect(map.has(key)).toBe(real.has(key));
          expect(map.size).toBe(real.size);
        }
        expect([...map]).toEqual([...real]);
        expect([...map.keys()]).toEqual([...real.keys()]);
        expect([...map.values()]).toEqual([...real.values()]);
      }),
    );
  });

  it('lets entries be deleted while it is walked', () => {
    const map = new LiveMap<string, number>();
    for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) map.set(key, index);
    const seen: string[] = [];
    for (const [key] of map) {
      seen.push(key);
      map.delete(key);
      map.delete('c');
    }
    expect(seen).toEqual(['a', 'b', 'd']);
    expect(map.size).toBe(0);
  });
});

describe('LiveList', () => {
  it('gives every item in it a slot of its own, and uses freed ones again', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(), { nil: undefined }), { maxLength: 200 }), (steps) => {
        const list = new LiveList<object>();
        const inside = new Map<number, object>();
        let most = 0;
        for (const step of steps) {
          const slots = [...inside.keys()];
          const gone = step === undefined ? undefined : slots[step % Math.max(1, slots.length)];
          if (gone === undefined) {
            const item = {};
            const slot = list.add(item);
            expect(inside.has(slot)).toBe(false);
            inside.set(slot, item);
          } else {
            list.remove(gone);
            inside.delete(gone);
            expect(list.get(gone)).toBeUndefined();
          }
          most = Math.max(most, inside.size);
          expect(list.size).toBe(inside.size);
          for (const [slot, item] of inside) {
            expect(list.get(slot)).toBe(item);
            expect(slot).toBeLessThan(most);
          }
        }
        expect(new Set(list.all())).toEqual(new Set(inside.values()));
      }),
    );
  });
});
