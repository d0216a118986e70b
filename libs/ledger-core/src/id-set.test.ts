import { describe, expect, test } from '@jest/globals';
import { encodeUlid } from '@signalbox/kernel/ids';
import { IdSet } from './id-set.js';

/** Distinct ids of one moment: they differ in their random part alone, as ids under load do. */
const idAt = (index: number): string => {
  const random = new Uint8Array(10);
  new DataView(random.buffer).setUint32(6, index);
  return `chatcmpl-${encodeUlid(1_767_225_600_000, random)}`;
};

describe('used-up ids', () => {
  test('has what was added and nothing else, while it grows', () => {
    const ids = new IdSet();
    for (let i = 0; i < 30_000; i += 1) {
      if (ids.has(idAt(i))) throw new Error(`${idAt(i)} is taken for another id`);
      ids.add(idAt(i));
    }
    for (let i = 0; i < 30_000; i += 1) if (!ids.has(idAt(i))) throw new Error(`${idAt(i)} was forgotten`);
    for (let i = 30_000; i < 60_000; i += 1) if (ids.has(idAt(i))) throw new Error(`${idAt(i)} is taken for another id`);
    expect(ids.size).toBe(30_000);
  });

  test('counts an id once, and takes any text for one', () => {
    const ids = new IdSet();
    for (const id of ['', 'r', 'r', 'é', 'r1', '1r']) ids.add(id);
    expect(ids.size).toBe(5);
    expect(['', 'r', 'é', 'r1', '1r', 'x'].map((id) => ids.has(id))).toEqual([true, true, true, true, true, false]);
  });
});
