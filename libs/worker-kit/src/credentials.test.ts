import { describe, expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createCredentialPool, markOf, type CredentialPool, type Learnt, type TakenCredential } from './credentials.js';

const taken = (pool: CredentialPool, model = 'm'): string => {
  const found = pool.take(model);
  return found.ok ? (found.credential.secret?.unwrap() ?? 'none') : `${found.isResting ? 'resting' : 'benched'} ${String(found.retryAfterMs)}`;
};
const takeOne = (pool: CredentialPool): TakenCredential => {
  const found = pool.take('m');
  if (!found.ok) throw new Error('There is no credential.');
  return found.credential;
};
function poolOf(...keys: readonly string[]) {
  const clock = createFakeClock();
  const pool = createCredentialPool(keys.map((key) => new Secret(key)), clock);
  return { clock, pool, first: takeOne(pool) };
}

describe('a pool of credentials', () => {
  test('takes turns', () => {
    const { pool } = poolOf('a', 'b', 'c');
    expect([taken(pool), taken(pool), taken(pool)]).toEqual(['b', 'c', 'a']);
  });

  test('rests a credential for the model that was rate-limited, as long as the provider said', () => {
    const { clock, pool, first } = poolOf('a', 'b');
    pool.rest(first, 'm', 7_000);
    expect([taken(pool), taken(pool), taken(pool, 'other')]).toEqual(['b', 'b', 'a']);
    clock.advance(7_000);
    expect([taken(pool), taken(pool)].sort()).toEqual(['a', 'b']);
  });

  test('rests a credential for the longest of several limits, whichever call ends later', () => {
    const { clock, pool, first } = poolOf('a');
    pool.rest(first, 'm', 60_000);
    clock.advance(100);
    pool.rest(first, 'm', 1_000);
    expect(taken(pool)).toBe('resting 59900');
  });

  test('tells when the first credential may be used again', () => {
    const { clock, pool, first } = poolOf('a');
    pool.rest(first, 'm', 7_000);
    clock.advance(1_000);
    expect([taken(pool), taken(pool, 'other')]).toEqual(['resting 6000', 'a']);
    pool.refused(first);
    expect(taken(pool, 'other')).toBe('benched 30000');
  });

  test('counts a credential as doubtful from the end of its bench until it is accepted, by any replica', () => {
    const { clock, pool, first } = poolOf('a', 'b');
    expect(pool.counts()).toEqual({ benched: 0, doubtful: 0, usable: 2 });
    pool.refused(first);
    expect(pool.counts()).toEqual({ benched: 1, doubtful: 0, usable: 1 });
    clock.advance(30_000);
    // No call since: nothing has shown that it works again.
    expect(pool.counts()).toEqual({ benched: 0, doubtful: 1, usable: 1 });
    clock.advance(3_600_000);
    expect(pool.counts()).toEqual({ benched: 0, doubtful: 1, usable: 1 });
    pool.hear({ position: first.position, model: '', forMs: 0 });
    expect(pool.counts()).toEqual({ benched: 0, doubtful: 0, usable: 2 });
  });

  test('knows whether another credential is free, and the shortest wait', () => {
    const { clock, pool, first } = poolOf('a', 'b');
    pool.rest(first, 'm', 7_000);
    expect([pool.hasOther(first, 'm'), pool.waitMs('m')]).toEqual([true, 0]);
    const second = takeOne(pool);
    pool.refused(second);
    expect([pool.hasOther(first, 'm'), pool.hasOther(second, 'm'), pool.waitMs('m')]).toEqual([false, false, 7_000]);
    expect([pool.hasOther(second, 'other'), pool.waitMs('other')]).toEqual([true, 0]);
    clock.advance(7_000);
    expect(pool.waitMs('m')).toBe(0);
    expect(createCredentialPool([], clock).waitMs('m')).toBe(0);
  });

  test('benches a refused credential for 30 s, doubling to ten minutes, until it is accepted', () => {
    const { clock, pool, first } = poolOf('a');
    let again = first;
    for (const ms of [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
      pool.refused(first);
      // Calls that were under way when the bench began tell nothing new.
      pool.refused(first);
      expect(taken(pool)).toBe(`benched ${String(ms)}`);
      clock.advance(ms);
      again = takeOne(pool);
    }
    pool.succeeded(again);
    pool.refused(first);
    expect(taken(pool)).toBe('benched 30000');
  });

  test('lets one call of any model try a credential after its bench; others follow when it is accepted, or was not refused for three seconds', () => {
    const { clock, pool, first } = poolOf('a');
    pool.refused(first);
    expect(pool.benchedMs()).toBe(30_000);
    clock.advance(30_000);
    expect(pool.benchedMs()).toBe(0);
    const trying = takeOne(pool);
    clock.advance(1_000);
    expect([taken(pool), taken(pool, 'other'), pool.waitMs('other'), pool.benchedMs()]).toEqual(['resting 2000', 'resting 2000', 2_000, 2_000]);
    // It was never sent, or its client left.
    pool.release(trying);
    const next = takeOne(pool);
    pool.release(trying);
    expect(taken(pool)).toBe('resting 3000');
    pool.refused(next);
    expect(taken(pool)).toBe('benched 60000');
    clock.advance(60_000);
    const slow = takeOne(pool);
    clock.advance(3_000);
    expect([taken(pool), taken(pool)]).toEqual(['a', 'a']);
    pool.refused(slow);
    expect(taken(pool)).toBe('benched 120000');
    clock.advance(120_000);
    pool.succeeded(takeOne(pool));
    expect([taken(pool), taken(pool), pool.benchedMs()]).toEqual(['a', 'a', 0]);
  });

  test('is benched as a whole while all its credentials are benched, but not if one of them only rests for a model', () => {
    const { pool, first } = poolOf('a', 'b');
    pool.refused(first);
    expect(pool.benchedMs()).toBe(0);
    const second = takeOne(pool);
    pool.rest(second, 'm', 7_000);
    expect([pool.waitMs('m'), pool.benchedMs()]).toEqual([7_000, 0]);
    pool.refused(second);
    expect(pool.benchedMs()).toBe(30_000);
    expect(createCredentialPool([], createFakeClock()).benchedMs()).toBe(0);
  });

  test('passes on the wait of a rate limit unchanged, however slow the machine is and whatever its clock shows', () => {
    const clock = createFakeClock();
    clock.advance(123_456.789);
    const slow = { ...clock, monotonicMs: () => clock.monotonicMs() + (reads += 1.7) };
    let reads = 0;
    const pool = createCredentialPool([new Secret('a')], slow);
    for (let forMs = 1; forMs < 3_000; forMs += 7) expect(pool.rest(takeOne(createCredentialPool([new Secret('a')], clock)), `m${String(forMs)}`, forMs)).toBe(forMs);
    expect(createCredentialPool([new Secret('a'), new Secret('b')], slow).rest(takeOne(pool), 'm', 7_000)).toBe(0);
  });

  test('tells other replicas once what its own calls learnt, and does not repeat what it heard from them', () => {
    const clock = createFakeClock();
    const told: Learnt[] = [];
    const pool = createCredentialPool([new Secret('a')], clock, (learnt) => told.push(learnt));
    const first = takeOne(pool);
    clock.advance(10);
    pool.rest(first, 'm', 7_000);
    pool.rest(first, 'm', 0);
    pool.refused(first);
    pool.refused(first);
    pool.succeeded(first);
    pool.hear({ position: 0, model: 'other', forMs: 5_000 });
    clock.advance(30_000);
    pool.succeeded(takeOne(pool));
    pool.succeeded(takeOne(pool));
    expect(told).toEqual([
      { position: 0, model: 'm', forMs: 7_000 },
      { position: 0, model: '', forMs: 30_000 },
      { position: 0, model: '', forMs: 0 },
    ]);
  });

  test('benches a credential that another replica was refused with for three seconds longer, and doubles from there if it is refused here too', () => {
    const { clock, pool, first } = poolOf('a');
    pool.hear({ position: 0, model: '', forMs: 60_000 });
    expect(taken(pool)).toBe('benched 63000');
    // Calls that were under way tell nothing.
    pool.succeeded(first);
    clock.advance(63_000);
    pool.refused(takeOne(pool));
    expect(taken(pool)).toBe('benched 120000');
    // Another replica's shorter bench does not shorten its own.
    pool.hear({ position: 0, model: '', forMs: 30_000 });
    expect(taken(pool)).toBe('benched 120000');
    pool.hear({ position: 0, model: '', forMs: 0 });
    pool.refused(takeOne(pool));
    expect(taken(pool)).toBe('benched 30000');
  });

  test('caps waits that it hears of, and ignores credentials that it does not have', () => {
    const { pool } = poolOf('a');
    pool.hear({ position: -1, model: '', forMs: 30_000 });
    pool.hear({ position: 1, model: 'm', forMs: 30_000 });
    expect(taken(pool)).toBe('a');
    pool.hear({ position: 0, model: 'm', forMs: 4_000_000_000 });
    expect([taken(pool), taken(pool, 'other')]).toEqual(['resting 600000', 'a']);
    pool.hear({ position: 0, model: '', forMs: 4_000_000_000 });
    expect(taken(pool)).toBe('benched 603000');
  });

  test('has the same mark in every replica, another one for another provider, and the mark contains nothing of the credential', () => {
    const mark = markOf('openai', new Secret('sk-one'));
    expect(markOf('openai', new Secret('sk-one'))).toBe(mark);
    expect(new Set([mark, markOf('openai', new Secret('sk-two')), markOf('azure', new Secret('sk-one')), markOf('openai', undefined)]).size).toBe(4);
  });

  test('keeps a credential benched when an answer succeeds that was under way when it was refused', () => {
    const { clock, pool, first } = poolOf('a');
    clock.advance(10);
    pool.refused(takeOne(pool));
    clock.advance(10);
    pool.succeeded(first);
    expect(taken(pool)).toBe('benched 29990');
    clock.advance(29_990);
    const again = takeOne(pool);
    pool.succeeded(first);
    pool.refused(again);
    expect(taken(pool)).toBe('benched 60000');
  });
});
