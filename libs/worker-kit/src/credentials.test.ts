import { describe, expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createCredentialPool, type CredentialPool } from './credentials.js';

const taken = (pool: CredentialPool, model = 'm'): string => {
  const found = pool.take(model);
  return found.ok ? (found.credential.secret?.unwrap() ?? 'none') : `${found.isResting ? 'resting' : 'benched'} ${String(found.retryAfterMs)}`;
};
function poolOf(...keys: readonly string[]) {
  const clock = createFakeClock();
  const pool = createCredentialPool(keys.map((key) => new Secret(key)), clock);
  const first = pool.take('m');
  if (!first.ok) throw new Error('There is no credential.');
  return { clock, pool, first: first.credential };
}

describe('a pool of credentials', () => {
  test('takes turns', () => {
    const { pool } = poolOf('a', 'b', 'c');
    expect([taken(pool), taken(pool), taken(pool)]).toEqual(['b', 'c', 'a']);
  });

  test('lets one rest for the model that it was limited for, as long as it was told', () => {
    const { clock, pool, first } = poolOf('a', 'b');
    pool.rest(first, 'm', 7_000);
    expect([taken(pool), taken(pool), taken(pool, 'other')]).toEqual(['b', 'b', 'a']);
    clock.advance(7_000);
    expect([taken(pool), taken(pool)].sort()).toEqual(['a', 'b']);
  });

  test('says when the first of them may be asked again', () => {
    const { clock, pool, first } = poolOf('a');
    pool.rest(first, 'm', 7_000);
    clock.advance(1_000);
    expect([taken(pool), taken(pool, 'other')]).toEqual(['resting 6000', 'a']);
    pool.refused(first);
    expect(taken(pool, 'other')).toBe('benched 30000');
  });

  test('knows of another that is free, and the shortest wait of all', () => {
    const { clock, pool, first } = poolOf('a', 'b');
    pool.rest(first, 'm', 7_000);
    expect([pool.hasOther(first, 'm'), pool.waitMs('m')]).toEqual([true, 0]);
    const second = pool.take('m');
    if (!second.ok) throw new Error('There is no other.');
    pool.refused(second.credential);
    expect([pool.hasOther(first, 'm'), pool.hasOther(second.credential, 'm'), pool.waitMs('m')]).toEqual([false, false, 7_000]);
    expect([pool.hasOther(second.credential, 'other'), pool.waitMs('other')]).toEqual([true, 0]);
    clock.advance(7_000);
    expect(pool.waitMs('m')).toBe(0);
    expect(createCredentialPool([], clock).waitMs('m')).toBe(0);
  });

  test('benches a refused one for 30 s, doubling to ten minutes, until it succeeds', () => {
    const { clock, pool, first } = poolOf('a');
    for (const ms of [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
      pool.refused(first);
      // What was under way when the bench began says nothing new.
      pool.refused(first);
      expect(taken(pool)).toBe(`benched ${String(ms)}`);
      clock.advance(ms);
      expect(taken(pool)).toBe('a');
    }
    pool.succeeded(first);
    pool.refused(first);
    expect(taken(pool)).toBe('benched 30000');
  });
});
