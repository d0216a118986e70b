/** Streamed answers: the content of each event, and the framing of events. */
import { describe, expect, test } from '@jest/globals';
import { sse } from '@signalbox/testkit/fake-provider';
import { TIME_TOOL, WEATHER_TOOL } from './completions-suite.js';
import { completionOf, contentOf, header, nanoOf, readUntil, streamOf, type ChunkBody, type Got } from './http.js';
import { exchange, parseAnswer, requestText } from './raw-socket.js';
import { problems } from './schemas.js';
import { completion, GREETING, streamed, TIME_CALL, USAGE, WEATHER_CALL } from './upstreams.js';
import { HELLO, PINNED, type World } from './world.js';

export function describeStreams(world: () => World): void {
  const stream = async (body: object): Promise<{ readonly got: Got; readonly chunks: readonly ChunkBody[] }> => {
    const got = await world().chat({ model: PINNED, messages: HELLO, stream: true, ...body });
    expect(got.status).toBe(200);
    const { chunks, isDone } = streamOf(got.text);
    expect(isDone).toBe(true);
    for (const chunk of chunks) expect(problems('CreateChatCompletionStreamResponse', chunk)).toEqual([]);
    return { got, chunks };
  };

  describe('streams', () => {
    test('have the whole text in order, under one id, created and model', async () => {
      const { got, chunks } = await stream({});
      expect(contentOf(chunks)).toBe(GREETING);
      expect(new Set(chunks.map(({ id, created, model, object }) => JSON.stringify([id, created, model, object]))).size).toBe(1);
      expect(chunks[0]).toMatchObject({ id: header(got, 'x-request-id'), model: PINNED, object: 'chat.completion.chunk' });
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant');
      expect(chunks.slice(1).every(({ choices }) => choices.every(({ delta }) => delta.role === undefined))).toBe(true);
    });

    test('without include_usage have usage and x_router on the finish chunk, and never empty choices', async () => {
      const { chunks } = await stream({});
      expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
      const last = chunks.at(-1);
      expect(last?.choices[0]?.finish_reason).toBe('stop');
      expect(last?.usage).toMatchObject(USAGE);
      expect(last?.x_router === undefined).toBe(world().variant === 'B');
      expect(chunks.slice(0, -1).every((chunk) => !('usage' in chunk) && !('x_router' in chunk))).toBe(true);
    });

    test('with include_usage have usage null on every chunk and a last chunk without choices', async () => {
      const { chunks } = await stream({ stream_options: { include_usage: true } });
      const last = chunks.at(-1);
      expect(last).toMatchObject({ choices: [], usage: USAGE });
      expect(last?.x_router === undefined).toBe(world().variant === 'B');
      for (const chunk of chunks.slice(0, -1)) {
        expect(chunk.usage).toBeNull();
        expect('x_router' in chunk).toBe(false);
        expect(chunk.choices).toHaveLength(1);
      }
    });

    test.each([{}, { stream_options: { include_usage: true } }])('finish exactly once (%j)', async (options) => {
      const { chunks } = await stream(options);
      expect(chunks.flatMap(({ choices }) => choices).filter(({ finish_reason: reason }) => reason !== null)).toHaveLength(1);
    });

    test('number tool calls from 0 without gaps; ids and names come once, arguments are concatenated', async () => {
      const { chunks } = await stream({ tools: [WEATHER_TOOL, TIME_TOOL], messages: [{ role: 'user', content: 'two tools' }] });
      const deltas = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
      expect([...new Set(deltas.map(({ index }) => index))]).toEqual([0, 1]);
      for (const [index, call] of [WEATHER_CALL, TIME_CALL].entries()) {
        const own = deltas.filter((one) => one.index === index);
        expect(own.flatMap(({ id }) => (id === undefined ? [] : [id]))).toEqual([call.id]);
        expect(own.flatMap((one) => (one.function?.name === undefined ? [] : [one.function.name]))).toEqual([call.name]);
        expect(own[0]).toMatchObject({ id: call.id, type: 'function' });
        expect(own.map((one) => one.function?.arguments ?? '').join('')).toBe(call.arguments);
      }
      expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: reason }) => (reason === null ? [] : [reason])))).toEqual(['tool_calls']);
    });

    test('have every choice that n asks for, each finished once', async () => {
      const { chunks } = await stream({ model: 'simulator/fast', n: 2 });
      const finished = chunks.flatMap(({ choices }) => choices.filter(({ finish_reason: reason }) => reason !== null).map(({ index }) => index));
      expect(finished.sort()).toEqual([0, 1]);
    });

    test('have an estimate in the headers and the exact figures in trailers of the same names', async () => {
      const { got, chunks } = await stream({});
      expect(got.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no', 'x-router-provider': 'openai', 'x-router-cost-basis': 'estimate', trailer: 'X-Router-Cost, X-Router-Savings' });
      expect(nanoOf(header(got, 'x-router-cost'))).toBeGreaterThan(0n);
      const cost = nanoOf(got.trailers['x-router-cost'] ?? '');
      // 12 input tokens at 0.15 and 7 output tokens at 0.60 dollars per million.
      expect(cost).toBe(6_000n);
      const router = chunks.at(-1)?.x_router;
      if (router !== undefined) expect(nanoOf(router.cost_usd.toFixed(9))).toBe(cost);
    });

    test('have usage even if the provider reported none', async () => {
      world().upstreams.single.enqueue({ chunks: [...(streamed('a few', ' words').chunks ?? [])].filter((piece) => typeof piece !== 'string' || !piece.includes('"usage"')) });
      const { chunks } = await stream({ model: 'mistralai/codestral-2508' });
      expect(contentOf(chunks)).toBe('a few words');
      expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0);
    });

    test('carry images of megabytes, as whole answers do', async () => {
      const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBORw0KGgo'.repeat(150_000)}` } }];
      const [piece = '', ...rest] = streamed('a cat').chunks ?? [];
      const drawn = sse({ choices: [{ index: 0, delta: { images }, finish_reason: null }] });
      world().upstreams.single.enqueue({ chunks: [piece, drawn, drawn, ...rest] }, { body: { ...(completion('a cat').body as object), choices: [{ index: 0, message: { role: 'assistant', content: 'a cat', images }, finish_reason: 'stop' }] } });
      const { got, chunks } = await stream({ model: 'mistralai/codestral-2508' });
      expect(chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => (delta as { images?: unknown }).images ?? []))).toEqual([...images, ...images]);
      expect(nanoOf(got.trailers['x-router-cost'] ?? '')).toBeGreaterThan(0n);
      const whole = await world().chat({ model: 'mistralai/codestral-2508', messages: HELLO });
      expect([whole.status, (completionOf(whole).choices[0]?.message as { images?: unknown } | undefined)?.images]).toEqual([200, images]);
    });

    test('deliver each piece when it arrives, not at the end', async () => {
      let release: () => void = () => undefined;
      const wait = new Promise<void>((resolve) => (release = resolve));
      const [first = '', ...rest] = streamed('early', ' late').chunks ?? [];
      world().upstreams.single.enqueue({ chunks: [first, () => wait, ...rest] });
      const response = await fetch(`${world().gateway.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${world().account.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'mistralai/mistral-small-2603', messages: HELLO, stream: true }),
      });
      const reader = response.body?.getReader();
      if (reader === undefined) throw new Error('expected a body');
      const decoder = new TextDecoder();
      let text = await readUntil(reader, 'early');
      expect(text).not.toContain('late');
      release();
      for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value, { stream: true });
      expect(contentOf(streamOf(text).chunks)).toBe('early late');
    });

    test('write every event as one line and a blank line, with trailers after the last chunk', async () => {
      const body = JSON.stringify({ model: PINNED, messages: HELLO, stream: true });
      const raw = await exchange(world().gateway.baseUrl, requestText('POST', '/v1/chat/completions', [`Authorization: Bearer ${world().account.key}`, 'Content-Type: application/json', 'TE: trailers'], body));
      const { status, chunks, trailers } = parseAnswer(raw);
      expect(status).toBe(200);
      expect(chunks.join('')).toMatch(/^(?:(?:data: \{[^\n]*\}|: keep-alive)\n\n)+data: \[DONE\]\n\n$/);
      // No event is split over two writes.
      for (const chunk of chunks) expect(chunk.endsWith('\n\n')).toBe(true);
      expect(trailers.map((line) => line.toLowerCase().split(':')[0])).toEqual(expect.arrayContaining(['x-router-cost', 'x-router-savings']));
    });
  });
}
