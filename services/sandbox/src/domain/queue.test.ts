import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { ProgramProcess } from './ports.js';
import type { ProgramEnd } from './program.js';
import { createProgramQueue } from './queue.js';

const DONE: ProgramEnd = { status: 'COMPLETED', output: '', result: '', error: '' };
const KILLED: ProgramEnd = { ...DONE, status: 'CRASHED' };

function createFakeProcesses() {
  const made: { codes: string[]; isKilled: boolean; isOver: boolean; finish: () => void }[] = [];
  return {
    made,
    isNetworkFenced: true,
    running: () => made.filter(({ codes }) => codes.length > 0),
    start: (): ProgramProcess => {
      let resolve: (end: ProgramEnd) => void = () => undefined;
      const state = { codes: [] as string[], isKilled: false, isOver: false, finish: () => resolve(DONE) };
      made.push(state);
      return {
        get isOver() {
          return state.isOver;
        },
        run: (code) => {
          state.codes.push(code);
          return new Promise((settle) => {
            resolve = settle;
          });
        },
        kill: () => {
          state.isKilled = true;
          resolve(KILLED);
        },
      };
    },
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setUp(concurrency = 2) {
  const clock = createFakeClock();
  const processes = createFakeProcesses();
  const queue = createProgramQueue({ processes, clock, concurrency });
  const submit = (code: string, accountId = 'acct_1', onAbort: (listener: () => void) => void = () => undefined) => queue.submit({ accountId, language: 'javascript', code, timeoutMs: 0, onAbort });
  return { clock, processes, queue, submit };
}

test('only so many run at once, the others in turn, and no process serves two', async () => {
  const { processes, queue, submit } = setUp();
  const ends = ['a', 'b', 'c'].map((code) => submit(code));
  expect([queue.running(), queue.waiting()]).toEqual([2, 1]);
  processes.made[0]?.finish();
  await ends[0];
  await settled();
  expect(queue.waiting()).toBe(0);
  for (const process of processes.running()) process.finish();
  expect(await Promise.all(ends)).toEqual([DONE, DONE, DONE]);
  expect(processes.running().map(({ codes }) => codes)).toEqual([['a'], ['b'], ['c']]);
});

test('an account cannot keep all others waiting', async () => {
  const { queue, submit } = setUp();
  const first = Array.from({ length: 8 }, (_, i) => submit(String(i)));
  expect((await submit('ninth')).status).toBe('OVERLOADED');
  const other = submit('other', 'acct_2');
  expect(queue.waiting()).toBe(7);
  queue.stop();
  expect((await Promise.all([...first, other])).every(({ status }) => status !== 'COMPLETED')).toBe(true);
});

test('next is whoever has the fewest running: many programs of one account run beside those of another, not before them', async () => {
  const { processes, queue, submit } = setUp();
  const ends = ['many 0', 'many 1', 'many 2', 'many 3', 'few 0', 'few 1'].map((code) => submit(code, code.slice(0, 3)));
  const begun = (): readonly (string | undefined)[] => processes.running().map(({ codes }) => codes[0]);
  for (const [at, begins] of ['few 0', 'many 2', 'few 1', 'many 3'].entries()) {
    processes.running()[at]?.finish();
    await settled();
    expect(begun().at(-1)).toBe(begins);
  }
  queue.stop();
  await Promise.all(ends);
});

test('where one runs at a time accounts take turns', async () => {
  const { processes, queue, submit } = setUp(1);
  const ends = ['many 0', 'many 1', 'many 2', 'few 0', 'few 1'].map((code) => submit(code, code.slice(0, 3)));
  const order: (string | undefined)[] = [];
  for (let at = 0; at < ends.length; at += 1) {
    const [process] = processes.running().slice(-1);
    order.push(process?.codes[0]);
    process?.finish();
    await settled();
  }
  expect(order).toEqual(['many 0', 'few 0', 'many 1', 'few 1', 'many 2']);
  queue.stop();
  await Promise.all(ends);
});

test('beyond what may wait nobody is let in, and everybody is told', async () => {
  const { queue, submit } = setUp(1);
  const ends = Array.from({ length: 80 }, (_, i) => submit(String(i), `acct_${String(i)}`));
  expect(queue.waiting()).toBe(64);
  queue.stop();
  expect((await Promise.all(ends)).filter(({ status }) => status === 'OVERLOADED')).toHaveLength(79);
});

test('a caller that leaves ends its program, or its wait', async () => {
  const { processes, queue, submit } = setUp(1);
  const leave: (() => void)[] = [];
  const first = submit('first', 'acct_1', (listener) => leave.push(listener));
  let stopWaiting: () => void = () => undefined;
  const second = submit('second', 'acct_1', (listener) => {
    stopWaiting = listener;
  });
  stopWaiting();
  expect((await second).status).toBe('OVERLOADED');
  for (const listener of leave) listener();
  expect((await first).status).toBe('CRASHED');
  expect(processes.made[0]?.isKilled).toBe(true);
  expect([queue.running(), queue.waiting()]).toEqual([0, 0]);
});

test('a spare process serves the next program, and ends when none comes', async () => {
  const { clock, processes, submit } = setUp(1);
  const first = submit('a');
  processes.made[0]?.finish();
  await first;
  await settled();
  expect(processes.made).toHaveLength(2);
  clock.advance(60_000);
  expect(processes.made[1]?.isKilled).toBe(true);
});

test('a spare process that died while it waited runs nothing: another is started for the next program', async () => {
  const { processes, queue, submit } = setUp(1);
  const first = submit('a');
  processes.made[0]?.finish();
  await first;
  await settled();
  const [, spare] = processes.made;
  if (spare !== undefined) spare.isOver = true;
  const second = submit('b');
  processes.running().at(-1)?.finish();
  expect(await second).toEqual(DONE);
  await settled();
  // The last one is the spare process for the next program.
  expect(processes.made.map(({ codes }) => codes)).toEqual([['a'], [], ['b'], []]);
  queue.stop();
});

test('what is no JavaScript, or too long, is refused without a process', async () => {
  const { processes, queue, submit } = setUp();
  expect(await queue.submit({ accountId: 'a', language: 'python', code: '1', timeoutMs: 0, onAbort: () => undefined })).toMatchObject({ status: 'REFUSED', error: "Programs in 'python' cannot be run: only javascript." });
  expect((await submit('x'.repeat(262_145))).status).toBe('REFUSED');
  expect(processes.made).toHaveLength(0);
});
