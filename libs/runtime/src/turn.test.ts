import { afterEach, describe, expect, test } from '@jest/globals';
import { afterTurn, atTurnEnd, together, Turn } from './turn.js';

let said: string[] = [];
const say = (text: string) => (): void => void said.push(text);
afterEach(() => {
  said = [];
});

describe('a turn of the event loop', () => {
  const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('runs the cohort in order, then what its promises settle, then what was left for the end', async () => {
    const step = (name: string) => (): void => {
      said.push(`${name} 1`);
      void Promise.resolve().then(say(`${name} 2`)).then(say(`${name} 3`));
    };
    atTurnEnd(say('last'));
    afterTurn(step('end'));
    together(step('a'));
    together(step('b'));
    expect(said).toEqual([]);
    await immediate();
    expect(said).toEqual(['a 1', 'b 1', 'a 2', 'b 2', 'a 3', 'b 3', 'end 1', 'end 2', 'end 3', 'last']);
  });

  test('takes what the cohort leaves for the end into the same turn', async () => {
    together(() => void Promise.resolve().then(() => afterTurn(() => void Promise.resolve().then(() => atTurnEnd(say('end'))))));
    await immediate();
    expect(said).toEqual(['end']);
  });

  test('runs what is added while it runs in the next turn', async () => {
    together(() => together(say('later')));
    afterTurn(() => afterTurn(say('end of the later one')));
    atTurnEnd(() => atTurnEnd(say('last of the later one')));
    await immediate();
    expect(said).toEqual([]);
    await immediate();
    expect(said).toEqual(['later', 'end of the later one', 'last of the later one']);
  });
});

test('what one of them throws keeps no other from being called', () => {
  let scheduled: (() => void)[] = [];
  const turn = new Turn((callback) => scheduled.push(callback));
  const bug = (): void => {
    throw new Error('a bug');
  };
  turn.together(bug);
  turn.together(say('cohort'));
  turn.afterTurn(bug);
  turn.afterTurn(say('end'));
  turn.atTurnEnd(bug);
  turn.atTurnEnd(say('last'));
  let faults = 0;
  for (let round = 0; round < 4; round += 1) {
    const due = scheduled;
    scheduled = [];
    for (const callback of due) {
      try {
        callback();
      } catch {
        faults += 1;
      }
    }
  }
  expect(faults).toBe(3);
  expect(said.sort()).toEqual(['cohort', 'end', 'last']);
  expect(scheduled).toEqual([]);
});
