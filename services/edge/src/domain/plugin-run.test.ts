import { describe, expect, test } from '@jest/globals';
import type { Account__Output } from '@signalbox/contracts/accounts';
import type { PrepareRequest, PrepareResponse__Output } from '@signalbox/contracts/plugins';
import { Fault } from '@signalbox/kernel/fault';
import { priceCardOf, type PriceCardText } from '@signalbox/kernel/price-cards';
import { costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import { withMessages } from '../routes/chat-completions/with-messages.js';
import { callerWith, cardWith, plannedAt, planWith, requestWith } from '../testing/callers.js';
import { admissionOf, createFakeNeighbours, events, type Script } from '../testing/neighbours.js';
import { createRecordedAnswer } from '../testing/recorded-answer.js';
import { calling, ours, saying, story as roundsStory } from '../testing/rounds-story.js';
import type { ChatRequest } from './chat-request.js';
import { conduct, type Neighbours } from './conduct.js';
import { createFloodGuard } from './flood.js';
import { annotationsOf } from './plugin-answer.js';

const manifest = (id: string): ManifestRecord => ({
  id, name: id, description: '', paid: false, kind: 'retrieval', fee_nano_usd: '0', zdr: true, data_collection_deny: true,
  options: { max_results: { type: 'integer', description: '', default: 5, min: 1, max: 10 } },
});
const nothing: PrepareResponse__Output = { problem: null, messages: Buffer.alloc(0), stages: [], citations: [], files: [], observes: false, tools: [], toolRoundsMax: 0 };
const stage = { name: 'web-search', plugin: 'web-search', status: 'completed', durationMs: 4, feeNanoUsd: '0', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) };
const TOKENS = { ...NO_TOKENS, inputUncached: 1_000, outputText: 333 };
const MESSAGES = Buffer.from('[{"role":"user","content":"hello"}]');
const CHANGED = Buffer.from('[{"role":"system","content":"found: [1] x"},{"role":"user","content":"hello"}]');

function story(response: PrepareResponse__Output | Fault, { request = {}, script = (call) => call.play(events.body('as [1] says'), events.end()) }: { readonly request?: Partial<ChatRequest>; readonly script?: Script } = {}) {
  const fake = createFakeNeighbours(planWith([plannedAt('a')]));
  fake.scripts.set('a', script);
  const prepared: PrepareRequest[] = [];
  const observed: string[] = [];
  const neighbours: Neighbours = Object.assign(fake, {
    withMessages,
    wastedRuns: createFloodGuard(fake.clock, 1, 60_000),
    plugins: {
      manifests: () => Promise.resolve(new Map(['web-search', 'pdf-reader'].map((id) => [id, manifest(id)]))),
      prepare: (asked: PrepareRequest) => {
        prepared.push(asked);
        return response instanceof Fault ? Promise.reject(response) : Promise.resolve(response);
      },
      observe: ({ requestId }: { requestId?: string }) => void observed.push(requestId ?? ''),
    },
  });
  const answer = createRecordedAnswer();
  const turn = {
    requestId: 'chatcmpl-0123456789', caller: callerWith(), answer,
    request: requestWith({ pluginIds: ['web-search'], fields: [{ name: 'messages', value: MESSAGES }], promptBytes: MESSAGES.length, ...request }),
  };
  return { fake, answer, prepared, observed, turn, neighbours, run: () => conduct(neighbours, turn) };
}

describe('refusals', () => {
  test('an option that the manifest does not have or allow is refused by name, before any plugin runs', async () => {
    for (const [options, kind, param] of [[{ max_results: 11 }, 'value', 'max_results'], [{ max_results: '5' }, 'type', 'max_results'], [{ results: 1 }, 'value', 'results']] as const) {
      const { run, answer, prepared } = story(nothing, { request: { pluginOptions: { 'web-search': options } } });
      await run();
      expect(answer.refusal).toMatchObject({ kind: 'plugin-problem', problem: { kind, plugin: 'web-search', param: `plugin_options.web-search.${param}` } });
      expect(prepared).toEqual([]);
    }
  });

  test('a plugin that is not installed is named', async () => {
    const { run, answer } = story(nothing, { request: { pluginIds: ['gutenberg'] } });
    await run();
    expect(answer.refusal).toEqual({ kind: 'plugin-unavailable', plugin: 'gutenberg' });
  });

  test('after a conflict with a policy or an unreadable file no provider is asked', async () => {
    for (const [kind, shown] of [['conflict', 'conflict'], ['invalid', 'value']] as const) {
      const { run, answer, fake } = story({ ...nothing, problem: { kind, plugin: 'web-search', param: 'plugins', message: 'no' } });
      await run();
      expect([answer.refusal, fake.calls.length, fake.asked.length]).toMatchObject([{ kind: 'plugin-problem', problem: { kind: shown } }, 0, 0]);
    }
  });

  test('what plugins add takes room beside the body; without room nobody is asked, and it is not the account that is at fault', async () => {
    const { turn, neighbours, answer, fake } = story({ ...nothing, messages: CHANGED });
    const taken: number[] = [];
    const takeRoom = (bytes: number): boolean => taken.push(bytes) < 3;
    for (let i = 0; i < 2; i += 1) await conduct(neighbours, { ...turn, takeRoom });
    expect([taken, fake.calls.length]).toEqual([[CHANGED.length, CHANGED.length], 2]);
    await conduct(neighbours, { ...turn, takeRoom });
    expect([answer.refusal, fake.calls.length]).toMatchObject([{ kind: 'fault', fault: { code: 'overloaded' } }, 2]);
    expect(neighbours.wastedRuns?.waitMs(turn.caller.account.id)).toBe(0);
  });

  test('an account whose plugins run for requests that admission refuses is rate-limited before they run', async () => {
    const { run, fake, answer, prepared } = story({ ...nothing, stages: [stage] });
    fake.admissions = [admissionOf('RATE_LIMITED')];
    for (let i = 0; i < 3; i += 1) await run();
    expect(prepared).toHaveLength(2);
    expect(answer.refusal).toMatchObject({ kind: 'plugins-flooded' });
  });
});

test('an account whose plugins run for requests that no model can serve is rate-limited, too', async () => {
  const { run, fake, answer, prepared } = story({ ...nothing, stages: [stage] });
  fake.plan = { ...planWith([]), refusal: 'MODEL_NOT_FOUND' };
  for (let i = 0; i < 3; i += 1) await run();
  expect(prepared).toHaveLength(2);
  expect(answer.refusal).toMatchObject({ kind: 'plugins-flooded' });
});

test('an account is not rate-limited for a fault of ours', async () => {
  const { run, fake, prepared } = story({ ...nothing, stages: [stage] });
  fake.routing.decide = () => Promise.reject(new Fault('peer_unavailable', 'down'));
  for (let i = 0; i < 4; i += 1) await run();
  expect(prepared).toHaveLength(4);
});

test('an account whose files cannot be read is rate-limited, too', async () => {
  const { run, answer, prepared } = story({ ...nothing, problem: { kind: 'invalid', plugin: 'web-search', param: 'messages', message: 'no' } });
  for (let i = 0; i < 3; i += 1) await run();
  expect(prepared).toHaveLength(2);
  expect(answer.refusal).toMatchObject({ kind: 'plugins-flooded' });
});

describe('a file that its plugin has not read', () => {
  const unread = { ...nothing, stages: [{ ...stage, name: 'pdf-reader', plugin: 'pdf-reader', status: 'failed' }] };
  const file: Partial<ChatRequest> = { pluginIds: ['pdf-reader'], hasUnboundedParts: true };
  const refusing = (excludedBy: string[]) => planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy });
  const blaming = (publicParam: string): Script => (call) => call.play(events.failed('BAD_REQUEST', { retryable: false, publicParam }));

  test.each<[string, string, PrepareResponse__Output | Fault]>([
    ['no limit can be kept', 'limit', unread],
    ['no model takes it', 'routing', unread],
    ['its provider does not take it', 'provider', unread],
    ['no limit can be kept, with the service away', 'limit', new Fault('peer_unavailable', 'down')],
    ['no model takes it, with the service away', 'routing', new Fault('peer_unavailable', 'down')],
  ])('is a fault of ours if %s: the client may retry and is not rate-limited', async (_what, by, response) => {
    const { neighbours, fake, turn, answer, prepared } = story(response, { request: file, script: blaming('messages.[0].content.[1].file.file_data') });
    if (by === 'routing') fake.plan = refusing(['zdr', 'file_input']);
    const caller = by === 'limit' ? callerWith({ account: { hardCap: true } }) : turn.caller;
    for (let i = 0; i < 4; i += 1) {
      expect(await conduct(neighbours, { ...turn, caller })).toMatchObject({ result: 'refused' });
      expect(answer.refusal).toEqual({ kind: 'plugin-failed', plugin: 'pdf-reader' });
    }
    expect(prepared).toHaveLength(4);
  });

  test.each<[string, (fake: ReturnType<typeof story>['fake']) => void, object]>([
    ['of a model that leaves it out for another reason', (fake) => (fake.plan = refusing(['zdr'])), { kind: 'routing' }],
    ['of another part', (fake) => fake.scripts.set('a', blaming('messages.[0].content.[1].image_url.url')), { kind: 'attempts' }],
  ])('does not replace a refusal that is %s', async (_what, set, refusal) => {
    const { run, fake, answer } = story(unread, { request: file });
    set(fake);
    await run();
    expect(answer.refusal).toMatchObject(refusal);
  });

  test('is the client’s problem if the plugin read what it should', async () => {
    const { run, fake, answer } = story({ ...nothing, stages: [{ ...stage, plugin: 'pdf-reader' }] }, { request: file });
    fake.plan = refusing(['file_input']);
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'routing' });
  });
});

test.each(['revoked', 'suspended'] as const)('a request whose caller is %s while its plugins run is refused', async (state) => {
  const { run, fake, answer } = story({ ...nothing, stages: [stage], observes: true });
  answer.callerNow = () => Promise.resolve(state);
  expect(await run()).toMatchObject({ result: 'refused' });
  expect([answer.refusal, fake.decided, fake.asked, fake.calls]).toEqual([{ kind: 'caller', state }, [], [], []]);
});

test('messages changed by plugins are used for routing, hold and dispatch, and the client sees which plugins ran', async () => {
  const { run, fake, answer, prepared } = story({ ...nothing, messages: CHANGED, stages: [stage], citations: [{ marker: '[1]', url: 'https://x.example/', title: 'X', content: 'x' }] }, { request: { zdr: true, dataCollection: 'deny', user: 'u' } });
  expect(await run()).toMatchObject({ result: 'answered' });
  expect(prepared[0]).toMatchObject({ accountId: 'acct_1', user: 'u', zdr: true, denyTraining: true, messages: MESSAGES });
  expect(fake.calls[0]?.request.fields).toEqual([{ name: 'messages', value: CHANGED }]);
  expect(BigInt(String(fake.asked[0]?.tokens ?? 0))).toBeGreaterThanOrEqual(BigInt(CHANGED.length));
  expect(answer.settlement?.pipeline).toMatchObject([{ stage: 'web-search', status: 'completed' }]);
});

test('plugins are told which providers the account and the request allow', async () => {
  const toldTo = async (account: Partial<Account__Output>, provider: ChatRequest['provider']): Promise<object> => {
    const { turn, prepared, neighbours } = story(nothing, { request: { provider } });
    await conduct(neighbours, { ...turn, caller: callerWith({ account }) });
    return { allowed: prepared[0]?.allowedProviders?.map(({ names }) => names), denied: prepared[0]?.deniedProviders };
  };
  expect(await toldTo({ allowProviders: ['a', 'b'], denyProviders: ['c'] }, { only: ['b'], ignore: ['d/fast'] })).toEqual({ allowed: [['a', 'b'], ['b']], denied: ['c', 'd/fast'] });
  expect(await toldTo({}, { order: ['a'], allowFallbacks: false })).toEqual({ allowed: [['a']], denied: [] });
  expect(await toldTo({}, { order: ['a'] })).toEqual({ allowed: [], denied: [] });
  expect(await toldTo({}, undefined)).toEqual({ allowed: [], denied: [] });
});

test('plugins are told which credentials the request may use', async () => {
  const { turn, prepared, neighbours } = story(nothing);
  const key = { accountId: 'acct_1', last4: '', baseUrl: '', createdAt: '1' };
  await conduct(neighbours, { ...turn, caller: callerWith({ account: { providerKeys: [{ ...key, provider: 'b', handle: 'cred_1', zdr: true }, { ...key, provider: 'c', handle: 'cred_2', zdr: false, baseUrl: 'https://models.example.com' }] } }) });
  expect(prepared.map(({ ownCredentials }) => ownCredentials)).toEqual([[{ provider: 'b', handle: 'cred_1', zdr: true, ownAddress: false }, { provider: 'c', handle: 'cred_2', zdr: false, ownAddress: true }]]);
});

test('plugins are told which models the account and the key allow, before routing and at each call', async () => {
  const caller = callerWith({ account: { allowModels: ['a/x', 'a/y'], denyModels: ['a/z'] }, key: { limits: { costCapPeriod: '', allowedModels: ['auto'], costCaps: [] } } });
  const bounds = { allowedByName: ['-'], allowedByChoice: ['a/x', 'a/y'], denied: ['a/z'] };
  const { turn, prepared, neighbours } = story(nothing);
  await conduct(neighbours, { ...turn, caller });
  expect(prepared.map(({ models }) => models)).toEqual([bounds]);
  const rounds = roundsStory({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
  await conduct(rounds.neighbours, { ...rounds.turn, caller });
  expect(rounds.ran.map(({ models }) => models)).toEqual([bounds]);
});

test('fees are part of the price card of worker, hold and ledger, under an id of its own', async () => {
  const { run, fake } = story({ ...nothing, stages: [{ ...stage, feeNanoUsd: '1000' }, { ...stage, feeNanoUsd: '234' }] });
  const free = story(nothing);
  await Promise.all([run(), free.run()]);
  expect(fake.calls[0]?.request.card).toMatchObject({ id: 'card_1+plugins.1234', requestNanoUsd: '1234' });
  expect(BigInt(String(fake.asked[0]?.amountNanoUsd)) - BigInt(String(free.fake.asked[0]?.amountNanoUsd))).toBe(1_234n);
  expect(free.fake.calls[0]?.request.card).toMatchObject({ id: 'card_1', requestNanoUsd: '0' });
});

test('fees are also part of the reference card, so that they do not change the savings', async () => {
  const list = cardWith({ id: 'list_1', outputText: '9000000000', requestNanoUsd: '50' });
  const { run, fake } = story({ ...nothing, stages: [{ ...stage, feeNanoUsd: '1234' }] });
  fake.plan = { ...planWith([plannedAt('a')]), referenceCard: list };
  await run();
  const { card, referenceCard } = fake.calls[0]?.request ?? {};
  expect(referenceCard).toMatchObject({ id: 'list_1+plugins.1234', requestNanoUsd: '1284' });
  const saved = (reference: PriceCardText, priced: PriceCardText): bigint => costOf(TOKENS, priceCardOf(reference)) - costOf(TOKENS, priceCardOf(priced));
  expect(saved(referenceCard as PriceCardText, card as PriceCardText)).toBe(saved(list, cardWith()));
});

test('fees are part of the cards of all price steps, each under an id of its own, and the worker gets them all', async () => {
  const stepsOf = (name: string) => [{ fromPromptTokens: 0, card: cardWith({ id: `${name}_1` }) }, { fromPromptTokens: 50, card: cardWith({ id: `${name}_2`, inputUncached: '2000000000', requestNanoUsd: '6' }) }];
  const { run, fake } = story({ ...nothing, stages: [{ ...stage, feeNanoUsd: '1234' }] });
  fake.plan = { ...planWith([plannedAt('a', { steps: stepsOf('card') })]), referenceCard: cardWith({ id: 'list_1' }), referenceSteps: stepsOf('list') };
  await run();
  const dearer = (name: string) => [{ fromPromptTokens: 0, card: { id: `${name}_1+plugins.1234`, requestNanoUsd: '1234' } }, { fromPromptTokens: 50, card: { id: `${name}_2+plugins.1234`, requestNanoUsd: '1240' } }];
  expect(fake.calls[0]?.request).toMatchObject({ card: { id: 'card_1+plugins.1234' }, steps: dearer('card'), referenceSteps: dearer('list') });
  const plain = story(nothing);
  await plain.run();
  expect(['steps' in (plain.fake.calls[0]?.request ?? {}), 'referenceSteps' in (plain.fake.calls[0]?.request ?? {})]).toEqual([false, false]);
});

test('without a reference card a fee does not create one', async () => {
  const { run, fake } = story({ ...nothing, stages: [{ ...stage, feeNanoUsd: '1234' }] });
  for (const referenceCard of [null, cardWith({ id: '' })]) {
    fake.plan = { ...planWith([plannedAt('a')]), referenceCard };
    await run();
    expect(fake.calls.at(-1)?.request.referenceCard).toEqual(referenceCard);
  }
});

test('without the plugins service the answer comes without plugins, and says so', async () => {
  const { run, answer, fake, observed } = story(new Fault('peer_unavailable', 'down'));
  expect(await run()).toMatchObject({ result: 'answered' });
  expect(fake.calls[0]?.request.fields).toEqual([{ name: 'messages', value: MESSAGES }]);
  expect(answer.settlement?.pipeline).toMatchObject([{ stage: 'web-search', status: 'failed', feeNanoUsd: 0n }]);
  expect(observed).toEqual([]);
});

test('plugins are told about answers that were given, and about no others', async () => {
  const good = story({ ...nothing, observes: true });
  const bad = story({ ...nothing, observes: true }, { script: (call) => call.play(events.failed('BAD_REQUEST', { retryable: false })) });
  await Promise.all([good.run(), bad.run()]);
  expect([good.observed, bad.observed]).toEqual([['chatcmpl-0123456789'], []]);
});

test('annotations are sent before the end of a stream, once, with their positions in the whole text', async () => {
  const { run, answer } = story(
    { ...nothing, citations: [{ marker: '[1]', url: 'https://x.example/', title: 'X', content: 'x' }] },
    { request: { stream: true }, script: (call) => call.play(events.role(), events.text('as ['), events.text('1] says'), events.finish(), events.end()) },
  );
  const chunks: string[] = [];
  const { chunk } = answer;
  answer.chunk = (route, choices) => {
    chunks.push(Buffer.from(choices).toString());
    chunk(route, choices);
  };
  await run();
  expect(chunks.filter((text) => text.includes('annotations')).map((text) => JSON.parse(text) as unknown)).toEqual([
    [{ index: 0, delta: { annotations: [{ type: 'url_citation', url_citation: { url: 'https://x.example/', title: 'X', content: 'x', start_index: 3, end_index: 6 } }] }, logprobs: null, finish_reason: null }],
  ]);
  expect(answer.said.at(-1)).toBe('finish 0:!stop');
});

test('a source is annotated at each place of its marker or URL, and with 0 to 0 if the answer does not name it', () => {
  const sources = [{ marker: '[1]', url: 'https://a.example/', title: 'A', content: 'a' }, { marker: '[2]', url: 'https://b.example/', title: 'B', content: 'b' }];
  const places = annotationsOf('see https://a.example/ and [1]', { citations: sources, files: [{ hash: 'h', name: 'f.pdf' }] }).map((one) => (one.type === 'file' ? one.file.name : [one.url_citation.title, one.url_citation.start_index, one.url_citation.end_index]));
  expect(annotationsOf('', { citations: [{ ...sources[0], content: `${'a'.repeat(499)}😀` } as never], files: [] })).toMatchObject([{ url_citation: { content: 'a'.repeat(499) } }]);
  expect(places).toEqual([['A', 4, 22], ['A', 27, 30], ['B', 0, 0], 'f.pdf']);
});

test.each([
  ['Fox [1]: `xs[1]`, ``ys`[1]``', ['4-7']],
  ['```js\nxs[1]\n```\nas in [1]', ['22-25']],
  ['````md\n```\nxs[1]\n```\nxs[1]\n````', ['0-0']],
  ['[1] ```\nxs[1]', ['0-3']],
  ['an open ` and [1]\nand ` again [1]', ['14-17', '30-33']],
  ['`https://a.example/`', ['1-19']],
])('a number in code cites nothing: %j', (text, places) => {
  const cited = annotationsOf(text, { citations: [{ marker: '[1]', url: 'https://a.example/', title: 'A', content: '' }], files: [] });
  expect(cited.map((one) => (one.type === 'file' ? '' : `${String(one.url_citation.start_index)}-${String(one.url_citation.end_index)}`))).toEqual(places);
});

test('a source whose URL is the beginning of another is not found in that one', () => {
  const cite = (text: string, url: string): readonly string[] => annotationsOf(text, { citations: [{ marker: '[1]', url, title: 'A', content: '' }], files: [] }).map((one) => (one.type === 'file' ? '' : text.slice(one.url_citation.start_index, one.url_citation.end_index)));
  const text = 'See https://a.example/fox_animal, https://a.example/fox-hunt, https://a.example/fox?page=2, (https://a.example/fox). Or https://a.example/fox.';
  expect(cite(text, 'https://a.example/fox')).toEqual(['https://a.example/fox', 'https://a.example/fox']);
  expect(cite(text, 'https://a.example/')).toEqual(['']);
  expect(cite('https://a.example/fox.html', 'https://a.example/fox')).toEqual(['']);
  expect(cite('\u89c1https://a.example/fox\u3002', 'https://a.example/fox')).toEqual(['https://a.example/fox']);
});
