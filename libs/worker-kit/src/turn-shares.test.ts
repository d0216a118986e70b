/** What all streams of a process may process in one turn of the event loop. */
import { expect, test } from '@jest/globals';
import { ALL_BYTES_MAX, SHARE_BYTES, StreamShare, TurnShares } from './turn-shares.js';

interface Flood {
  readonly shares: TurnShares;
  /** Ends the turn; false when nobody asked for that. */
  readonly endTurn: () => boolean;
}

function flood(): Flood {
  const due: (() => void)[] = [];
  return {
    shares: new TurnShares((callback) => void due.push(callback)),
    endTurn: () => {
      const [next] = due.splice(0, 1);
      next?.();
      return next !== undefined;
    },
  };
}

/** Streams that always have another read of 64 KiB: the bytes that each has processed in each turn. */
function run(streams: number, turns: number): number[][] {
  const { shares, endTurn } = flood();
  const processed: number[][] = [];
  const each = Array.from({ length: streams }, () => ({ share: new StreamShare(shares), isHeldBack: false }));
  for (let turn = 0; turn < turns; turn += 1) {
    const now = new Array<number>(streams).fill(0);
    processed.push(now);
    each.forEach((stream, index) => {
      if (stream.isHeldBack) return;
      if (stream.share.take(65_536)) now[index] = 65_536;
      else {
        stream.isHeldBack = true;
        stream.share.wait(65_536, () => {
          stream.isHeldBack = false;
          (processed.at(-1) ?? [])[index] = 65_536;
        });
      }
    });
    endTurn();
  }
  return processed;
}

const sum = (bytes: readonly number[]): number => bytes.reduce((total, one) => total + one, 0);

test('48 streams that flood process a bounded amount in each turn, and each as much as the others', () => {
  const turns = run(48, 240);
  // The sockets of a turn, and those that waited at its end.
  for (const bytes of turns) expect(sum(bytes)).toBeLessThanOrEqual(2 * ALL_BYTES_MAX);
  const totals = turns.reduce((all, bytes) => all.map((total, index) => total + (bytes[index] ?? 0)), new Array<number>(48).fill(0));
  expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(2 * 65_536);
  expect(sum(totals)).toBeGreaterThanOrEqual(239 * ALL_BYTES_MAX);
});

test('a few streams wait for nobody, however much they bring', () => {
  expect(run(4, 10).flat().every((bytes) => bytes === 65_536)).toBe(true);
});

test('a stream that brings little is read at once, whatever the others bring, up to its share of a turn', () => {
  const { shares, endTurn } = flood();
  shares.use(10 * ALL_BYTES_MAX);
  const share = new StreamShare(shares);
  expect([share.take(SHARE_BYTES - 1), share.take(1), share.take(1)]).toEqual([true, true, false]);
  endTurn();
  expect(share.take(2 * SHARE_BYTES)).toBe(true);
});

test('those that wait are called in order, and the others still if one throws', () => {
  const { shares, endTurn } = flood();
  const called: string[] = [];
  shares.use(ALL_BYTES_MAX);
  shares.wait(1, () => {
    called.push('a');
    shares.wait(1, () => called.push('later'));
    throw new Error('a bug');
  });
  shares.wait(ALL_BYTES_MAX, () => called.push('b'));
  shares.wait(1, () => called.push('c'));
  expect(endTurn).toThrow('a bug');
  endTurn();
  expect(called).toEqual(['a', 'b']);
  endTurn();
  expect(called).toEqual(['a', 'b', 'c', 'later']);
  // Nothing is left to be done, so that no further turn is asked for but the one that ends what was used.
  endTurn();
  expect(endTurn()).toBe(false);
});
