/** JSON answers from providers that wrap it in text, break it or send none. */
import { describe, expect, test } from '@jest/globals';
import { completionOf, contentOf, header, streamOf, type Got } from './http.js';
import { completion, streamed } from './upstreams.js';
import { HELLO, type World } from './world.js';

const PAIR = 'openai/gpt-oss-120b';
const JSON_OBJECT = { response_format: { type: 'json_object' } };
const CITY = { response_format: { type: 'json_schema', json_schema: { name: 'city', schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } } };
const WRAPPED = 'Sure, here it is:\n```json\n{"city": "Oslo", "celsius": 4,}\n```\nAnything else?';
const HEALED = '{"city": "Oslo", "celsius": 4}';

export function describeHealing(world: () => World): void {
  const ask = async (more: object): Promise<Got> => {
    const got = await world().chat({ model: PAIR, messages: HELLO, ...more });
    expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
    return got;
  };
  const wordsOf = (got: Got): string => completionOf(got).choices[0]?.message.content ?? '';
  const pair = (): World['upstreams']['pair'] => world().upstreams.pair;
  const charged = async (got: Got): Promise<number> => (await world().ledgerOf(world().account.id, header(got, 'x-request-id'))).filter(({ kind }) => kind === 'charge').length;

  describe('healing', () => {
    test('extracts JSON from prose and fences, repairs it, and lists the steps', async () => {
      pair().enqueue(completion(WRAPPED));
      const got = await ask(JSON_OBJECT);
      expect([wordsOf(got), header(got, 'x-router-healed')]).toEqual([HEALED, 'fence,prose,syntax']);
      expect(completionOf(got).usage).toEqual({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
    });

    test('does the same for a stream, and lists the steps in the trailer', async () => {
      pair().enqueue(streamed(...(WRAPPED.match(/.{1,7}/gs) ?? [])));
      const got = await ask({ ...JSON_OBJECT, stream: true });
      const { chunks, isDone } = streamOf(got.text);
      expect([contentOf(chunks), isDone]).toEqual([HEALED, true]);
      expect(header(got, 'trailer')).toContain('X-Router-Healed');
    });

    test('does not change an answer that is valid, or without a JSON format', async () => {
      pair().enqueue(completion(HEALED), completion(WRAPPED));
      const right = await ask(JSON_OBJECT);
      expect([wordsOf(right), header(right, 'x-router-healed')]).toEqual([HEALED, 'none']);
      const plain = await ask({});
      expect([wordsOf(plain), plain.headers['x-router-healed']]).toEqual([WRAPPED, undefined]);
    });

    test('can be switched off by the client, in variant A', async () => {
      if (world().variant === 'B') return;
      pair().enqueue(completion(WRAPPED));
      expect(wordsOf(await ask({ ...JSON_OBJECT, plugin_options: { 'json-healing': { enabled: false } } }))).toBe(WRAPPED);
    });

    test('asks another provider once for an answer that does not match its schema, and charges one', async () => {
      pair().enqueue(completion('{"town":"Oslo"}'), completion('{"city":"Oslo"}'));
      const got = await ask(CITY);
      expect([wordsOf(got), header(got, 'x-router-healed'), header(got, 'x-router-attempts')]).toEqual(['{"city":"Oslo"}', 'none', '2']);
      expect(await charged(got)).toBe(1);
    });

    test('applies the schema beside json_object, as hosts of open models do', async () => {
      pair().enqueue(completion('{"town":"Oslo"}'), completion('{"city":"Oslo"}'));
      const { schema } = CITY.response_format.json_schema;
      const got = await ask({ response_format: { type: 'json_object', schema } });
      expect([wordsOf(got), header(got, 'x-router-attempts')]).toEqual(['{"city":"Oslo"}', '2']);
      const asked = JSON.parse(pair().requests.at(-1)?.body ?? '{}') as { readonly response_format?: unknown };
      expect(asked.response_format).toEqual({ type: 'json_schema', json_schema: { name: 'answer', schema } });
    });

    test('gives an answer that does not match as it is, if no provider gives a better one', async () => {
      pair().enqueue(completion('{"town":"Oslo"}'), completion('{"village":"Oslo",}'));
      const got = await ask(CITY);
      expect([wordsOf(got), header(got, 'x-router-healed')]).toEqual(['{"village":"Oslo",}', 'failed']);
    });

    test('gives up a schema that would hang its checker, without delay for others', async () => {
      pair().enqueue(completion(`{"a":"${'a'.repeat(40)}!"}`), completion(HEALED));
      const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
      const hostile = await ask({ response_format: { type: 'json_schema', json_schema: { name: 'h', schema } } });
      expect(header(hostile, 'x-router-healed')).toBe('none');
      expect(wordsOf(await ask(CITY))).toBe(HEALED);
    });

    test('is listed as a stage for a client that asks for metadata', async () => {
      if (world().variant === 'B') return;
      pair().enqueue(completion(WRAPPED));
      const got = await world().call({ headers: { 'x-router-metadata': 'enabled' }, body: { model: PAIR, messages: HELLO, ...JSON_OBJECT } });
      expect((JSON.parse(got.text) as { router_metadata: unknown }).router_metadata).toMatchObject({ pipeline: [{ stage: 'json-healing', status: 'repaired', steps: ['fence', 'prose', 'syntax'] }] });
    });
  });
}
