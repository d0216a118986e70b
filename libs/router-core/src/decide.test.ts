import { describe, expect, test } from '@jest/globals';
import { asPrice } from '@signalbox/kernel/money';
import { namedCard, type Endpoint, type EndpointLive, type Snapshot } from './catalog.js';
import { decide } from './decide.js';
import { unknownInList } from './filters.js';
import { catalogOf, endpointWith, pricesOf } from './random-catalog.js';
import { NO_NEEDS, NO_WISHES, plainRequest, type RouteRequest } from './request.js';

const CAN = endpointWith({ id: '', provider: '', model: '' }).capabilities;
const request = (changes: Partial<RouteRequest>): RouteRequest => ({ ...plainRequest('maker/one'), ...changes });
const withNeeds = (changes: Partial<RouteRequest['needs']>): RouteRequest => request({ needs: { ...NO_NEEDS, ...changes } });
const withWishes = (changes: Partial<RouteRequest['provider']>): RouteRequest => request({ provider: { ...NO_WISHES, ...changes } });

function single(changes: Partial<Endpoint>, live: Partial<EndpointLive> = {}): Snapshot {
  const id = 'alpha:maker/one';
  const stats: EndpointLive = { samples: 0, latencyMsP75: undefined, totalMsP75: undefined, totalSamples: 0, throughputTpsP50: undefined, throughputSamples: 0, successShare: 0.98, breaker: 'closed', ...live };
  return { catalog: catalogOf([{ id: 'maker/one', endpoints: [endpointWith({ id, provider: 'alpha', model: 'maker/one', ...changes })] }]), live: new Map([[id, stats]]) };
}

function planned(snapshot: Snapshot, asked: RouteRequest, seed = 1): string[] {
  const result = decide(asked, snapshot, seed);
  return result.kind === 'plan' ? result.attempts.map((attempt) => attempt.endpoint.id) : [result.kind];
}

describe('prices with steps', () => {
  const at = (fromPromptTokens: number, input: bigint) => ({ ...pricesOf('alpha:maker/one', input, 2n * input)[0], fromPromptTokens }) as Endpoint['prices'][number];
  const steps = [at(0, 1_000n), at(200_000, 2_000n)];
  const snapshotOf = (prices: Endpoint['prices'], contextWindow = 1_000_000): Snapshot => {
    const endpoint = endpointWith({ id: 'alpha:maker/one', provider: 'alpha', model: 'maker/one', prices, contextWindow });
    return { catalog: catalogOf([{ id: 'maker/one', endpoints: [endpoint], listPrices: prices }]), live: new Map() };
  };

  test.each([
    [100_000, 1_000n],
    [200_000, 2_000n],
  ])('a plan for %d tokens carries the card for so many, and all others with it', (promptTokens, input) => {
    const plan = decide(request({ promptTokens }), snapshotOf(steps), 1);
    const priced = { card: { inputUncached: input }, steps };
    expect(plan).toMatchObject({ kind: 'plan', attempts: [priced], reference: priced });
    // The reference of `auto` is an endpoint that it chooses itself.
    expect(decide({ ...plainRequest('auto'), promptTokens }, snapshotOf(steps), 1)).toMatchObject({ kind: 'plan', attempts: [priced], reference: priced });
  });

  test.each([
    ['the first card', {}, 100_000, 1_000_000, [0, 199_999]],
    ['the last card', {}, 300_000, 1_000_000, [200_000, 1_000_000]],
    ['the room beside the answer', { maxTokens: 1_000 }, 300_000, 400_000, [200_000, 399_000]],
  ])('the plan of the only endpoint reaches as far as %s', (_what, changes, promptTokens, contextWindow, [fromPromptTokens, toPromptTokens]) => {
    expect(decide(request({ promptTokens, ...changes }), snapshotOf(steps, contextWindow), 1)).toMatchObject({ reach: { fromPromptTokens, toPromptTokens } });
  });

  test('a plan reaches nowhere where another endpoint could serve a longer or cheaper prompt, is down, or is left to auto', () => {
    const endpoint = (id: string, changes: Partial<Endpoint> = {}): Endpoint => endpointWith({ id, provider: id, model: 'maker/one', prices: steps, contextWindow: 1_000_000, ...changes });
    const beside = (other: Partial<Endpoint>, live: Snapshot['live'] = new Map()): Snapshot => ({ catalog: catalogOf([{ id: 'maker/one', endpoints: [endpoint('alpha'), endpoint('beta', other)], listPrices: steps }]), live });
    const reachOf = (snapshot: Snapshot, asked = request({ promptTokens: 5_000 })): unknown => {
      const result = decide(asked, snapshot, 1);
      return result.kind === 'plan' ? result.reach : result.kind;
    };
    const reaching = { fromPromptTokens: 0, toPromptTokens: 199_999 };
    expect(reachOf(beside({}))).toBeUndefined();
    expect(reachOf(beside({ contextWindow: 1_000 }))).toBeUndefined();
    const { live } = single({}, { breaker: 'open' });
    expect(reachOf(beside({}, new Map([['beta', [...live.values()][0] as EndpointLive]])))).toBeUndefined();
    expect(reachOf(beside({ prices: [at(0, 9_000n)] }), { ...withWishes({ maxPricePrompt: asPrice(5_000n) }), promptTokens: 5_000 })).toBeUndefined();
    expect(reachOf(beside({ isServable: false }))).toEqual(reaching);
    expect(reachOf(beside({}), { ...withWishes({ only: ['alpha'] }), promptTokens: 5_000 })).toEqual(reaching);
    expect(reachOf(beside({ isServable: false }), { ...plainRequest('auto'), promptTokens: 5_000 })).toBeUndefined();
    expect(reachOf(beside({ isServable: false }), request({ models: ['auto'], promptTokens: 5_000 }))).toBeUndefined();
  });

  test('where one card holds for every prompt there are none', () => {
    expect(decide(request({}), snapshotOf(steps.slice(0, 1)), 1)).toMatchObject({ kind: 'plan', attempts: [{ steps: [] }], reference: { steps: [] } });
  });
});

describe('names of lists', () => {
  const endpointOf = (model: string): Endpoint => endpointWith({ id: `alpha:${model}`, provider: 'alpha', model });
  const catalog = catalogOf(['maker/one', 'other/one', 'maker/two'].map((id) => ({ id, endpoints: [endpointOf(id)] })));
  const snapshot: Snapshot = { catalog, live: new Map() };

  test('what forbids by a bare id that several makers have forbids them all, and what allows by it allows none', () => {
    const askedOf = (model: string, lists: Partial<RouteRequest>): string[] => planned(snapshot, { ...plainRequest(model), ...lists });
    expect(['maker/one', 'other/one', 'maker/two'].map((model) => askedOf(model, { denyModels: ['One'] })[0])).toEqual(['no-eligible-provider', 'no-eligible-provider', 'alpha:maker/two']);
    expect(['maker/one', 'other/one'].map((model) => askedOf(model, { allowModels: ['one'] })[0])).toEqual(['no-eligible-provider', 'no-eligible-provider']);
    expect(askedOf('maker/two', { allowModels: ['TWO'] })).toEqual(['alpha:maker/two']);
  });

  test.each<[string, boolean, boolean]>([
    ['maker/one', true, true], ['Maker/ONE', true, true], ['two', true, true], ['one', false, true], ['auto', true, false], ['router-auto', true, false],
    ['maker/three', false, false], ['mkaer/one', false, false], ['', false, false],
    ['*', true, true], ['maker/*', true, true], ['MAKER/o*', true, true], ['mak*', true, true], ['maker/to-come*', true, true], ['mkaer/*', false, false], ['two*', false, false],
  ])('%j stands for something: %j where it allows, %j where it forbids', (name, whereAllowed, whereDenied) => {
    expect([unknownInList(catalog, [name], 'allow'), unknownInList(catalog, [name], 'deny')]).toEqual([whereAllowed ? [] : [name], whereDenied ? [] : [name]]);
  });
});

describe('outliers', () => {
  const EJECTED: EndpointLive = { samples: 20, latencyMsP75: 200, totalMsP75: undefined, totalSamples: 0, throughputTpsP50: undefined, throughputSamples: 0, successShare: 0.9, breaker: 'closed', ejectedFor: 'failures' };
  const one = ['alpha', 'beta', 'gamma'].map((provider) => endpointWith({ id: provider, provider, model: 'maker/one' }));
  const two = endpointWith({ id: 'two', provider: 'delta', model: 'maker/two' });
  const catalog = catalogOf([{ id: 'maker/one', endpoints: one }, { id: 'maker/two', endpoints: [two] }]);
  const without = (...ids: readonly string[]): Snapshot => ({ catalog, live: new Map(ids.map((id) => [id, EJECTED])) });

  test.each<[string, Snapshot, RouteRequest, readonly string[]]>([
    ['are left out', without('alpha'), request({ provider: { ...NO_WISHES, order: ['alpha', 'beta', 'gamma'] } }), ['beta', 'gamma']],
    ['come last where one other is left', without('alpha'), request({ provider: { ...NO_WISHES, order: ['alpha', 'beta'], ignore: ['gamma'] } }), ['beta', 'alpha']],
    ['serve where the request may go nowhere else', without('alpha'), withWishes({ only: ['alpha'] }), ['alpha']],
    ['serve the model that was asked for before another does', without('alpha'), request({ models: ['maker/two'], provider: { ...NO_WISHES, only: ['alpha', 'delta'] } }), ['alpha', 'two']],
    ['leave their place to the next model', without('alpha'), request({ models: ['maker/two'], provider: { ...NO_WISHES, order: ['beta'], ignore: ['gamma'] } }), ['beta', 'two']],
    ['stay out where one attempt is all', without('alpha'), request({ provider: { ...NO_WISHES, ignore: ['gamma'], allowFallbacks: false } }), ['beta']],
    ['are none on the account’s own credential, which no other pays for', without('alpha'), request({ byokProviders: ['alpha'] }), ['alpha']],
  ])('%s', (_name, snapshot, asked, expected) => {
    expect(planned(snapshot, asked)).toEqual(expected);
  });

  test('are no reason to pass a filter', () => {
    const strict = { ...without('alpha'), catalog: catalogOf([{ id: 'maker/one', endpoints: one.map((endpoint) => ({ ...endpoint, zdr: endpoint.provider === 'alpha' })) }]) };
    expect(planned(strict, request({ zdr: true }))).toEqual(['alpha']);
  });

  test('whose breaker is open are not asked at all', () => {
    const down: Snapshot = { catalog, live: new Map([['alpha', { ...EJECTED, breaker: 'open' }]]) };
    expect(planned(down, withWishes({ only: ['alpha'] }))).toEqual(['all-unhealthy']);
    // The breaker may reflect a refusal of the operator's credential. The account's own is still used, rather than one for which it would pay us.
    expect(planned(down, request({ byokProviders: ['alpha'] }))).toEqual(['alpha']);
    expect(planned(down, request({ byokProviders: ['beta'], provider: { ...NO_WISHES, order: ['alpha', 'beta'] } }))).toEqual(['beta']);
  });
});

const DEAR_THOUGHTS_AND_SOUND = pricesOf('dear', 1_000_000_000n, 2_000_000_000n).map((step) => ({ ...step, card: namedCard('dear', { ...step.card, outputReasoning: asPrice(8_400_000_000n), audio: asPrice(4_000_000_000n) }) }));

describe('refusals', () => {
  test.each<[string, Partial<Endpoint>, RouteRequest]>([
    ['tools', { capabilities: { ...CAN, tools: false } }, withNeeds({ tools: true })],
    ['tools', { capabilities: { ...CAN, forcedToolChoice: false } }, withNeeds({ tools: true, forcedToolChoice: true })],
    ['response_format', { capabilities: { ...CAN, jsonSchema: false } }, withNeeds({ responseFormat: 'json_schema' })],
    ['response_format', { capabilities: { ...CAN, jsonObject: false } }, withNeeds({ responseFormat: 'json_object' })],
    ['vision', { capabilities: { ...CAN, vision: false } }, withNeeds({ vision: true })],
    ['file_input', { capabilities: { ...CAN, fileInput: false } }, withNeeds({ fileInput: true })],
    ['audio_input', { capabilities: { ...CAN, audioInput: false } }, withNeeds({ audioInput: true })],
    ['streaming', { capabilities: { ...CAN, streaming: false } }, withNeeds({ streaming: true })],
    ['logprobs', { capabilities: { ...CAN, logprobs: false } }, withNeeds({ logprobs: true })],
    ['choices', { capabilities: { ...CAN, choices: false } }, withNeeds({ choices: 2 })],
    ['data_collection', { trainsOnData: true }, request({ denyDataCollection: true })],
    ['data_collection', { trainsOnData: null }, request({ denyDataCollection: true })],
    ['zdr', { zdr: false }, request({ zdr: true })],
    ['quantization', { quantizationBits: 4 }, request({ minQuantization: 'int8' })],
    ['quantization', { quantizationBits: 32 }, request({ maxQuantization: 'bf16' })],
    ['quantization', { quantizationBits: null }, request({ maxQuantization: 'fp32' })],
    ['allow_list', {}, request({ denyModels: ['maker/*'] })],
    ['allow_list', {}, request({ denyModels: ['MAKER/*'] })],
    ['allow_list', {}, request({ denyModels: ['Maker/One'] })],
    ['allow_list', {}, request({ denyModels: ['ONE'] })],
    ['allow_list', {}, request({ allowModels: ['Auto'] })],
    ['allow_list', {}, request({ allowModels: ['other/model'] })],
    ['allow_list', {}, request({ allowModels: ['auto'] })],
    ['allow_list', {}, request({ denyProviders: ['alpha'] })],
    ['allow_list', {}, request({ allowProviders: ['beta'] })],
    ['provider_preferences', {}, withWishes({ only: ['beta'] })],
    ['provider_preferences', {}, withWishes({ ignore: ['alpha'] })],
    ['provider_preferences', {}, withWishes({ order: ['beta'], allowFallbacks: false })],
    ['max_price', {}, withWishes({ maxPricePrompt: 999_999_999n })],
    ['max_price', {}, withWishes({ maxPriceCompletion: 1n })],
    ['max_price', { prices: DEAR_THOUGHTS_AND_SOUND }, withWishes({ maxPriceCompletion: 8_399_999_999n })],
    ['max_price', { prices: DEAR_THOUGHTS_AND_SOUND }, { ...withWishes({ maxPricePrompt: 3_999_999_999n }), needs: { ...NO_NEEDS, audioInput: true } }],
    ['parameters', { unsupportedParams: new Set(['seed']) }, { ...withWishes({ requireParameters: true }), needs: { ...NO_NEEDS, params: ['seed'] } }],
    ['own_credential', {}, withNeeds({ ownCredential: true })],
    ['own_credential', {}, { ...withNeeds({ ownCredential: true }), byokProviders: ['beta'] }],
    ['own_credential', { takesByok: false }, { ...withNeeds({ ownCredential: true }), byokProviders: ['alpha'] }],
  ])('names %s as the reason', (reason, changes, asked) => {
    expect(decide(asked, single(changes), 1)).toEqual({ kind: 'no-eligible-provider', excludedBy: [reason] });
  });

  test.each([
    ['precision at both bounds', { quantizationBits: 8 }, request({ minQuantization: 'int8', maxQuantization: 'fp8' })],
    ['a price of sound where there is none', { prices: DEAR_THOUGHTS_AND_SOUND }, withWishes({ maxPricePrompt: 1_000_000_000n, maxPriceCompletion: 8_400_000_000n })],
    ['a price at the bound', {}, withWishes({ maxPricePrompt: 1_000_000_000n, maxPriceCompletion: 2_000_000_000n })],
    ['a prompt that fills the window to the last token', {}, request({ promptTokens: 127_000, maxTokens: 1_000 })],
    ['a prompt into an unknown window', { contextWindow: null }, request({ promptTokens: 9_000_000 })],
    ['a model that is allowed in other capitals', {}, request({ allowModels: ['Maker/ONE'] })],
    ['a credential of the account', { hasManagedCredential: false }, request({ byokProviders: ['alpha'] })],
  ])('takes %s', (_what, changes, asked) => {
    expect(planned(single(changes), asked)).toEqual(['alpha:maker/one']);
  });

  test('a policy belongs to the credential: the operator’s agreement does not cover an account’s own', () => {
    const zdr = request({ zdr: true, byokProviders: ['alpha'] });
    const byAgreement = { zdr: true, zdrByDefault: false };
    expect(planned(single(byAgreement), request({ zdr: true }))).toEqual(['alpha:maker/one']);
    expect(decide(zdr, single(byAgreement), 1)).toEqual({ kind: 'no-eligible-provider', excludedBy: ['zdr'] });
    expect(planned(single(byAgreement), { ...zdr, byokZdrProviders: ['alpha'] })).toEqual(['alpha:maker/one']);
    expect(planned(single({ zdr: false, zdrByDefault: false }), { ...zdr, byokZdrProviders: ['alpha'] })).toEqual(['alpha:maker/one']);
    expect(planned(single({ zdr: true, zdrByDefault: true }), zdr)).toEqual(['alpha:maker/one']);
    // The account's agreement does not cover the operator's credential either.
    expect(decide(request({ zdr: true, byokZdrProviders: ['alpha'] }), single({ zdr: false, zdrByDefault: false }), 1)).toEqual({ kind: 'no-eligible-provider', excludedBy: ['zdr'] });
  });

  test('what a provider promises says nothing of an address that the account gave: its own word alone does', () => {
    const own = { byokProviders: ['alpha'], byokOwnAddressProviders: ['alpha'] };
    const best = single({ zdr: true, zdrByDefault: true, trainsOnData: false });
    expect(decide(request({ zdr: true, ...own }), best, 1)).toEqual({ kind: 'no-eligible-provider', excludedBy: ['zdr'] });
    expect(decide(request({ denyDataCollection: true, ...own }), best, 1)).toEqual({ kind: 'no-eligible-provider', excludedBy: ['data_collection'] });
    expect(planned(best, request(own))).toEqual(['alpha:maker/one']);
    // A server that retains nothing cannot train on it, whatever the provider does.
    expect(planned(single({ zdr: false, zdrByDefault: false, trainsOnData: true }), request({ zdr: true, denyDataCollection: true, ...own, byokZdrProviders: ['alpha'] }))).toEqual(['alpha:maker/one']);
    expect(planned(best, request({ zdr: true, denyDataCollection: true, byokProviders: ['alpha'] }))).toEqual(['alpha:maker/one']);
    // The operator's credential is used there, so the account's own address is not.
    expect(planned(single({ zdr: true, zdrByDefault: false, takesByok: false }), request({ zdr: true, denyDataCollection: true, ...own }))).toEqual(['alpha:maker/one']);
  });

  test('a request that an own address may not see goes on the operator’s credential to another provider, never to that one', () => {
    const ends = ['alpha', 'beta'].map((provider) => endpointWith({ id: `${provider}:maker/one`, provider, model: 'maker/one' }));
    const both: Snapshot = { catalog: catalogOf([{ id: 'maker/one', endpoints: ends }]), live: new Map() };
    const own = { byokProviders: ['alpha'], byokOwnAddressProviders: ['alpha'] };
    expect(planned(both, request(own))).toEqual(['alpha:maker/one']);
    for (const wish of [{ zdr: true }, { denyDataCollection: true }]) expect(planned(both, request({ ...own, ...wish }))).toEqual(['beta:maker/one']);
  });

  test('tells the window when one token more than it is asked for', () => {
    expect(decide(request({ promptTokens: 127_000, maxTokens: 1_001 }), single({}), 1)).toEqual({ kind: 'context-length-exceeded', contextLimit: 128_000, excludedBy: ['context_length'] });
  });

  test.each([
    ['what the model writes', 10, 32_000, 16_384],
    ['what is left of its window', 120_000, 32_000, 8_000],
    ['nothing, where the prompt is too long by itself', 128_000, 32_000, undefined],
    ['nothing, where the model would write as much', 127_000, 16_384, undefined],
  ])('tells how much a request that asks for a longer answer may ask for: %s', (_what, promptTokens, maxTokens, answerLimit) => {
    const decided = decide(request({ promptTokens, maxTokens }), single({ maxOutputTokens: 16_384 }), 1);
    expect([decided.kind, decided.kind === 'context-length-exceeded' ? decided.answerLimit : 0]).toEqual(['context-length-exceeded', answerLimit]);
  });

  describe('of a prompt that is longer by the estimate alone', () => {
    const fits = { promptTokens: 200_000, promptTokensMin: 50_000 };
    const sized = (id: string, changes: Partial<Endpoint>): Endpoint => endpointWith({ id: `${id}:maker/one`, provider: id, model: 'maker/one', ...changes });
    const among = (...endpoints: Endpoint[]): Snapshot => ({ catalog: catalogOf([{ id: 'maker/one', endpoints }]), live: new Map() });

    test('leaves the judgement to the provider, and prefers a window that has room for the estimate', () => {
      expect(planned(single({}), request(fits))).toEqual(['alpha:maker/one']);
      expect(planned(single({}), { ...plainRequest('auto'), ...fits })).toEqual(['alpha:maker/one']);
      expect(planned(among(sized('alpha', {}), sized('beta', { contextWindow: 1_000_000 })), request(fits))).toEqual(['beta:maker/one']);
      expect(planned(single({}), request({ ...fits, promptTokensMin: undefined }))).toEqual(['context-length-exceeded']);
      expect(planned(single({}), request({ ...fits, promptTokensMin: 128_001 }))).toEqual(['context-length-exceeded']);
      expect(planned(single({ maxOutputTokens: 8_000 }), request({ ...fits, maxTokens: 8_001 }))).toEqual(['context-length-exceeded']);
    });

    test('tries small windows last, whatever the others cost, unless the client gave an order; who pays does not change', () => {
      const costing = (id: string, contextWindow: number, nano: bigint): Endpoint => sized(id, { contextWindow, prices: pricesOf(`${id}:maker/one`, nano, nano) });
      const snapshot = among(costing('alpha', 60_000, 1n), costing('beta', 60_000, 1n), costing('gamma', 60_000, 1n), costing('delta', 131_000, 1_000_000n), costing('epsilon', 128_000, 10n));
      for (let seed = 0; seed < 20; seed += 1) expect(planned(snapshot, request(fits), seed).slice(0, 2)).toEqual(['epsilon:maker/one', 'delta:maker/one']);
      expect(planned(snapshot, request({ ...fits, provider: { ...NO_WISHES, order: ['beta'] } }))[0]).toBe('beta:maker/one');
      expect(planned(snapshot, request({ ...fits, byokProviders: ['alpha'] }))).toEqual(['alpha:maker/one']);
    });

    test('leaves it to those that are there if all with more room are down, and tells for how long they are', () => {
      const downFor = (waitMs: number | undefined): Snapshot => {
        const [stats] = single({}, { breaker: 'open', ...(waitMs === undefined ? {} : { waitMs }) }).live.values();
        return { ...among(sized('alpha', {}), sized('beta', { contextWindow: 1_000_000 })), live: new Map(stats === undefined ? [] : [['beta:maker/one', stats]]) };
      };
      expect(decide(request(fits), downFor(6_500), 1)).toMatchObject({ kind: 'plan', attempts: [{ endpoint: { id: 'alpha:maker/one' } }], reach: undefined, roomierAfterMs: 6_500 });
      expect(decide(request(fits), downFor(undefined), 1)).toMatchObject({ kind: 'plan', roomierAfterMs: 5_000 });
      expect(decide(request({ ...fits, promptTokensMin: 128_001 }), downFor(6_500), 1)).toMatchObject({ kind: 'all-unhealthy', retryAfterMs: 6_500 });
      expect(decide(request(fits), { ...downFor(6_500), live: new Map() }, 1)).not.toHaveProperty('roomierAfterMs');
    });

    test('leaves it to none that would shorten the prompt unseen', () => {
      expect(planned(single({ wireProtocol: 'ollama' }), request(fits))).toEqual(['context-length-exceeded']);
      expect(planned(among(sized('alpha', { wireProtocol: 'ollama' }), sized('beta', {})), request(fits))).toEqual(['beta:maker/one']);
    });

    test('has the prices of the estimated length, and serves no other request', () => {
      const [first] = pricesOf('alpha:maker/one', 1_000n, 2_000n);
      const [dear] = pricesOf('alpha:maker/one', 9_000n, 18_000n);
      const prices = first === undefined || dear === undefined ? [] : [first, { ...dear, fromPromptTokens: 150_000 }];
      const snapshot = single({ prices });
      expect(decide(request(fits), snapshot, 1)).toMatchObject({ kind: 'plan', attempts: [{ card: { inputUncached: 9_000n } }], reach: undefined });
      expect(planned(snapshot, request({ ...fits, provider: { ...NO_WISHES, maxPricePrompt: asPrice(5_000n) } }))).toEqual(['no-eligible-provider']);
    });

    test('tells how long an answer may be asked for', () => {
      expect(decide(request({ ...fits, maxTokens: 32_000 }), single({ maxOutputTokens: 16_384 }), 1)).toMatchObject({ kind: 'context-length-exceeded', answerLimit: 16_384 });
    });
  });

  test('knows no model without a credential, without a price or by an unknown name', () => {
    expect(decide(request({}), single({ hasManagedCredential: false }), 1)).toEqual({ kind: 'model-not-found' });
    expect(decide(request({}), single({ isServable: false }), 1)).toEqual({ kind: 'model-not-found' });
    expect(decide(request({ model: 'nobody/nothing' }), single({}), 1)).toEqual({ kind: 'model-not-found' });
    expect(decide(request({ byokProviders: ['alpha'] }), single({ hasManagedCredential: false, takesByok: false }), 1)).toEqual({ kind: 'model-not-found' });
  });

  test('says unhealthy, not ineligible, when only the breaker is in the way', () => {
    expect(decide(request({}), single({}, { breaker: 'open' }), 1)).toEqual({ kind: 'all-unhealthy', retryAfterMs: 0, isLengthToo: false });
    expect(decide(request({}), single({}, { breaker: 'open', waitMs: 6_500.5 }), 1)).toEqual({ kind: 'all-unhealthy', retryAfterMs: 6_501, isLengthToo: false });
    expect(planned(single({}, { breaker: 'half-open' }), request({}))).toEqual(['alpha:maker/one']);
  });
});

describe('order', () => {
  const three = (): Snapshot => ({
    live: new Map(),
    catalog: catalogOf([{
      id: 'maker/one',
      aliases: ['one-2026-01-01'],
      endpoints: [
        endpointWith({ id: 'a', provider: 'alpha', model: '', prices: pricesOf('a', 3_000_000_000n, 9_000_000_000n), priorLatencyMsP75: 100, priorThroughputTpsP50: 200 }),
        endpointWith({ id: 'b', provider: 'beta', model: '', prices: pricesOf('b', 1_000_000_000n, 2_000_000_000n), priorLatencyMsP75: 900, priorThroughputTpsP50: 20 }),
        endpointWith({ id: 'c', provider: 'gamma', model: '', prices: pricesOf('c', 2_000_000_000n, 4_000_000_000n) }),
      ],
    }]),
  });

  test.each<[string, Partial<RouteRequest['provider']>, string[]]>([
    ['by price', { sort: 'price' }, ['b', 'c', 'a']],
    ['by latency, unknown last', { sort: 'latency' }, ['a', 'b', 'c']],
    ['by throughput, unknown last', { sort: 'throughput' }, ['a', 'b', 'c']],
    ['by the client’s own list first', { sort: 'price', order: ['gamma', 'alpha'] }, ['c', 'a', 'b']],
    ['only the listed ones without fallbacks', { order: ['gamma', 'alpha'], allowFallbacks: false }, ['c', 'a']],
  ])('sorts %s', (_how, wishes, ids) => {
    const asked = { ...withWishes(wishes), promptTokens: 1_000, needs: { ...NO_NEEDS, streaming: true } };
    expect(planned(three(), asked)).toEqual(ids);
  });

  test('an account’s own credentials come first, and who pays never changes within a plan', () => {
    expect(planned(three(), request({ byokProviders: ['alpha', 'gamma'] })).sort()).toEqual(['a', 'c']);
    expect(planned(three(), { ...request({ byokProviders: ['alpha'] }), provider: { ...NO_WISHES, order: ['beta'] } })[0]).toBe('b');
    expect(planned(three(), { ...request({ byokProviders: ['alpha'] }), provider: { ...NO_WISHES, order: ['beta'] } })).not.toContain('a');
    const plan = decide(request({ byokProviders: ['alpha'] }), three(), 1);
    expect(plan.kind === 'plan' && plan.attempts.map(({ byok }) => byok)).toEqual([true]);
    // An id that exists under an account's credential goes only to that account's own, whatever the client prefers.
    expect(planned(three(), { ...withNeeds({ ownCredential: true }), byokProviders: ['alpha'], provider: { ...NO_WISHES, order: ['beta'] } })).toEqual(['a']);
  });

  test('a whole answer has the time that its tokens may take at a quarter of the usual speed, a stream and an unknown one no such bound', () => {
    const timed = (over: Partial<RouteRequest>, wishes: Partial<RouteRequest['provider']> = { order: ['alpha'] }): number | undefined => {
      const plan = decide({ ...withWishes(wishes), ...over }, three(), 1);
      return plan.kind === 'plan' ? plan.attempts[0]?.wholeTimeoutMs : undefined;
    };
    const known = three().catalog.endpoints.find(({ provider }) => provider === 'alpha')?.priorThroughputTpsP50 ?? 0;
    expect(known).toBeGreaterThan(0);
    expect(timed({ maxTokens: 100 })).toBe(Math.ceil(130_000 + (100 * 4_000) / known));
    expect(timed({ maxTokens: 100, needs: { ...NO_NEEDS, choices: 3 } })).toBe(Math.ceil(130_000 + (300 * 4_000) / known));
    expect(timed({ maxTokens: 3_000 }, { order: ['beta'] })).toBe(600_000);
    expect([timed({ needs: { ...NO_NEEDS, streaming: true } }), timed({ maxTokens: 100, needs: { ...NO_NEEDS, streaming: true } }), timed({ maxTokens: 100, byokProviders: ['alpha'] }), timed({ maxTokens: 100 }, { order: ['gamma'] })]).toEqual([0, 0, 0, 0]);
  });

  test('where a client sets no limit, or none that the endpoint takes, the longest answer is what the model writes at most', () => {
    const timed = (endpoint: Partial<Endpoint>, over: Partial<RouteRequest> = {}): number | undefined => {
      const plan = decide(request(over), single({ priorThroughputTpsP50: 200, maxOutputTokens: 8_000, ...endpoint }), 1);
      return plan.kind === 'plan' ? plan.attempts[0]?.wholeTimeoutMs : undefined;
    };
    expect(timed({})).toBe(290_000);
    expect(timed({}, { needs: { ...NO_NEEDS, choices: 2 } })).toBe(450_000);
    expect(timed({}, { maxTokens: 100 })).toBe(132_000);
    expect(timed({ unsupportedParams: new Set(['max_tokens']) }, { maxTokens: 100 })).toBe(290_000);
    expect(timed({ maxOutputTokens: 64_000 })).toBe(600_000);
    expect([timed({ maxOutputTokens: null }), timed({ priorThroughputTpsP50: null })]).toEqual([0, 0]);
  });

  test.each([
    ['reasoning_effort.of.none', 60_000],
    ['reasoning_effort.of.low', 60_000],
    ['reasoning_effort.of.medium', 120_000],
    ['temperature', 120_000],
    ['reasoning_effort.of.high', 300_000],
    ['reasoning_effort.of.xhigh', 600_000],
    ['reasoning_effort.of.max', 600_000],
  ])('the stream of a model that reasons has time to begin by how much it is to think: with %s %d ms', (param, timeoutMs) => {
    const timed = (endpoint: Partial<Endpoint>, streaming: boolean): number | undefined => {
      const plan = decide(withNeeds({ streaming, params: [param] }), single(endpoint), 1);
      return plan.kind === 'plan' ? plan.attempts[0]?.firstByteTimeoutMs : undefined;
    };
    expect(timed({ hiddenReasoning: true, firstByteTimeoutMs: 60_000 }, true)).toBe(timeoutMs);
    expect(timed({ hiddenReasoning: true, firstByteTimeoutMs: 60_000 }, false)).toBe(180_000);
    expect(timed({ hiddenReasoning: false, firstByteTimeoutMs: 10_000 }, true)).toBe(10_000);
    // Claude thinks only if asked to.
    expect(timed({ hiddenReasoning: true, firstByteTimeoutMs: 60_000, wireProtocol: 'anthropic-messages' }, true)).toBe(param === 'temperature' ? 60_000 : timeoutMs);
  });

  test('plans one attempt when fallbacks are not allowed', () => {
    expect(planned(three(), withWishes({ allowFallbacks: false }))).toHaveLength(1);
    expect(planned(three(), { ...withWishes({ allowFallbacks: false }), models: ['m/one', 'm/two'] })).toHaveLength(1);
  });

  test('an endpoint that is too slow comes after all others however cheap it is; an unknown one is not punished', () => {
    const asked = { ...withNeeds({ streaming: true }), preferredMaxLatency: 500 };
    for (let seed = 0; seed < 50; seed += 1) expect(planned(three(), asked, seed)[2]).toBe('b');
  });

  test('a model answers to its id, its dated alias and its bare id alike', () => {
    for (const model of ['maker/one', 'one-2026-01-01', 'one']) expect(planned(three(), { ...withWishes({ sort: 'price' }), model })).toEqual(['b', 'c', 'a']);
  });

  test('a session keeps its endpoint whatever the seed', () => {
    const asked = request({ session: 'conversation-7', promptTokens: 500 });
    expect(new Set(Array.from({ length: 20 }, (_, seed) => planned(three(), asked, seed)[0])).size).toBe(1);
  });

  test('every fallback model of the client keeps a place in the plan', () => {
    const snapshot: Snapshot = { live: new Map(), catalog: catalogOf([...three().catalog.models, { id: 'maker/two', endpoints: [endpointWith({ id: 'd', provider: 'alpha', model: '' })] }, { id: 'maker/three', endpoints: [endpointWith({ id: 'e', provider: 'alpha', model: '' })] }]) };
    expect(planned(snapshot, { ...withWishes({ sort: 'price' }), models: ['maker/two'] })).toEqual(['b', 'c', 'd']);
    expect(planned(snapshot, { ...withWishes({ sort: 'price' }), models: ['maker/two', 'maker/three'] })).toEqual(['b', 'd', 'e']);
  });

  test('names the tuning fields an endpoint does not take', () => {
    const result = decide(withNeeds({ params: ['seed', 'top_p'] }), single({ unsupportedParams: new Set(['seed']) }), 1);
    expect(result.kind === 'plan' ? result.attempts[0]?.dropParams : undefined).toEqual(['seed']);
  });

  test.each([
    ['never on the credential of the operator, whose price cards have one price', [], ['service_tier']],
    ["on the account's own", ['alpha'], []],
  ])('sends a tier of service %s', (_whose, byokProviders, dropped) => {
    const result = decide({ ...withNeeds({ params: ['service_tier'] }), byokProviders }, single({}), 1);
    expect(result.kind === 'plan' ? result.attempts[0]?.dropParams : undefined).toEqual(dropped);
  });
});

describe('auto', () => {
  const market = (): Snapshot => ({
    live: new Map(),
    catalog: catalogOf([
      { id: 'maker/best', ability: 0.9, listPrices: pricesOf('list-best', 20_000_000_000n, 50_000_000_000n), endpoints: [endpointWith({ id: 'best', provider: 'alpha', model: '', prices: pricesOf('best', 5_000_000_000n, 20_000_000_000n) }), endpointWith({ id: 'best-dear', provider: 'beta', model: '', prices: pricesOf('best-dear', 9_000_000_000n, 30_000_000_000n) })] },
      { id: 'maker/near', ability: 0.875, endpoints: [endpointWith({ id: 'near', provider: 'alpha', model: '', prices: pricesOf('near', 1_000_000_000n, 2_000_000_000n) })] },
      { id: 'maker/weak', ability: 0.5, endpoints: [endpointWith({ id: 'weak', provider: 'alpha', model: '', prices: pricesOf('weak', 1n, 1n) })] },
      { id: 'sim/model', ability: 1, isSimulated: true, endpoints: [endpointWith({ id: 'sim', provider: 'simulator', model: '', prices: pricesOf('sim', 1n, 1n) })] },
    ]),
  });
  const auto = (changes: Partial<RouteRequest> = {}): RouteRequest => request({ model: 'auto', promptTokens: 1_000, ...changes });

  test('takes the cheapest of the models near the best, never a hopeless one, and no simulator beside real models', () => {
    for (const model of ['auto', 'router-auto']) expect(planned(market(), auto({ model }))[0]).toBe('near');
    expect(planned(market(), auto())).not.toContain('sim');
    expect(planned(market(), auto({ mode: 'quality' }))[0]?.startsWith('best')).toBe(true);
  });

  test('reckons thoughts at their own price', () => {
    const thinking = (id: string, prices: Endpoint['prices']) => ({ id: `maker/${id}`, ability: 0.9, endpoints: [endpointWith({ id, provider: 'alpha', model: '', prices, hiddenReasoning: true })] });
    // Cheaper for its visible output, but not for its reasoning.
    const snapshot: Snapshot = { live: new Map(), catalog: catalogOf([thinking('dear', DEAR_THOUGHTS_AND_SOUND), thinking('even', pricesOf('even', 1_000_000_000n, 3_000_000_000n))]) };
    expect(planned(snapshot, auto())[0]).toBe('even');
  });

  test('is compared with the ablest model that passed the filters, at its cheapest endpoint', () => {
    const result = decide(auto(), market(), 1);
    expect(result.kind === 'plan' ? [result.reference?.model, result.reference?.card.inputUncached] : undefined).toEqual(['maker/best', 5_000_000_000n]);
    const filtered = decide(auto({ provider: { ...NO_WISHES, only: ['beta'] } }), market(), 1);
    expect(filtered.kind === 'plan' ? filtered.reference?.card.inputUncached : undefined).toBe(9_000_000_000n);
    const denied = decide(auto({ denyModels: ['maker/best'] }), market(), 1);
    expect(denied.kind === 'plan' ? denied.reference?.model : undefined).toBe('maker/near');
  });

  test('is compared with the account’s baseline where it has one, and a pinned model with its maker’s price', () => {
    for (const asked of [auto({ baselineModel: 'maker/best' }), request({ model: 'maker/best' })]) {
      const result = decide(asked, market(), 1);
      expect(result.kind === 'plan' ? result.reference?.card.inputUncached : undefined).toBe(20_000_000_000n);
    }
  });

  test('is no comparison for a pinned model that its maker does not sell, whatever is listed behind it', () => {
    for (const fallback of ['auto', 'maker/best']) {
      const result = decide(request({ model: 'maker/near', models: [fallback] }), market(), 1);
      expect(result.kind === 'plan' ? [result.attempts.length > 1, result.reference] : undefined).toEqual([true, undefined]);
    }
  });

  test('on an account’s own credentials falls back to all of them, whatever the operator’s would serve beside', () => {
    const cheap = ['alpha', 'beta', 'gamma'].map((provider) => endpointWith({ id: `cheap-${provider}`, provider, model: '', prices: pricesOf('cheap', 1n, 1n) }));
    const others = ['delta', 'epsilon'].map((provider) => ({ id: `maker/${provider}`, ability: 0.9, endpoints: [endpointWith({ id: provider, provider, model: '' })] }));
    const snapshot: Snapshot = { live: new Map(), catalog: catalogOf([{ id: 'maker/cheap', ability: 0.9, endpoints: cheap }, ...others]) };
    expect(planned(snapshot, auto({ byokProviders: ['alpha', 'delta', 'epsilon'], mode: 'economy' }))).toEqual(['cheap-alpha', 'delta', 'epsilon']);
    expect(planned(snapshot, auto({ byokProviders: ['alpha', 'delta'], provider: { ...NO_WISHES, order: ['beta'] } })).sort()).toEqual(['cheap-beta', 'cheap-gamma', 'epsilon']);
  });

  test('an allow list of auto alone leaves auto every model', () => {
    expect(planned(market(), auto({ allowModels: ['auto'] }))[0]).toBe('near');
    expect(planned(market(), auto({ allowModels: ['auto', 'maker/weak'] }))).toEqual(['weak']);
  });
});
