import { expect, test } from '@jest/globals';
import { Refusal } from './door.js';
import { gatherParts } from './parts.js';

const check = (invariant: string, violations: number, examples: readonly string[] = []): object => ({ invariant, description: 'd', violations, examples });

/** Gathers these parts, the first of which is behind `from`. An Error is what one of them rejects with. */
async function gathered(from: string, parts: readonly (object | Error)[]): Promise<{ readonly answer: unknown; readonly asked: readonly string[]; readonly told: readonly string[] }> {
  const [asked, told]: [string[], string[]] = [[], []];
  const ask = (after: string): Promise<string> => {
    const part = parts[asked.push(after) - 1];
    return part instanceof Error ? Promise.reject(part) : Promise.resolve(JSON.stringify(part));
  };
  const answer: unknown = await gatherParts(from, ask, (line) => told.push(line)).then((text) => JSON.parse(text) as unknown, (error: Error) => error);
  return { answer, asked, told };
}

test('the parts of a verification are one answer, and who waits is told how far it is', async () => {
  const examples = Array.from({ length: 15 }, (_, index) => `a${index}`);
  expect(await gathered('', [
    { ok: true, checks: [check('I2', 0), check('I1', 0)], accounts: 700, next: 'acct_7' },
    { ok: false, checks: [check('I2', 15, examples), check('I1', 0)], accounts: 300, next: 'acct_9' },
    { ok: false, checks: [check('I2', 10, examples), check('I1', 0), check('I5', 0)], under_way: { writers: [] }, accounts: 5, next: null },
  ])).toEqual({
    answer: { ok: false, checks: [check('I2', 25, [...examples, ...examples.slice(0, 5)]), check('I1', 0), check('I5', 0)], under_way: { writers: [] }, accounts: 1_005 },
    asked: ['', 'acct_7', 'acct_9'],
    told: ['700 accounts verified, up to acct_7: nothing is wrong', '1000 accounts verified, up to acct_9: violations: 15 of I2'],
  });
});

test('a violation in the first part alone is one of the whole', async () => {
  expect((await gathered('', [{ ok: false, checks: [check('I3', 1, ['r'])], accounts: 1, next: 'a' }, { ok: true, checks: [check('I3', 0)], accounts: 1, next: null }])).answer).toEqual({ ok: false, checks: [check('I3', 1, ['r'])], accounts: 2 });
});

test('a server that knows no parts has verified all at once', async () => {
  const whole = { ok: true, checks: [check('I2', 0)], under_way: { writers: [] } };
  expect(await gathered('', [whole])).toEqual({ answer: whole, asked: [''], told: [] });
});

test('a server that goes away amid the parts is no verdict: how to go on is told', async () => {
  const gone = new Refusal('The server does not answer.');
  const { answer } = await gathered('acct_1', [{ ok: true, checks: [check('I2', 0)], accounts: 3, next: 'acct_4' }, gone]);
  expect(answer).toBeInstanceOf(Refusal);
  expect((answer as Error).message).toBe('The server does not answer. 3 accounts were verified before: nothing is wrong. To go on: ledger verify --after acct_4');
  expect((await gathered('', [gone])).answer).toBe(gone);
});

test('parts that do not go on are given up', async () => {
  const stuck = { ok: true, checks: [], accounts: 1, next: 'acct_4' };
  const { answer, asked } = await gathered('', [stuck, stuck]);
  expect([answer, asked]).toEqual([new Refusal('A part of the answer does not go on from the one before.'), ['', 'acct_4']]);
});
