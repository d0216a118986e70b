/** Streams that say too early that they are over, or break without a word: nothing of them is lost, and none is taken for whole. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { createChatTransducer } from './stream.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));
const create = () => createChatTransducer('seed');
const frame = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const chunk = (delta: object, finish: string | null = null, more: object = {}): Buffer => frame({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish, ...more }] });
const DONE = Buffer.from('data: [DONE]\n\n');
const tokens = (inputUncached: number, outputText: number, cacheRead = 0): object => ({ inputUncached, cacheRead, cacheWrite: 0, outputText, outputReasoning: 0, audio: 0, image: 0 });
const said = ({ events }: Replayed): unknown[] => [...gather(events).values()].map(({ content, reasons }) => [content, reasons]);

const OSLO = 'It is 4 °C in Oslo.';
const WHOLE = { type: 'done' };

describe('fixtures', () => {
  const table: readonly (readonly [string, readonly (readonly [string, readonly string[]])[], object])[] = [
    ['usage-first', [[OSLO, ['stop']]], WHOLE],
    ['usage-stale', [[OSLO, ['stop']]], WHOLE],
    ['usage-running', [[OSLO, ['stop']]], WHOLE],
  ];

  test.each(table)('%s arrives as it was said, and ends as it ended', (name, choices, last) => {
    const whole = replay(create, [fixture(name)]);
    expect(said(whole)).toEqual(choices);
    expect(whole.events.at(-1)).toMatchObject(last);
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test.each(table.map(([name]) => name))('%s is the same however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = replay(create, [bytes]);
    for (const parts of everySplit(bytes)) {
      const { events, summary } = replay(create, parts);
      expect([said({ events, summary }), events.at(-1), summary]).toEqual([said(whole), whole.events.at(-1), whole.summary]);
    }
  });
});

describe('usage that is told before the last of the output', () => {
  test.each([
    ['usage-first', undefined, tokens(100, 0, 1_000)],
    ['usage-stale', undefined, tokens(11, 0)],
    ['usage-running', tokens(11, 9), tokens(11, 0)],
  ])('%s: its prompt counts, its output only when nothing follows', (name, usage, prompt) => {
    const { summary } = replay(create, [fixture(name)]);
    expect(summary.usage?.tokens).toEqual(usage);
    expect(summary.promptUsage?.tokens).toEqual(prompt);
  });

  test('ten thousand bytes behind usage of no output are not told as none', () => {
    const { summary } = replay(create, [frame({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 0 } }), ...Array.from({ length: 100 }, () => chunk({ content: 'x'.repeat(100) })), chunk({}, 'stop'), DONE]);
    expect(summary).toMatchObject({ usage: undefined, promptUsage: { tokens: tokens(11, 0), cachedKnown: false, reasoningKnown: false }, outputBytes: 10_000 });
  });

  test('a prompt of 0 tokens is not told, and takes back none that was', () => {
    const usage = (prompt: number): Buffer => frame({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: 0 } });
    expect(replay(create, [usage(0), chunk({ content: 'a' })]).summary.promptUsage).toBeUndefined();
    expect(replay(create, [usage(7), usage(0), chunk({ content: 'a' })]).summary.promptUsage?.tokens).toEqual(tokens(7, 0));
  });

  test('explicit zeros behind the answer are figures', () => {
    expect(replay(create, [chunk({ content: 'a' }), chunk({}, 'stop'), frame({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }), DONE]).summary.usage?.tokens).toEqual(tokens(0, 0));
  });

  test('figures that cannot be read do not make stale ones final', () => {
    const { summary } = replay(create, [Buffer.concat([frame({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 1 } }), chunk({ content: 'abc' }), frame({ choices: [], usage: { prompt_tokens: -1 } })])]);
    expect(summary).toMatchObject({ usage: undefined, usageUnreadable: true, promptUsage: { tokens: tokens(11, 0) } });
  });
});
