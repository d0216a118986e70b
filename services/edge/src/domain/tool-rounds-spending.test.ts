import { describe, expect, test } from '@jest/globals';
import type { Tool__Output } from '@signalbox/contracts/plugins';
import { callerWith, plannedAt, planWith } from '../testing/callers.js';
import { admissionOf, events } from '../testing/neighbours.js';
import { withImages } from './round-answer.js';
import { calling, ours, saying, story, streaming, type Call, type Setting } from '../testing/rounds-story.js';

describe('tools that spend money', () => {
  const PICTURE = Buffer.from('a picture');
  const URL = `data:image/png;base64,${PICTURE.toString('base64')}`;
  const PAINT: Tool__Output = { name: 'generate_image', definition: Buffer.from('{"type":"function","function":{"name":"generate_image"}}'), feeNanoUsdMax: '50000000', imagesMax: 1 };
  const painting = (id = 'call_p'): Call => ({ id, name: 'generate_image', arguments: '{"prompt":"a fox"}' });
  const painted = (feeNanoUsd = '40000000') => ({ content: '{"status":"completed"}', stage: { name: 'image-gen', plugin: 'image-gen', status: 'completed', durationMs: 3, feeNanoUsd, boughtProvider: 'painter', boughtNanoUsd: '30000000', detail: Buffer.alloc(0) }, images: [{ mediaType: 'image/png', data: PICTURE }] });
  const capped = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
  const ROOM = admissionOf('ADMITTED', { heldNanoUsd: '20000000', heldTokens: '50000', roomNanoUsd: '1000000000' });
  const paint = (setting: Partial<Setting> = {}) => {
    const wasted: string[] = [];
    const told = story({ offered: [PAINT], runTool: () => Promise.resolve(painted()), rounds: [(call) => call.play(...calling(painting())), (call) => call.play(...saying())], ...setting });
    Object.assign(told.fake, { wastedRuns: { note: (accountId: string) => void wasted.push(accountId), waitMs: () => 0 } });
    return { ...told, wasted };
  };
  const messageOf = (raw: readonly string[]): unknown => (JSON.parse(raw.join('')) as readonly { readonly message: unknown }[])[0]?.message;

  test('an image is part of the answer, its price part of the next round, and the model does not see it', async () => {
    const { fake, answer, sent, wasted, run } = paint();
    expect((await run()).result).toBe('answered');
    expect(messageOf(answer.raw)).toMatchObject({ content: 'It is 42.', images: [{ type: 'image_url', image_url: { url: URL } }] });
    expect(fake.calls.map(({ request }) => request.card?.requestNanoUsd)).toEqual(['0', '40000000']);
    expect(fake.calls.map(({ request }) => request.card?.id)).toEqual(['card_1', 'card_1+plugins.40000000+bought.painter.30000000']);
    expect(JSON.stringify(sent(1, 'messages'))).not.toContain(PICTURE.toString('base64'));
    expect(answer.settlement?.pipeline).toMatchObject([{ stage: 'image-gen', feeNanoUsd: 40_000_000n, detail: { round: 1 } }]);
    expect(wasted).toEqual([]);
  });

  test('images stand behind those of the model itself, and nothing that it says is taken for their place', () => {
    const message = { role: 'assistant', content: 'It is null.', images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,b3du' } }], reasoning: 'null and void', reasoning_details: [{ signature: null }] };
    const [choice] = JSON.parse(withImages(Buffer.from(JSON.stringify([{ index: 0, message, logprobs: null, finish_reason: 'stop' }])), painted().images).toString()) as unknown[];
    expect(choice).toEqual({ index: 0, message: { ...message, images: [...message.images, { type: 'image_url', image_url: { url: URL } }] }, logprobs: null, finish_reason: 'stop' });
  });

  test('in a stream the images are one chunk before the end', async () => {
    const { answer, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.role(), events.text('Here.'), events.finish(), events.end())] });
    expect((await run()).result).toBe('answered');
    const at = answer.raw.findIndex((text) => text.includes('"images"'));
    expect(JSON.parse(answer.raw[at] ?? '')).toEqual([{ index: 0, delta: { images: [{ type: 'image_url', image_url: { url: URL } }] }, logprobs: null, finish_reason: null }]);
    expect([at, answer.raw.filter((text) => text.includes('"images"')).length]).toEqual([answer.raw.length - 2, 1]);
  });

  test('the stream begins with the role even if the model writes no text beside an image', async () => {
    const { answer, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.finish(), events.end())] });
    await run();
    expect(JSON.parse(answer.raw[0] ?? '')).toMatchObject([{ delta: { role: 'assistant', images: [{ type: 'image_url' }] } }]);
  });

  test('before anything is bought, the hold covers the round that carries it at its highest price', async () => {
    const order: string[] = [];
    const { fake, turn, run } = paint({ runTool: () => (order.push(`bought at ${fake.extended.length}`), Promise.resolve(painted())) });
    turn.caller = capped;
    fake.admissions = [ROOM];
    expect((await run()).result).toBe('answered');
    expect(order).toEqual(['bought at 1']);
    expect(fake.extended[0]?.[0]).toBeGreaterThanOrEqual(20_000n + 50_000_000n);
  });

  test('without room for it nothing is bought, and the answer ends with `length`', async () => {
    for (const room of ['30000000', '1000000000']) {
      const { fake, answer, ran, turn, wasted, run } = paint();
      turn.caller = capped;
      fake.admissions = [{ ...ROOM, roomNanoUsd: room }];
      fake.grantsExtensions = room === '30000000';
      expect((await run()).result).toBe('answered');
      expect([ran, fake.calls.length, wasted]).toEqual([[], 1, []]);
      expect(answer.settlement).toMatchObject({ end: { stoppedBy: 'cost_cap', finishReason: 'length', costNanoUsd: '20000' } });
    }
  });

  test('an answer has at most four images; the model is told about further calls, which are not run', async () => {
    const { answer, ran, sent, run } = paint({ rounds: [(call) => call.play(...calling(...['a', 'b', 'c', 'd', 'e', 'f'].map(painting))), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect(ran).toHaveLength(4);
    expect(messageOf(answer.raw)).toMatchObject({ images: [{}, {}, {}, {}] });
    expect(sent(1, 'messages')).toContainEqual({ role: 'tool', tool_call_id: 'f', content: 'Error: not run, since an answer holds 4 images at most.' });
  });

  test('a failed call costs nothing, shows nothing, and leaves its place to another one', async () => {
    let calls = 0;
    const failing = { content: 'Error: x', stage: { ...painted().stage, status: 'failed', feeNanoUsd: '0' }, images: [] };
    const { fake, answer, ran, run } = paint({ runTool: () => Promise.resolve((calls += 1) <= 4 ? failing : painted()), rounds: [(call) => call.play(...calling(...['a', 'b', 'c', 'd'].map(painting))), (call) => call.play(...calling(painting())), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect([ran.length, fake.calls.map(({ request }) => request.card?.requestNanoUsd)]).toEqual([5, ['0', '0', '40000000']]);
    expect(messageOf(answer.raw)).toMatchObject({ images: [{}] });
  });

  test('images are given only if they are charged: if no attempt of their round answers, they are dropped and counted as waste', async () => {
    const { answer, fake, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, fake.outcomes, wasted]).toEqual([[], ['a#2 DISCARDED followed', 'a#1 DISCARDED'], ['acct_1']]);
  });

  test('if a round fails after content, the client keeps what earlier rounds are charged for, images included', async () => {
    const { answer, fake, wasted, run } = paint({
      request: { stream: true },
      rounds: [(call) => call.play(events.role(), events.text('One moment. '), ...streaming(painting()).slice(1)), (call) => call.play(...streaming(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))],
    });
    expect((await run()).result).toBe('cut');
    expect([answer.raw.filter((text) => text.includes('"images"')).length, answer.said.at(-1), wasted]).toEqual([1, 'cut PROVIDER_ERROR', []]);
    expect(fake.outcomes).toEqual(['a#3 DISCARDED followed', 'a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });

  test('if nothing is charged in the end, what an earlier round had paid for counts as waste as well', async () => {
    const { answer, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), (call) => call.play(...calling(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, wasted]).toEqual([[], ['acct_1']]);
  });

  test('a stream that breaks in the round that carries an image still gives it, since it is charged', async () => {
    const cut = events.end({ cut: events.failed('DISCONNECTED').failed ?? null, finishReason: 'error' });
    const { answer, wasted, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.role(), events.text('Here'), cut)] });
    expect((await run()).result).toBe('cut');
    expect([answer.raw.filter((text) => text.includes('"images"')).length, answer.said.at(-1), wasted]).toEqual([1, 'cut DISCONNECTED', []]);
  });

  test.each([['CONTEXT_LENGTH', ['acct_1']], ['CONTENT_POLICY', ['acct_1']], ['PROVIDER_ERROR', []]] as const)('an answered round counts as waste if its result makes the next round fail: %s', async (reason, expected) => {
    const { answer, fake, wasted, run } = paint({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.failed(reason))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, fake.outcomes.at(-1), wasted]).toEqual([[], 'a#1 DISCARDED', expected]);
  });

  test('a first round that fails does not count as waste, since nothing was paid for it', async () => {
    const { wasted, run } = paint({ rounds: [(call) => call.play(events.failed('CONTEXT_LENGTH'))] });
    expect([(await run()).result, wasted]).toEqual(['refused', []]);
  });

  test('a client that leaves during the round that carries an image counts as waste', async () => {
    const { fake, answer, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), () => undefined] });
    const running = run();
    await fake.clock.settle();
    expect(fake.calls.length).toBe(2);
    answer.leave();
    expect([(await running).result, wasted]).toEqual(['gone', ['acct_1']]);
  });

  test('a client that leaves while an image is made counts as waste', async () => {
    const { answer, wasted, run } = paint({ runTool: (_request, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))) });
    const running = run();
    for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
    answer.leave();
    expect([(await running).result, wasted]).toEqual(['gone', ['acct_1']]);
  });

  test("on the account's own credentials the tool is told so, with their providers", async () => {
    const { fake, ran, turn, run } = paint();
    turn.caller = callerWith({ account: { providerKeys: [{ provider: 'a', handle: 'cred_1', zdr: true, last4: '', createdAt: '1', baseUrl: '', accountId: 'acct_1' }] } });
    fake.plan = planWith([plannedAt('a', { byok: true })]);
    expect((await run()).result).toBe('answered');
    expect(ran).toMatchObject([{ byok: true, ownCredentials: [{ provider: 'a', handle: 'cred_1', zdr: true }] }]);
  });

  test("on the operator's credentials the tool is told so, and which own ones the account has, so that it can name the reason for a refusal", async () => {
    const { ran, turn, run } = paint();
    turn.caller = callerWith({ account: { providerKeys: [{ provider: 'b', handle: 'cred_1', zdr: true, last4: '', createdAt: '1', baseUrl: '', accountId: 'acct_1' }] } });
    await run();
    expect(ran).toMatchObject([{ byok: false, ownCredentials: [{ provider: 'b', handle: 'cred_1', zdr: true }] }]);
  });
});
