/** What holds for every wire, whatever its provider sends. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, NO_TOKENS, promptTokens } from '@signalbox/kernel/tokens';
import { CALLS_MAX, parsedObject, type Usage } from './canonical.js';
import { brokenInvariants, gather, replay, type GatheredCall, type ReplayedEvent } from './testing/replay.js';
import { scripts, SCRIPTED_WIRES, type Script, type ScriptedWire } from './testing/scripts.js';

const price = (nano: bigint) => asPrice(asNanoUsd(nano));
const CARD = { id: 'card', inputUncached: price(3n), cacheRead: price(1n), cacheWrite: price(4n), outputText: price(15n), outputReasoning: price(15n), audio: price(5n), image: price(5n), requestNanoUsd: asNanoUsd(0n) };
const BOM = Buffer.from('\ufeff');

function split(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((left, right) => left - right);
  return at.slice(1).map((to, part) => bytes.subarray(at[part], to));
}

/** The same lines as other servers end and pad them. */
function dressed(frames: readonly Buffer[], hasCrlf: boolean, hasComments: boolean, hasBom: boolean): Buffer {
  const text = frames.map((frame) => `${hasComments ? ': keep-alive\n\n' : ''}${hasBom ? BOM.toString() : ''}${frame.toString()}`).join('');
  return Buffer.from(hasCrlf ? text.replaceAll('\n', '\r\n') : text);
}

function brokenMoney(usage: Usage | undefined): readonly string[] {
  if (usage === undefined) return [];
  const { tokens } = usage;
  const wrong: string[] = [];
  if (costOf(tokens, CARD) < 0n) wrong.push('cost is never negative');
  if (promptTokens(tokens) + completionTokens(tokens) !== Object.values(tokens).reduce((sum, count) => sum + count, 0)) wrong.push('buckets sum to the totals');
  return wrong;
}

const expectedReason = ({ isCut, calls }: Script): string => (isCut ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop');
const expectedCalls = ({ calls }: Script): readonly (readonly unknown[])[] => calls.map(({ name, pieces }) => [name, JSON.parse(pieces.join('') || '{}') as unknown]);
const isObjectText = (text: string): boolean => parsedObject(text) !== undefined;
/** The last call of an answer that was cut off may be half told: nobody takes it for whole. */
const closed = (text: string): string => (text === '' ? '{}' : isObjectText(text) ? text : `${text}}`);
const toldCalls = (calls: readonly Pick<GatheredCall, 'name' | 'arguments'>[], { isCut }: Script): readonly (readonly unknown[])[] =>
  calls.map((call, at) => [call.name, JSON.parse(isCut && at === calls.length - 1 ? closed(call.arguments) : call.arguments) as unknown]);

/** What is told while the connection is open. */
function pushed(wire: ScriptedWire, parts: readonly Buffer[]): readonly ReplayedEvent[] {
  const transducer = wire.create();
  const events = parts.flatMap((part) => transducer.push(part));
  return replay(() => ({ push: () => events, close: () => [], finishOpen: () => undefined, summary: () => transducer.summary() }), [Buffer.alloc(0)]).events;
}

describe.each(SCRIPTED_WIRES)('$name', (wire) => {
  const cuts = fc.array(fc.nat(), { maxLength: 8 });

  test('an answer arrives as it was said, whatever the host’s habits and however its bytes are split', () => {
    fc.assert(
      fc.property(scripts, cuts, fc.boolean(), fc.boolean(), fc.boolean(), (script, at, hasCrlf, hasComments, hasBom) => {
        fc.pre(script.text.length + script.reasoning.length + script.calls.length > 0);
        const frames = wire.frames(script);
        const bytes = wire.isSse ? dressed(frames, hasCrlf, hasComments, hasBom) : Buffer.concat(frames);
        const replayed = replay(wire.create, split(bytes, at));
        expect([...brokenInvariants(replayed), ...brokenMoney(replayed.summary.usage)]).toEqual([]);
        expect(replayed.events.at(-1)).toEqual({ type: 'done' });
        const choice = gather(replayed.events).get(0);
        expect([choice?.content, choice?.reasoning, choice?.reasons]).toEqual([script.text.join(''), script.reasoning.join(''), [expectedReason(script)]]);
        expect(toldCalls(choice?.calls ?? [], script)).toEqual(expectedCalls(script));
        const { usage } = replayed.summary;
        expect(usage === undefined ? undefined : [promptTokens(usage.tokens), completionTokens(usage.tokens)]).toEqual([script.input, script.output]);
      }),
      { numRuns: 100 },
    );
  });

  test('in one piece it is the same answer', () => {
    fc.assert(
      fc.property(scripts, (script) => {
        const result = wire.read(wire.body(script));
        if (!result.ok) throw new Error(result.failure.class);
        const [choice] = JSON.parse(Buffer.from(result.answer.choices).toString()) as readonly { message: { content: string | null; reasoning_content?: string; tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[] }; finish_reason: string }[];
        const calls = choice?.message.tool_calls ?? [];
        expect([choice?.message.content ?? '', choice?.message.reasoning_content ?? '', choice?.finish_reason]).toEqual([script.text.join(''), script.reasoning.join(''), expectedReason(script)]);
        expect(toldCalls(calls.map((call) => call.function), script)).toEqual(expectedCalls(script));
        expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
        expect(brokenMoney(result.answer.usage)).toEqual([]);
        expect([promptTokens(result.answer.usage?.tokens ?? NO_TOKENS), completionTokens(result.answer.usage?.tokens ?? NO_TOKENS)]).toEqual([script.input, script.output]);
      }),
      { numRuns: 100 },
    );
  });

  test('in one piece too each call has an id of its own, and none is without a name', () => {
    const twoCalls: Script = { reasoning: [], text: [], calls: [{ name: 'note', pieces: ['{"a":1}'] }, { name: 'other', pieces: ['{}'] }], input: 5, output: 7, isCut: false, habit: 0 };
    const told = (json: string): readonly { id: string; function: { name: string } }[] => {
      const result = wire.read(Buffer.from(json));
      return result.ok ? ((JSON.parse(Buffer.from(result.answer.choices).toString()) as readonly { message: { tool_calls?: readonly { id: string; function: { name: string } }[] } }[])[0]?.message.tool_calls ?? []) : [];
    };
    const json = wire.body(twoCalls).toString();
    // Where the wire has ids, hosts number each call anew.
    const same = told(json.replaceAll(/"(id|toolUseId)":"[^"]*"/g, '"$1":"call_0"'));
    expect([same.map(({ function: { name } }) => name), new Set(same.map(({ id }) => id)).size]).toEqual([['note', 'other'], 2]);
    for (const name of ['""', 'null', '7']) expect(told(json.replace('"name":"note"', `"name":${name}`)).every((call) => call.function.name !== '')).toBe(true);
  });

  test.each(['""', 'null', '7'])('an answer of nothing but a call whose name is %s is garbage, in one piece as in a stream', (name) => {
    const script: Script = { reasoning: [], text: [], calls: [{ name: 'note', pieces: ['{"a":1}'] }], input: 5, output: 7, isCut: false, habit: 1 };
    const nameless = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').replace('"name":"note"', `"name":${name}`), 'latin1');
    expect(wire.read(nameless(wire.body(script)))).toMatchObject({ ok: false, failure: { class: 'GARBAGE', retryable: true } });
    // Frames of Bedrock have checksums.
    if (wire.name === 'bedrock-converse') return;
    const { events, summary } = replay(wire.create, wire.frames(script).map(nameless));
    expect([events.at(-1), summary.contentSeen]).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE', retryable: true } }, false]);
  });

  test('a byte order mark before it, and a field for an error that is empty, say nothing', () => {
    const script: Script = { reasoning: [], text: ['a', 'b'], calls: [{ name: 'note', pieces: ['{"a":1}'] }], input: 5, output: 7, isCut: false, habit: 2 };
    const choices = (result: ReturnType<typeof wire.read>): string => (result.ok ? Buffer.from(result.answer.choices).toString() : result.failure.class);
    for (const error of ['null', '""', 'false']) {
      const withError = (json: string): string => json.replace('{', `{"error":${error},`);
      expect(choices(wire.read(Buffer.concat([BOM, Buffer.from(withError(wire.body(script).toString()))])))).toBe(choices(wire.read(wire.body(script))));
      // Frames of Bedrock have checksums.
      if (wire.name === 'bedrock-converse') continue;
      const frames = wire.frames(script).map((frame) => Buffer.from(withError(frame.toString())));
      const told = gather(replay(wire.create, frames).events).get(0);
      expect([told?.content, told?.calls.length, told?.reasons]).toEqual(['ab', 1, ['tool_calls']]);
    }
  });

  test('frames lost, doubled, moved or torn never break a promise', () => {
    const damage = fc.record({ kind: fc.constantFrom('drop', 'double', 'move', 'tear'), at: fc.nat(), to: fc.nat() });
    fc.assert(
      fc.property(scripts, fc.array(damage, { minLength: 1, maxLength: 3 }), cuts, (script, damages, at) => {
        let frames = [...wire.frames(script)];
        for (const { kind, at: place, to } of damages) {
          const index = place % Math.max(1, frames.length);
          const frame = frames[index];
          if (frame === undefined) continue;
          if (kind === 'drop') frames = frames.toSpliced(index, 1);
          else if (kind === 'double') frames = frames.toSpliced(index, 0, frame);
          else if (kind === 'move') frames = frames.toSpliced(index, 1).toSpliced(to % frames.length, 0, frame);
          else frames = frames.toSpliced(index, 1, frame.subarray(0, to % frame.length));
        }
        const replayed = replay(wire.create, split(Buffer.concat(frames), at));
        // Pieces of arguments that are lost cannot be made up for here.
        expect([...brokenInvariants(replayed), ...brokenMoney(replayed.summary.usage)].filter((wrong) => wrong !== 'arguments are JSON')).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test('a policy that stops an answer anywhere ends what was told of it, unless that is nothing, or a call in half', () => {
    fc.assert(
      fc.property(scripts, fc.nat(), (script, at) => {
        // Cohere says it as the reason of a finish.
        const frames = wire.frames(wire.name === 'cohere-v2' ? { ...script, calls: [] } : script);
        const begun = frames.slice(0, at % (frames.length + 1));
        const stopped = replay(wire.create, [...begun, wire.policy]);
        const before = pushed(wire, begun);
        fc.pre(before.every(({ type }) => type === 'chunk'));
        const told = gather(before).get(0);
        const isHalf = told?.calls.some((call) => !isObjectText(call.arguments)) ?? false;
        const isSaid = before.some((one) => one.type === 'chunk' && one.content);
        expect(brokenInvariants(stopped)).toEqual([]);
        expect(stopped.events.at(-1)).toMatchObject(isSaid && !isHalf ? { type: 'done' } : { type: 'failed', failure: { class: 'CONTENT_POLICY', retryable: false } });
        const choice = gather(stopped.events).get(0);
        expect([choice?.content ?? '', choice?.reasoning ?? '', choice?.calls ?? [], choice?.reasons ?? []]).toEqual([told?.content ?? '', told?.reasoning ?? '', told?.calls ?? [], isSaid && !isHalf ? ['content_filter'] : []]);
        if (isSaid && !isHalf) expect(stopped.summary.finishReason).toBe('content_filter');
      }),
      { numRuns: 150 },
    );
  });

  test('bytes that are no answer at all are a failure, never a crash', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.json().map((text) => Buffer.from(text)), fc.json().map((text) => Buffer.from(`data: ${text}\n\n`))), cuts, (bytes, at) => {
        const replayed = replay(wire.create, split(Buffer.from(bytes), at));
        expect(brokenInvariants(replayed)).toEqual([]);
        expect(replayed.events.at(-1)?.type).toBe('failed');
        wire.read(Buffer.from(bytes));
      }),
      { numRuns: 150 },
    );
  });

  test('an answer that nests without end is no crash, and one of thousands of calls is garbage', () => {
    const many = (length: number): Script => ({ reasoning: [], text: [], calls: Array.from({ length }, () => ({ name: 'note', pieces: ['{"a":"b"}'] })), input: 1, output: 1, isCut: false, habit: 2 });
    expect(replay(wire.create, wire.frames(many(CALLS_MAX))).events.at(-1)).toEqual({ type: 'done' });
    expect(replay(wire.create, wire.frames(many(CALLS_MAX + 1))).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'GARBAGE' } });
    expect(wire.read(wire.body(many(CALLS_MAX))).ok).toBe(true);
    expect(wire.read(wire.body(many(5_000)))).toMatchObject({ ok: false, failure: { class: 'GARBAGE' } });

    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const script: Script = { reasoning: [], text: ['x'], calls: [{ name: 'note', pieces: ['{"a":"DEEP"}'] }], input: 1, output: 1, isCut: false, habit: 2 };
    const body = wire.body(script).toString().replace(/"DEEP"|\\"DEEP\\"/, deep).replace('"role":"assistant"', `"role":"assistant","annotations":${deep}`);
    wire.read(Buffer.from(body));
    if (!wire.isSse) return;
    const stream = Buffer.concat(wire.frames(script)).toString().replace(/"DEEP"|\\"DEEP\\"/, deep).replace('"content":"x"', `"content":"x","annotations":${deep}`);
    expect(replay(wire.create, [Buffer.from(stream)]).events.filter(({ type }) => type !== 'chunk')).toHaveLength(1);
  });

  test('figures that are no token counts are never booked', () => {
    const figure = fc.constantFrom<unknown>(-1, 1.5, 1e21, 9_007_199_254_740_993, '12', null, {}, [], true);
    fc.assert(
      fc.property(figure, fc.boolean(), (wrong, isInput) => {
        const script: Script = { reasoning: [], text: ['x'], calls: [], input: isInput ? 111_111 : 7, output: isInput ? 7 : 111_111, isCut: false, habit: 0 };
        const swapped = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').replaceAll(/111111|111118/g, JSON.stringify(wrong)), 'latin1');
        const result = wire.read(swapped(wire.body(script)));
        expect(result.ok).toBe(true);
        expect(brokenMoney(result.ok ? result.answer.usage : undefined)).toEqual([]);
        const counts = Object.values((result.ok ? result.answer.usage : undefined)?.tokens ?? {});
        expect(counts.every((count) => Number.isInteger(count) && count >= 0 && count <= 1e9)).toBe(true);
      }),
    );
  });
});
