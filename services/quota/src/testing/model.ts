/** Compares the scripts with the pure state machine, command by command. */
import { expect } from '@jest/globals';
import type { Draw } from '@signalbox/ledger-core/advance';
import { hasEnded, newAccountState, show, sweep, type AccountState, type Wall } from '@signalbox/ledger-core/account-state';
import { admit, confirm, heartbeat, release, type AdmitCommand } from '@signalbox/ledger-core/admission';
import { applyTotals, describeOpen, finish, overdue, totalsSeq } from '@signalbox/ledger-core/settlement';
import { periodsAt, qualifiedPeriodId } from '@signalbox/ledger-core/periods';
import { reregister } from '@signalbox/ledger-core/rebuild';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { testRedisUrl } from '@signalbox/testkit/stores';
import { createRedisStore } from '../adapters/redis-store.js';
import type { QuotaStore } from '../domain/ports.js';

function seeded(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

interface Told {
  readonly answer: Promise<unknown>;
  readonly expected: unknown;
}

/** Cases that the commands covered: each set should be complete. */
export interface Compared {
  readonly commands: number;
  readonly decisions: readonly string[];
  readonly missed: ReadonlySet<boolean>;
  readonly freed: ReadonlySet<boolean>;
  readonly granted: ReadonlySet<boolean>;
  readonly confirmed: ReadonlySet<boolean>;
  /** Kinds of draws: moved a part or all of an advance, took more than was left of it, returned it for a request that was over, or did nothing. */
  readonly drawn: ReadonlySet<'part' | 'all' | 'over' | 'late' | 'nothing'>;
}

/**
 * Runs random commands on both, in rounds with one account each, and compares answers and states after each command, or with
 * `isGathered` after each turn of the event loop, with several commands in it. Throws at the first difference.
 */
export async function compareModel(rounds: number, steps: number, isGathered = false): Promise<Compared> {
  const clock = { nowMs: Date.parse('2026-11-21T14:00:00Z') };
  const store = createRedisStore({ url: await testRedisUrl(), clock: systemClock, randomBytes, log: silentLog, metrics: { storeTook: () => undefined, storeFailed: () => undefined }, commandTimeoutMs: 5_000, rideWaitMs: 1, fixedNowMs: () => clock.nowMs });
  await store.start();
  try {
    return await compareWith(store, clock, rounds, steps, isGathered);
  } finally {
    // Also reached if a difference was thrown.
    await store.stop();
  }
}

async function compareWith(store: QuotaStore, clock: { nowMs: number }, rounds: number, steps: number, isGathered: boolean): Promise<Compared> {
  let commands = 0;
  const seen = new Set<string>();
  const missed = new Set<boolean>();
  const freed = new Set<boolean>();
  const granted = new Set<boolean>();
  const confirmed = new Set<boolean>();
  const drawn = new Set<'part' | 'all' | 'over' | 'late' | 'nothing'>();
  const noteDraw = (state: AccountState, requestId: string, draw: Draw): void => {
    const advance = state.holds.get(draw.advanceId);
    if (advance === undefined || state.holds.has(requestId) || state.finished.has(requestId)) drawn.add('nothing');
    else if (hasEnded(state, requestId, clock.nowMs)) drawn.add(hasEnded(state, `${requestId} undrawn`, clock.nowMs) && !hasEnded(state, `${requestId} drawn`, clock.nowMs) ? 'late' : 'nothing');
    else if (draw.amount > advance.amount || draw.tokens > advance.tokens) drawn.add('over');
    else drawn.add(draw.amount === advance.amount && draw.tokens === advance.tokens ? 'all' : 'part');
  };
  for (let seed = 1; seed <= rounds; seed += 1) {
    const account = `acct_${Buffer.from(randomBytes(8)).toString('hex')}`;
    const state = newAccountState();
    const pick = seeded(seed);
    for (let step = 0, turn: Told[] = []; step < steps; step += 1, commands += 1) {
      // Time stands still within a turn.
      if (turn.length === 0) clock.nowMs += [0, 0, 0, 0, 5, 40, 150, 900, 7_000, 45_000, 86_400_000][pick(11)] ?? 0;
      const requestId = `r${pick(60)}`;
      const keyId = `key_${pick(2)}`;
      const kind = pick(12);
      const { nowMs } = clock;
      const amount = BigInt(pick(60));
      const tokens = BigInt(pick(20));
      const writer = ['', 'wrt_1', 'wrt_2'][pick(3)] ?? '';
      const drawOf = (asked: string): Draw | undefined => {
        if (pick(3) > 0) return undefined;
        const [advanceId = `r${pick(60)}`] = [...state.holds.keys()].slice(pick(4));
        const whole = state.holds.get(advanceId);
        const draw = pick(4) === 0 && whole !== undefined ? { advanceId, amount: whole.amount, tokens: whole.tokens } : { advanceId, amount: BigInt(pick(30)), tokens: BigInt(pick(10)) };
        noteDraw(state, asked, draw);
        return draw;
      };
      if (kind < 5) {
        const walls: Wall[] = [];
        if (pick(2) === 0) walls.push({ scope: 'account', period: 'day', meter: 'charge', limit: BigInt(pick(300)) });
        if (pick(3) === 0) walls.push({ scope: 'key', period: 'week', meter: 'charge', limit: BigInt(pick(200)) });
        if (pick(3) === 0) walls.push({ scope: 'account', period: 'plan', meter: 'routed', limit: BigInt(pick(150)) });
        const byok = pick(4) === 0;
        if (byok && pick(2) === 0) walls.push({ scope: 'account', period: 'plan', meter: 'byok', limit: BigInt(pick(150)) });
        const command: AdmitCommand = {
          requestId, keyId, counter: pick(6) === 0 ? 'control' : 'chat', amount, minAmount: BigInt(pick(30)), tokens, minTokens: BigInt(pick(15)), byok, requestsPerMinute: pick(3) === 0 ? undefined : 1 + pick(3),
          burstPerSecond: pick(3) === 0 ? 1 : undefined, keyRequestsPerMinute: pick(4) === 0 ? 3 : undefined, walls, anchorDay: pick(29), periodSeconds: undefined, needsTotals: false, isAdvance: pick(4) === 0,
        };
        const expected = admit(state, command, '', nowMs);
        seen.add(typeof expected === 'string' ? expected : expected.decision);
        turn.push({ answer: store.admit(account, command), expected });
      } else if (kind === 5) {
        const draw = drawOf(requestId);
        const expected = release(state, requestId, nowMs, draw);
        freed.add(expected);
        turn.push({ answer: store.release(account, requestId, draw), expected });
      } else if (kind === 6) {
        // Usually of a live hold, since growth can be refused only if there is a hold.
        const [live] = [...state.holds.keys()].slice(pick(4));
        const grown = pick(3) === 0 ? requestId : (live ?? requestId);
        const draw = drawOf(grown);
        const expected = heartbeat(state, grown, amount * 4n, tokens * 4n, nowMs, writer, draw);
        granted.add(expected);
        turn.push({ answer: store.heartbeat(account, grown, amount * 4n, tokens * 4n, writer, draw), expected });
      } else if (kind === 7) {
        const command = { requestId, charge: amount, tokens, byok: pick(3) === 0, keyId, periods: state.holds.get(requestId)?.periods, writer, draw: drawOf(requestId) };
        const expected = finish(state, command, nowMs);
        freed.add(expected);
        turn.push({ answer: store.finish(account, command), expected });
      } else if (kind === 8) {
        const totals = { seq: BigInt(pick(50)), totals: [{ scope: 'account', periodId: 'total', charge: amount, tokens, byok: BigInt(pick(20)) }, { scope: 'account', periodId: qualifiedPeriodId('plan', periodsAt(nowMs, { anchorDay: 0 })), charge: amount, tokens, byok: BigInt(pick(20)) }], requestIds: [requestId], previousSeq: BigInt(pick(50)), ...(pick(3) === 0 ? { knownSeq: BigInt(pick(50)) } : {}) };
        const complete = pick(3) === 0;
        const expected = applyTotals(state, totals, nowMs, complete ? 'x' : undefined);
        missed.add(expected);
        turn.push({ answer: store.applyTotals(account, totals, complete ? 'x' : ''), expected });
      } else if (kind === 9) {
        const command = { requestId, keyId, amount, tokens, byok: pick(3) === 0, periods: periodsAt(nowMs, { anchorDay: 0 }), isStarted: pick(2) === 0, writer, draw: drawOf(requestId) };
        reregister(state, command, nowMs);
        turn.push({ answer: store.reregister(account, command), expected: undefined });
      } else if (kind === 10) {
        const [live] = [...state.holds.keys()].slice(pick(4));
        const asked = pick(3) === 0 ? requestId : (live ?? requestId);
        const draw = drawOf(asked);
        const expected = confirm(state, asked, nowMs, draw);
        confirmed.add(expected);
        turn.push({ answer: store.confirm(account, asked, draw), expected });
      } else {
        const ended = sweep(state, nowMs).length;
        turn.push({ answer: store.sweep(account), expected: { ended, hasLeases: state.nextSweepMs !== undefined } });
      }
      if (isGathered && pick(3) > 0 && step + 1 < steps) continue;
      const told = turn;
      turn = [];
      expect(await Promise.all(told.map(({ answer }) => answer))).toEqual(told.map(({ expected }) => expected));
      const asked = Array.from({ length: 6 }, (_, at) => `r${at * 10 + (step % 10)}`);
      if (step % 10 === 6) expect(await store.totalsSeq(account)).toBe(totalsSeq(state));
      if (step % 10 === 3) expect(await store.describeOpen(account, asked)).toEqual(describeOpen(state, asked, nowMs));
      if (step % 10 === 9) expect([...(await store.overdue(account, 10_000, 1_000))].sort()).toEqual(overdue(state, 10_000, 1_000, nowMs).sort());
      const view = await store.show(account);
      const model = show(state, nowMs);
      expect([...view.buckets].sort()).toEqual([...model.buckets].sort());
      expect(view.remaining).toEqual(model.remaining);
    }
  }
  return { commands, decisions: [...seen].sort(), missed, freed, granted, confirmed, drawn };
}
