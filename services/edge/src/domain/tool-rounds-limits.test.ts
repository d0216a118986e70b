import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { callerWith, cardWith, plannedAt, planWith } from '../testing/callers.js';
import { admissionOf, events, type PlayedCall } from '../testing/neighbours.js';
import { calling, chunkOf, ours, saying, story, streaming } from '../testing/rounds-story.js';

describe('limits', () => {
  const priced = { content: '42', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '234', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] };
  const capped = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });

  test('the hold grows for each round by the charge of the earlier rounds', async () => {
    const { fake, turn, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    expect((await run()).result).toBe('answered');
    expect(fake.extended).toHaveLength(1);
    expect(fake.extended[0]?.[0]).toBeGreaterThan(20_000n);
    expect(fake.extended[0]?.[1]).toBeGreaterThan(15n);
  });

  test('the worker of a later round is told the whole hold, also for an answer that does not grow', async () => {
    const { fake, turn, run } = story({ request: { maxTokens: 100 }, rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    expect((await run()).result).toBe('answered');
    const [, second] = fake.calls;
    expect(second?.request.heldOutputTokens).toBeUndefined();
    expect([BigInt(String(second?.request.heldNanoUsd)), BigInt(String(second?.request.heldTokens))]).toEqual(fake.extended[0]);
  });

  test('if quota is away between two rounds it is a fault of ours and not a cost cap, and nothing is charged', async () => {
    const { fake, answer, turn, run } = story({ rounds: [(call) => call.play(...calling(ours()))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = new Fault('quota_unavailable', 'away');
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'fault', fault: { code: 'quota_unavailable' } });
    expect(fake.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test('the same after content was sent: an error chunk, and the delivered rounds are charged', async () => {
    const { fake, answer, turn, run } = story({ request: { stream: true }, rounds: [(call) => call.play(events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = new Fault('quota_unavailable', 'away');
    expect((await run()).result).toBe('cut');
    expect(answer.refusal).toMatchObject({ kind: 'fault', fault: { code: 'quota_unavailable' } });
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('without room for the round that carries the fee of a program, the fee is shown as 0 and not charged', async () => {
    const { fake, answer, turn, run } = story({ rounds: [(call) => call.play(...calling(ours()))], runTool: () => Promise.resolve(priced) });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = false;
    await run();
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' }, pipeline: [{ stage: 'code-exec', status: 'completed', feeNanoUsd: 0n }] });
  });

  test('the same if that round fails after content: only fees of answered rounds are charged', async () => {
    const { answer, run } = story({
      request: { stream: true },
      rounds: [(call) => call.play(events.role(), events.text('One moment. '), ...streaming(ours()).slice(1)), (call) => call.play(...streaming(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))],
      runTool: () => Promise.resolve(priced),
    });
    expect((await run()).result).toBe('cut');
    expect(answer.settlement?.pipeline?.map(({ feeNanoUsd, detail }) => [detail['round'], feeNanoUsd])).toEqual([[1, 234n], [2, 0n]]);
  });

  test('without room for another round the answer ends with `length`, and says why', async () => {
    const { fake, answer, turn, run } = story({ rounds: [(call) => call.play(...calling(ours()))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = false;
    expect((await run()).result).toBe('answered');
    expect(fake.calls).toHaveLength(1);
    expect(answer.settlement).toMatchObject({ end: { stoppedBy: 'cost_cap', finishReason: 'length', costNanoUsd: '20000' } });
    expect(JSON.parse(answer.raw.join(''))).toMatchObject([{ finish_reason: 'length', message: { content: '' } }]);
  });
});

describe('prices with steps', () => {
  const dear = cardWith({ id: 'card_2', inputUncached: '4000000000', outputText: '6000000000', outputReasoning: '6000000000' });

  test('for a round that may exceed a price step the more expensive card is held, and the worker has both cards', async () => {
    const steps = [{ fromPromptTokens: 0, card: cardWith() }, { fromPromptTokens: 900, card: dear }];
    const rounds = [(call: PlayedCall) => call.play(...calling(ours())), (call: PlayedCall) => call.play(...saying())];
    const { fake, turn, run } = story({ rounds });
    fake.plan = planWith([plannedAt('a', { steps })]);
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '20000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    turn.caller = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
    turn.request = { ...turn.request, maxTokens: 100 };
    expect((await run()).result).toBe('answered');
    expect(fake.calls.map(({ request }) => request.steps)).toEqual([steps, steps]);
    const first = { nanoUsd: BigInt(String(fake.asked[0]?.amountNanoUsd)), prompt: BigInt(String(fake.asked[0]?.tokens)) - 100n };
    // The charge of the first round stays held: 20,000 nano-USD and 15 tokens.
    const [nanoUsd = 0n, tokens = 0n] = fake.extended[0] ?? [];
    const second = { nanoUsd: nanoUsd - 20_000n, prompt: tokens - 15n - 100n };
    expect([first.prompt < 900n, second.prompt >= 900n]).toEqual([true, true]);
    expect([first.nanoUsd, second.nanoUsd]).toEqual([first.prompt * 1_000n + 100n * 2_000n, second.prompt * 4_000n + 100n * 6_000n]);
  });
});
