import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { oneTurn, until } from '@signalbox/testkit/until';
import { plannedAt, planWith } from '../testing/callers.js';
import { LEASE_MS, TO_BEGIN_LEASE_MS } from '../testing/claims.js';
import { hello, startDoor, type Door } from '../testing/door.js';
import { events, type PlayedCall } from '../testing/neighbours.js';
import { answersWith } from '../testing/scripts.js';

const answers = answersWith('ök');

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

const ask = (): Promise<Response> => door.chat(hello, { 'idempotency-key': 'order-1' });
const errorOf = async (response: Response): Promise<readonly [number, { readonly code: string }]> => [response.status, ((await response.json()) as { error: { readonly code: string } }).error];
const claim = () => [...door.claims.kept.values()][0];

describe('a request with an Idempotency-Key confirms its claim', () => {
  const elsewhere = 'chatcmpl-elsewhere';
  /** Lets a repeat run at another edge. */
  const takeOver = (): void => {
    const [name, kept] = [...door.claims.kept][0] ?? [];
    if (name === undefined || kept === undefined) throw new Error('expected a claim');
    door.claims.kept.set(name, { ...kept, requestId: elsewhere });
  };
  /** Suspends the edge for this time; its timers find accounts away afterwards. */
  const standStill = async (ms: number): Promise<void> => {
    door.claims.isAway = true;
    await door.neighbours.clock.advanceAsync(ms);
    door.claims.isAway = false;
  };
  /** Delays the first request before its plan. */
  const atRouting = (): (() => void) => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    door.neighbours.routing.decide = async (request) => {
      door.neighbours.decided.push(request);
      await gate;
      return planWith([plannedAt('a')]);
    };
    return go;
  };

  test('once, before its first dispatch, however many attempts follow', async () => {
    const go = atRouting();
    door.neighbours.plan = planWith([plannedAt('a'), plannedAt('b')]);
    const told: (readonly string[])[] = [];
    door.neighbours.scripts.set('a', (call) => {
      told.push([...door.claims.stood]);
      answers(call);
    });
    const first = ask();
    await until(() => door.neighbours.decided.length === 1);
    expect([door.claims.stood, claim()?.isToBegin]).toEqual([[], true]);
    go();
    expect((await first).status).toBe(200);
    expect([told, door.claims.stood]).toEqual([[['begin']], ['begin']]);
  });

  test('without another question before further attempts', async () => {
    door.neighbours.plan = planWith([plannedAt('b'), plannedAt('a')]);
    door.neighbours.scripts.set('b', (call) => call.play(events.failed('PROVIDER_ERROR')));
    expect((await ask()).status).toBe(200);
    expect([door.neighbours.calls.map(({ provider }) => provider), door.claims.stood]).toEqual([['b', 'a'], ['begin']]);
  });

  test('and is refused before any dispatch if its claim was lost while the process was suspended', async () => {
    const go = atRouting();
    const first = ask();
    await until(() => door.neighbours.decided.length === 1);
    await standStill(TO_BEGIN_LEASE_MS);
    takeOver();
    go();
    expect(await errorOf(await first)).toMatchObject([503, { code: 'overloaded', metadata: { retryable: true } }]);
    await until(() => door.neighbours.released.length === 1);
    // Its end does not end the other request's claim.
    expect([door.neighbours.calls, claim()?.requestId]).toEqual([[], elsewhere]);
  });

  test('again before another attempt after the process was suspended, and goes on only with its claim', async () => {
    for (const isTaken of [false, true]) {
      door.claims.kept.clear();
      door.neighbours.calls.length = 0;
      door.neighbours.plan = planWith([plannedAt('b'), plannedAt('a')]);
      let playing: PlayedCall | undefined;
      door.neighbours.scripts.set('b', (call) => (playing = call));
      const first = ask();
      await until(() => playing !== undefined);
      await standStill(LEASE_MS);
      if (isTaken) takeOver();
      playing?.play(events.failed('PROVIDER_ERROR'));
      expect([(await first).status, door.neighbours.calls.length]).toEqual(isTaken ? [503, 1] : [200, 2]);
    }
  });

  test('and is not dispatched while accounts is away, and its key is freed', async () => {
    const { begin } = door.claims;
    door.claims.begin = () => Promise.reject(new Fault('claims_unavailable', 'accounts is away'));
    const first = ask();
    for (const waitMs of [200, 1_000]) {
      const timers = door.neighbours.clock.pendingTimers();
      await until(() => door.neighbours.clock.pendingTimers() >= timers && door.neighbours.asked.length === 1);
      await oneTurn();
      await door.neighbours.clock.advanceAsync(waitMs);
    }
    expect((await errorOf(await first))[1].code).toBe('accounts_unavailable');
    await until(() => door.claims.kept.size === 0);
    expect(door.neighbours.calls).toEqual([]);
    door.claims.begin = begin;
    expect((await ask()).status).toBe(200);
  });

  test('and frees its key if its client left meanwhile, since nothing was dispatched', async () => {
    const { begin } = door.claims;
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    let isAsked = false;
    door.claims.begin = async (ref) => {
      isAsked = true;
      await gate;
      return begin(ref);
    };
    const first = ask().catch(() => undefined);
    await until(() => isAsked);
    expect(door.cutKey('key_1')).toBe(1);
    await first;
    go();
    await until(() => door.claims.kept.size === 0);
    expect([door.neighbours.calls, door.neighbours.released.length]).toEqual([[], 1]);
  });

  test('but makes no claim without a key', async () => {
    expect((await door.chat(hello)).status).toBe(200);
    expect([door.claims.kept.size, door.claims.stood]).toEqual([0, []]);
  });
});
