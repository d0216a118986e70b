import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { Deadlines, type Due } from './deadlines.js';

class Call implements Due {
  previousDue: Due | undefined = undefined;
  nextDue: Due | undefined = undefined;
  passedAtMs: number | undefined = undefined;
  onPassed: (() => void) | undefined = undefined;

  constructor(
    private readonly clock: { monotonicMs(): number },
    readonly deadlineAtMs: number,
  ) {}

  deadlinePassed(): void {
    this.passedAtMs = this.clock.monotonicMs();
    this.onPassed?.();
  }
}

function setUp(...afterMs: readonly number[]): { clock: ReturnType<typeof createFakeClock>; deadlines: Deadlines; startMs: number; calls: Call[] } {
  const clock = createFakeClock();
  const deadlines = new Deadlines(clock);
  const startMs = clock.monotonicMs();
  const calls = afterMs.map((ms) => new Call(clock, startMs + ms));
  for (const call of calls) deadlines.watch(call);
  return { clock, deadlines, startMs, calls };
}

test('each is told at its own moment, whatever the order they came in', () => {
  const { clock, startMs, calls } = setUp(300, 100, 200, 100, 50);
  clock.advance(1_000);
  expect(calls.map(({ passedAtMs }) => (passedAtMs ?? 0) - startMs)).toEqual([300, 100, 200, 100, 50]);
});

test.each([0, 1, 2, 3])('the one that is over, number %i of four, hears nothing, and the others do', (over) => {
  const { clock, deadlines, calls } = setUp(10, 20, 30, 40);
  const [call] = calls.splice(over, 1);
  if (call === undefined) throw new Error('No such call.');
  deadlines.forget(call);
  deadlines.forget(call);
  clock.advance(100);
  expect(call.passedAtMs).toBeUndefined();
  expect(calls.every(({ passedAtMs }) => passedAtMs !== undefined)).toBe(true);
});

test('one timer for all, none once the last is due', () => {
  const { clock, calls } = setUp(...Array.from({ length: 1_000 }, (_, index) => 100 + index));
  expect(clock.pendingTimers()).toBe(1);
  clock.advance(2_000);
  expect(calls.every(({ passedAtMs }) => passedAtMs !== undefined)).toBe(true);
  expect(clock.pendingTimers()).toBe(0);
});

test('a deadline that has passed already is told of, and not within the call that watches it', () => {
  const { clock, startMs, calls } = setUp(-5);
  expect(calls[0]?.passedAtMs).toBeUndefined();
  clock.advance(0);
  expect(calls[0]?.passedAtMs).toBe(startMs);
});

test('whoever is told may end others and begin new ones', () => {
  const { clock, deadlines, startMs, calls } = setUp(10, 20);
  const [first, second] = calls;
  if (first === undefined || second === undefined) throw new Error('No such call.');
  const next = new Call(clock, startMs + 15);
  first.onPassed = () => {
    deadlines.forget(second);
    deadlines.watch(next);
  };
  clock.advance(100);
  expect(second.passedAtMs).toBeUndefined();
  expect(next.passedAtMs).toBe(startMs + 15);
});

test('closed, nobody is told', () => {
  const { clock, deadlines, calls } = setUp(10);
  deadlines.close();
  clock.advance(100);
  expect(calls[0]?.passedAtMs).toBeUndefined();
  expect(clock.pendingTimers()).toBe(0);
});

test('a loop that was held up reads what has come in before it gives a call up', () => {
  const { clock, deadlines, calls } = setUp(150, 160);
  const [answered, away] = calls;
  if (answered === undefined || away === undefined) throw new Error('No such call.');
  clock.stall(400);
  expect(calls.map(({ passedAtMs }) => passedAtMs)).toEqual([undefined, undefined]);
  deadlines.forget(answered);
  clock.advance(50);
  expect([answered.passedAtMs, away.passedAtMs]).toEqual([undefined, 450]);
});

test('one that is held up again and again gives it up all the same, and a call that is late from the start has no grace', () => {
  const { clock, deadlines, calls: [call] } = setUp(10);
  for (let stall = 0; stall < 3; stall += 1) clock.stall(200);
  expect(call?.passedAtMs).toBeUndefined();
  clock.stall(200);
  expect(call?.passedAtMs).toBe(800);
  const late = new Call(clock, clock.monotonicMs() - 500);
  deadlines.watch(late);
  clock.advance(0);
  expect(late.passedAtMs).toBe(800);
});
