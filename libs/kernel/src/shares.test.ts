import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Shares } from './shares.js';

/** Takes places as long as there is room; returns how many. */
function fill(shares: Shares, accountId: string): number {
  let taken = 0;
  for (; shares.hasRoom(accountId); taken += 1) shares.take(accountId);
  return taken;
}

describe('Shares', () => {
  it('the only account may have all places, until another one asks', () => {
    const shares = new Shares(1_000);
    expect(fill(shares, 'acct_1')).toBe(1_000);
    expect(shares.hasRoom('acct_2')).toBe(false);
    for (let i = 0; i < 300; i += 1) shares.leave('acct_1');
    expect([shares.hasRoom('acct_1'), fill(shares, 'acct_2') > 200]).toEqual([true, true]);
  });

  it('one account leaves a fifth to the others once there are any, and the next ones a fifth of what is left', () => {
    const shares = new Shares(1_000);
    expect(shares.hasRoom('acct_0')).toBe(true);
    expect(fill(shares, 'acct_1')).toBe(800);
    expect(['acct_2', 'acct_3'].map((accountId) => fill(shares, accountId))).toEqual([160, 32]);
    expect(shares.hasRoom('acct_0')).toBe(true);
  });

  it('is as it was once all was given back, whoever took what', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 200 }), (asking) => {
        const shares = new Shares(40);
        const taken = asking.map((n) => `acct_${String(n)}`).filter((accountId) => {
          const hasRoom = shares.hasRoom(accountId);
          if (hasRoom) shares.take(accountId);
          return hasRoom;
        });
        expect(shares.size).toBe(taken.length);
        expect(shares.size).toBeLessThanOrEqual(40);
        for (const accountId of taken) expect(shares.takenBy(accountId)).toBe(taken.filter((other) => other === accountId).length);
        for (const accountId of taken) shares.leave(accountId);
        expect([shares.size, ...taken.map((accountId) => shares.takenBy(accountId))].every((count) => count === 0)).toBe(true);
      }),
    );
  });
});
