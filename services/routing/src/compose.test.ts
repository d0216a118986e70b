import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { CatalogShowResponse__Output, DecideRequest, DecideResponse__Output, FindModelRequest, FindModelResponse__Output, ListModelsRequest, ListModelsResponse__Output, ProvidersResponse__Output, QualityState__Output, SettingNames, SettingNames__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

let bus: MemoryBus;
let service: Service;
let client: RpcClient;

async function start(environment: Record<string, string>, door: 'link' | 'unary' = 'link', clock: Clock = systemClock): Promise<void> {
  bus = createMemoryBus({ clock });
  service = composeRouting(loadRoutingConfig(environment), { clock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus });
  await service.start();
  client = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door, clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
}

describe('settings that name providers or folders', () => {
  const refused = (environment: Record<string, string>): Promise<void> => {
    const refusing = composeRouting(loadRoutingConfig(environment), { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }) });
    return refusing.start().finally(() => refusing.stop());
  };

  test.each([
    ['PROVIDERS', 'openai,opnai', 'opnai'],
    ['BYOK_PROVIDERS', 'Anthropic', 'Anthropic'],
    ['BYOK_PROVIDERS', 'groq,off', 'off'],
    ['ZDR_AGREEMENTS', 'azure', 'azure'],
    ['OFFERED_MODELS', 'olama/gemma3,ollama/gemma3,olama/qwen3', 'olama'],
  ])('%s=%s is refused by its setting, with what is none', async (variable, value, unknown) => {
    await expect(refused({ [variable]: value })).rejects.toThrow(new RegExp(`^${variable}: there is no provider ${unknown}; expected ids of .*\\balibaba, .*\\bzai`));
  });

  test('all of them are told at once, and those of the catalog are taken', async () => {
    await expect(refused({ PROVIDERS: 'a', ZDR_AGREEMENTS: 'b' })).rejects.toThrow(/^PROVIDERS: there is no provider a;.*\nZDR_AGREEMENTS: there is no provider b;/);
    await refused({ PROVIDERS: 'openai,simulator', BYOK_PROVIDERS: 'off', ZDR_AGREEMENTS: 'openai', OFFERED_MODELS: 'ollama/,vllm/anything' });
  });

  test('a catalog of the operator’s own may lack what a launcher has keys for, and have others', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-catalog-'));
    for (const name of ['providers.json', 'models.json']) {
      const rows = JSON.parse(readFileSync(new URL(`../catalog/${name}`, import.meta.url), 'utf8')) as { providers: { id: string }[]; models: { endpoints: { provider: string }[] }[] };
      if (name === 'providers.json') rows.providers = rows.providers.filter(({ id }) => id === 'groq').map((row) => ({ ...row, id: 'house' }));
      else rows.models = rows.models.flatMap((model) => model.endpoints.filter(({ provider }) => provider === 'groq').map((endpoint) => ({ ...model, endpoints: [{ ...endpoint, provider: 'house' }] }))).slice(0, 1);
      writeFileSync(join(folder, name), JSON.stringify(rows));
    }
    await refused({ CATALOG_DIR: folder, PROVIDERS: 'house,openai' });
    await expect(refused({ CATALOG_DIR: folder, PROVIDERS: 'huose' })).rejects.toThrow('PROVIDERS: there is no provider huose; expected ids of house');
    rmSync(folder, { recursive: true, force: true });
  });

  test('SNAPSHOT_DIR that can be no folder is refused by its name, and one that is missing is made', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-snapshots-'));
    writeFileSync(join(folder, 'file'), '');
    await expect(refused({ SNAPSHOT_DIR: join(folder, 'file') })).rejects.toThrow(/^SNAPSHOT_DIR: .* is not a folder that can be written \(ENOTDIR\)\.$/);
    await refused({ SNAPSHOT_DIR: join(folder, 'kept') });
    expect(existsSync(join(folder, 'kept'))).toBe(true);
    rmSync(folder, { recursive: true, force: true });
  });
});

describe('models that a server of the operator’s offers', () => {
  const warned = async (environment: Record<string, string>): Promise<readonly object[]> => {
    const lines: object[] = [];
    const log = { ...silentLog, warn: (text: string, fields = {}) => void lines.push({ text, ...fields }) };
    const starting = composeRouting(loadRoutingConfig(environment), { clock: systemClock, randomBytes, log, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }) });
    await starting.start();
    await starting.stop();
    return lines;
  };

  test('and that the catalog has no line for are named at the start, with where to read how to add one', async () => {
    expect(await warned({ PROVIDERS: 'vllm,ollama', OFFERED_MODELS: 'vllm/acme/house-8b,vllm/openai/gpt-oss-20b,ollama/' })).toEqual([{ text: expect.stringContaining('docs/add-a-model.md'), models: ['vllm/acme/house-8b'], more: 0 }]);
  });

  test('and that are all in the catalog, or not told, give nothing to say', async () => {
    expect(await warned({ PROVIDERS: 'vllm', OFFERED_MODELS: 'vllm/openai/gpt-oss-20b' })).toEqual([]);
    expect(await warned({ PROVIDERS: 'vllm' })).toEqual([]);
  });
});

describe('routing over its doors', () => {
  afterEach(async () => {
    await client.close();
    await service.stop();
    await bus.close();
  });

  const decide = (request: DecideRequest): Promise<DecideResponse__Output> => client.unary('Decide', request);

  test.each(['link', 'unary'] as const)('plans the simulator out of the box through the %s door', async (door) => {
    await start({}, door);
    expect(service.ready()).toBe(true);
    const answer = await decide({ model: 'auto', promptTokens: 12, seed: 7 });
    expect(answer.refusal).toBe('REFUSAL_UNSPECIFIED');
    expect(answer.attempts[0]).toMatchObject({ endpointId: 'simulator:simulator/fast', provider: 'simulator', providerModelId: 'sim-fast', maxTokensParam: 'max_tokens', maxOutputTokens: 16_384 });
    expect(answer.attempts[0]?.card).toMatchObject({ inputUncached: '150000000', outputText: '600000000', cacheRead: '75000000' });
    expect(answer.referenceCard?.id).toMatch(/^simulator:simulator\/smart@/);
    expect(answer.decisionId).toMatch(/^dec_/);
    const list = await client.unary<object, ListModelsResponse__Output>('ListModels', { detail: true });
    expect(list.models.map((model) => model.id)).toEqual(['simulator/fast', 'simulator/smart']);
    expect(JSON.parse(Buffer.from(list.models[0]?.detailJson ?? '').toString())).toMatchObject({ pricing: { input: 0.15 }, context_window: 128_000 });
  });

  test('tells of a model that lacks nothing but a credential who would serve it, and only to a key that may use it', async () => {
    await start({ PROVIDERS: 'groq' });
    const unset = async (over: DecideRequest): Promise<readonly string[]> => {
      const { refusal, unsetProviders } = await decide({ promptTokens: 12, seed: 7, ...over });
      expect(refusal).toBe('MODEL_NOT_FOUND');
      return [...unsetProviders].sort();
    };
    expect(await unset({ model: 'openai/gpt-4o-mini' })).toEqual(['azure-openai', 'openai', 'openrouter']);
    expect(await unset({ model: 'gpt-4o-mini', denyProviders: ['azure-openai'] })).toEqual(['openai', 'openrouter']);
    expect(await unset({ model: 'openai/gpt-4o-mini', denyModels: ['openai/*'] })).toEqual([]);
    expect(await unset({ model: 'nobody/nothing' })).toEqual([]);
  });

  test.each([
    ['gpt-4o-2024-08-06', 'openai/gpt-4o', ''],
    ['openai/gpt-4o-mini-2024-07-18', 'openai/gpt-4o-mini', ''],
    ['claude-sonnet-4-5-20250929', 'anthropic/claude-sonnet-4.5', ''],
    ['anthropic/claude-sonnet-4-5', 'anthropic/claude-sonnet-4.5', 'anthropic'],
    ['OpenAI/GPT-4o', 'openai/gpt-4o', ''],
    [' gpt-4o\n', 'openai/gpt-4o', ''],
    ['openai/gpt-4o-mini:free', 'openai/gpt-4o-mini', ''],
    ['openai/gpt-4o@preset/mine', 'openai/gpt-4o', ''],
    ['azure/gpt-4o', 'openai/gpt-4o', 'azure-openai'],
    ['gemini/gemini-3.5-flash', 'google/gemini-3.5-flash', 'google-ai-studio'],
    ['vertex_ai/gemini-3.5-flash', 'google/gemini-3.5-flash', 'google-vertex'],
    ['vertex_ai/claude-sonnet-4-5@20250929', 'anthropic/claude-sonnet-4.5', 'google-vertex'],
    ['bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'anthropic/claude-sonnet-4.5', 'amazon-bedrock'],
    ['bedrock/us-east-1/anthropic.claude-haiku-4-5-20251001-v1:0', 'anthropic/claude-haiku-4.5', 'amazon-bedrock'],
    ['anthropic.claude-sonnet-4-5-20250929-v1:0', 'anthropic/claude-sonnet-4.5', ''],
    ['openai/claude-sonnet-4.5', 'anthropic/claude-sonnet-4.5', ''],
    ['groq/llama-3.3-70b-versatile', 'meta-llama/llama-3.3-70b-instruct', ''],
    ['amazon/nova-pro-v1', 'amazon/nova-pro-v1', ''],
    ['gpt-4o-v2', '', ''],
    ['gpt-4-0613', '', ''],
    ['claude-3-5-sonnet-20241022', '', ''],
    ['nobody/gpt-4o', '', ''],
    ['nobody/nothing', '', ''],
  ])('what %s, as others call a model, means is told where it is certain', async (model, nearestModel, nearestProvider) => {
    await start({ PROVIDERS: 'openai,azure-openai,anthropic,google-ai-studio,google-vertex,amazon-bedrock' });
    const answer = await decide({ model, promptTokens: 12, seed: 7 });
    if (answer.refusal === 'REFUSAL_UNSPECIFIED') expect(model).toBe(nearestModel);
    else expect(answer).toMatchObject({ refusal: 'MODEL_NOT_FOUND', nearestModel, nearestProvider });
  });

  test('nothing is told of a model that this key may not use, or that nobody here serves', async () => {
    await start({ PROVIDERS: 'openai' });
    const nearest = async (over: DecideRequest): Promise<string> => (await decide({ promptTokens: 12, seed: 7, ...over })).nearestModel;
    expect(await nearest({ model: 'azure/gpt-4o' })).toBe('openai/gpt-4o');
    expect(await nearest({ model: 'azure/gpt-4o', denyModels: ['openai/*'] })).toBe('');
    expect(await nearest({ model: 'azure/gpt-4o', denyProviders: ['openai'] })).toBe('');
    expect(await nearest({ model: 'bedrock/claude-sonnet-4-5' })).toBe('');
  });

  test('names of no provider are told, with a plan and without, and those of other gateways are none of them', async () => {
    await start({ PROVIDERS: 'openai,azure-openai' });
    const decided = async (provider: object): Promise<DecideResponse__Output> => await decide({ model: 'openai/gpt-4o', promptTokens: 12, seed: 7, provider });
    expect(await decided({ ignore: ['azzure', 'azure', 'bedrock', 'vertex_ai', 'Gemini', 'deepinfra/turbo', 'chutes/fp8'] })).toMatchObject({ refusal: 'REFUSAL_UNSPECIFIED', attempts: [{ provider: 'openai' }], ignoredParams: ['provider.ignore.[0]', 'provider.ignore.[6]'] });
    expect(await decided({ order: ['opnai', 'azure_ai'] })).toMatchObject({ attempts: [{ provider: 'azure-openai' }, {}], ignoredParams: ['provider.order.[0]'] });
    expect(await decided({ only: ['nobody'] })).toMatchObject({ refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['provider_preferences'], ignoredParams: ['provider.only.[0]'] });
    expect((await decided({ only: ['openai'] })).ignoredParams).toEqual([]);
  });

  test('where all parameters are required and nobody takes them, they are told', async () => {
    await start({ PROVIDERS: 'anthropic,amazon-bedrock' });
    const decided = async (model: string, params: string[]): Promise<DecideResponse__Output> => await decide({ model, promptTokens: 12, seed: 7, provider: { requireParameters: true }, needs: { params } });
    expect(await decided('anthropic/claude-sonnet-4.5', ['temperature', 'top_p', 'top_p.second', 'seed'])).toMatchObject({ refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['parameters'], untakenParams: ['top_p', 'seed'] });
    expect(await decided('auto', ['seed'])).toMatchObject({ refusal: 'NO_ELIGIBLE_PROVIDER', untakenParams: [] });
    expect(await decided('anthropic/claude-sonnet-4.5', ['temperature'])).toMatchObject({ refusal: 'REFUSAL_UNSPECIFIED', untakenParams: [] });
  });

  test('of models to fall back to, those that nobody serves are told', async () => {
    await start({ PROVIDERS: 'openai' });
    const told = async (model: string, models: string[]): Promise<readonly string[]> => (await decide({ model, models, promptTokens: 12, seed: 7 })).ignoredParams;
    expect(await told('openai/gpt-4o', ['gpt-4o-mini', 'auto'])).toEqual([]);
    expect(await told('openai/gpt-4o', ['nobody/nothing', 'gpt-4o-mini', 'anthropic/claude-opus-5'])).toEqual(['models.[0]', 'models.[2]']);
    expect(await told('nobody/nothing', ['gpt-4o-mini'])).toEqual(['model']);
    expect(await told('nobody/nothing', [])).toEqual([]);
  });

  test('says how long a whole answer may take, where length and speed are known', async () => {
    await start({ PROVIDERS: 'amazon-bedrock' });
    const told = async (over: DecideRequest): Promise<number | undefined> => (await decide({ model: 'amazon/nova-pro-v1', ...over })).attempts[0]?.wholeTimeoutMs;
    // 100 tokens, or the model's maximum of 8,192, at a quarter of 150 tokens per second.
    expect([await told({ maxTokens: 100 }), await told({}), await told({ maxTokens: 100, needs: { streaming: true } })]).toEqual([132_667, 348_454, 0]);
  });

  test('lists the models that the account’s providers serve, and of each the endpoints at those', async () => {
    await start({ PROVIDERS: 'openai,openrouter,groq' });
    const list = async (terms: ListModelsRequest): Promise<string[]> => {
      const { models } = await client.unary<ListModelsRequest, ListModelsResponse__Output>('ListModels', { model: 'openai/gpt-4o-mini', detail: true, ...terms });
      return models.flatMap(({ detailJson }) => (JSON.parse(Buffer.from(detailJson).toString()) as { readonly endpoints: readonly { readonly provider: string }[] }).endpoints.map(({ provider }) => provider)).sort();
    };
    expect(await list({})).toEqual(['openai', 'openrouter']);
    expect(await list({ allowProviders: ['openai'] })).toEqual(['openai']);
    expect(await list({ denyProviders: ['openai'] })).toEqual(['openrouter']);
    expect(await list({ denyProviders: ['OpenAI/eu'] })).toEqual(['openrouter']);
    expect(await list({ allowProviders: ['groq'] })).toEqual([]);
    expect(await list({ allowProviders: ['openai'], denyProviders: ['openai'], byokProviders: ['openai'] })).toEqual([]);
    const { models } = await client.unary<ListModelsRequest, ListModelsResponse__Output>('ListModels', { allowProviders: ['nobody'] });
    expect(models).toEqual([]);
  });

  test.each([
    ['the operator’s agreement, on the operator’s credential', 'openai', {}, true],
    ['the operator’s agreement, on the account’s own', 'openai', { byokProviders: ['openai'] }, false],
    ['an agreement of the account’s own', 'openai', { byokProviders: ['openai'], byokZdrProviders: ['openai'] }, true],
    ['an agreement of the account’s own alone', '', { byokProviders: ['openai'], byokZdrProviders: ['openai'] }, true],
    ['no agreement', '', {}, false],
  ])('the list promises zero retention where a request that asks for it is served: %s', async (_what, agreements, own, isKept) => {
    await start({ PROVIDERS: 'openai', ZDR_AGREEMENTS: agreements });
    const { models } = await client.unary<ListModelsRequest, ListModelsResponse__Output>('ListModels', { model: 'openai/gpt-4o-mini', detail: true, ...own });
    const { endpoints } = JSON.parse(Buffer.from(models[0]?.detailJson ?? '').toString()) as { readonly endpoints: readonly { readonly policy: { readonly zdr: boolean } }[] };
    expect(endpoints.map(({ policy }) => policy.zdr)).toEqual([isKept]);
    expect((await decide({ model: 'openai/gpt-4o-mini', zdr: true, ...own })).refusal).toBe(isKept ? 'REFUSAL_UNSPECIFIED' : 'NO_ELIGIBLE_PROVIDER');
  });

  test.each([
    ['without a word of the account’s', [], null],
    ['with an agreement of the account’s own', ['openai'], false],
  ] as const)('the list says of an account’s own address what a request meets there: %s', async (_what, byokZdrProviders, trains) => {
    await start({ PROVIDERS: 'openai', ZDR_AGREEMENTS: 'openai' });
    const own = { byokProviders: ['openai'], byokOwnAddressProviders: ['openai'], byokZdrProviders: [...byokZdrProviders] };
    const { models } = await client.unary<ListModelsRequest, ListModelsResponse__Output>('ListModels', { model: 'openai/gpt-4o-mini', detail: true, ...own });
    const isServed = trains === false;
    expect(JSON.parse(Buffer.from(models[0]?.detailJson ?? '').toString())).toMatchObject({ endpoints: [{ policy: { trains_on_data: trains, zdr: isServed } }] });
    for (const [wish, reason] of [[{ zdr: true }, 'zdr'], [{ dataCollection: 'deny' }, 'data_collection']] as const) {
      expect(await decide({ model: 'openai/gpt-4o-mini', ...wish, ...own })).toMatchObject(isServed ? { refusal: 'REFUSAL_UNSPECIFIED' } : { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: [reason] });
    }
  });

  test('a provider that is forbidden by the name OpenRouter has for it is not asked, by client or account', async () => {
    await start({ PROVIDERS: 'openai,azure-openai' });
    const asked = async (request: DecideRequest): Promise<readonly string[]> => [...new Set((await decide({ model: 'gpt-4o-mini', ...request })).attempts.map(({ provider }) => provider))].sort();
    expect(await asked({})).toEqual(['azure-openai', 'openai']);
    expect(await asked({ provider: { ignore: ['azure'] } })).toEqual(['openai']);
    expect(await asked({ provider: { ignore: ['Azure/eu'] } })).toEqual(['openai']);
    expect(await asked({ denyProviders: ['azure'] })).toEqual(['openai']);
    expect(await asked({ provider: { only: ['azure'] } })).toEqual(['azure-openai']);
    expect(await asked({ provider: { order: ['azure'], allowFallbacks: false } })).toEqual(['azure-openai']);
  });

  test('tells which names of settings stand for nothing', async () => {
    await start({ PROVIDERS: 'openai' });
    const unknown = (names: SettingNames): Promise<SettingNames__Output> => client.unary<SettingNames, SettingNames__Output>('UnknownNames', names);
    const none = { allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], models: [] };
    // Names of providers without a model here, and of the simulator (which is off), are known too.
    expect(await unknown({ allowModels: ['auto', 'OpenAI/gpt-4o', 'openai/*'], denyModels: ['openai/gpt-4o', 'gpt-4o-mini'], allowProviders: ['openai', 'Azure', 'vllm', 'simulator'], denyProviders: ['azure/eu', 'ollama'], models: ['openai/gpt-4o'] })).toEqual(none);
    expect(await unknown({ allowModels: ['opnai/gpt-4o'], denyModels: ['auto', 'gpt-4o*', 'openai/gpt-4oo'], allowProviders: ['opnai', 'azure/eu'], denyProviders: ['opnai'], models: ['auto', 'OpenAI/gpt-4o'] })).toEqual({
      allowModels: ['opnai/gpt-4o'], denyModels: ['auto', 'gpt-4o*', 'openai/gpt-4oo'], allowProviders: ['opnai', 'azure/eu'], denyProviders: ['opnai'], models: ['auto', 'OpenAI/gpt-4o'],
    });
  });

  test('tells the id of a model by any name that a request may have, also of one that nobody serves here', async () => {
    await start({ PROVIDERS: 'openai' });
    const idOf = async (name: string): Promise<string> => (await client.unary<FindModelRequest, FindModelResponse__Output>('FindModel', { name })).id;
    expect(await Promise.all(['openai/gpt-4o-mini', 'gpt-4o-mini', 'mistral-large-2512', 'auto', 'opnai/gpt-4o', ''].map(idOf))).toEqual(['openai/gpt-4o-mini', 'openai/gpt-4o-mini', 'mistralai/mistral-large-2512', '', '', '']);
  });

  test('answers refusals as values, with the names that the messages define', async () => {
    await start({ PROVIDERS: 'openai,mistral' });
    expect((await decide({ model: 'simulator/fast' })).refusal).toBe('MODEL_NOT_FOUND');
    expect(await decide({ model: 'gpt-4o-mini', zdr: true })).toMatchObject({ refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['zdr'] });
    expect((await decide({ model: 'gpt-4o-mini', promptTokens: 900_000 })).refusal).toBe('CONTEXT_LENGTH_EXCEEDED');
    await expect(decide({ model: 'gpt-4o-mini', dataCollection: 'maybe' })).rejects.toMatchObject({ code: 'bad_message' });
    const shown = await client.unary<object, CatalogShowResponse__Output>('CatalogShow', {});
    const { models } = JSON.parse(readFileSync(new URL('../catalog/models.json', import.meta.url), 'utf8')) as { readonly models: readonly { readonly endpoints: readonly unknown[] }[] };
    expect(models.length).toBeGreaterThan(100);
    expect(shown).toMatchObject({ models: models.length, endpoints: models.flatMap(({ endpoints }) => endpoints).length, availableProviders: ['mistral', 'openai'], loadedFrom: 'shipped' });
    expect(await client.unary('CatalogReload', {})).toMatchObject({ loaded: true, problems: [] });
    expect(await client.unary('CatalogCheck', {})).toMatchObject({ problems: [], warnings: [] });
  });

  test('hears of failures on the bus and leaves the endpoint out until it is well', async () => {
    await start({});
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const failure = { endpointId: 'simulator:simulator/fast', ok: false, failure: 'PROVIDER_ERROR' as const };
    bus.announce('attempts.v1.simulator', codec.encode({ attempts: Array.from({ length: 5 }, () => failure) }));
    bus.announce('attempts.v1.simulator', Buffer.from([255, 255, 255]));
    let states: ProvidersResponse__Output;
    do states = await client.unary('Providers', {});
    while (states.providers.find((entry) => entry.provider === 'simulator')?.endpoints[0]?.breaker !== 'open');
    expect((await decide({ model: 'simulator/fast' })).refusal).toBe('ALL_UNHEALTHY');
    expect((await decide({ model: 'auto' })).attempts.map((attempt) => attempt.model)).toEqual(['simulator/smart']);
  });

  test('leaves an endpoint out that fails far more than its peers, says so, and takes it back by itself', async () => {
    const clock = createFakeClock();
    await start({ PROVIDERS: 'openai,azure-openai,openrouter' }, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const of = (provider: string): string => `${provider}:openai/gpt-4o-mini`;
    const attempts = ['openai', 'azure-openai', 'openrouter'].flatMap((provider) =>
      Array.from({ length: 20 }, (_, index) => ({ endpointId: of(provider), ok: provider !== 'openai' || index % 2 === 0, failure: 'PROVIDER_ERROR' as const, stream: true, ttftMs: 300, totalMs: 2_000 })));
    bus.announce('attempts.v1.all', codec.encode({ attempts }));
    await clock.advanceAsync(1_000);
    const planned = async (): Promise<readonly [readonly string[], unknown, string | undefined]> => {
      const { attempts: plan, explanationJson } = await decide({ model: 'gpt-4o-mini', explain: true });
      const { providers } = await client.unary<object, ProvidersResponse__Output>('Providers', {});
      const state = providers.find(({ provider }) => provider === 'openai')?.endpoints.find(({ endpointId }) => endpointId === of('openai'));
      return [plan.map(({ provider }) => provider).sort(), (JSON.parse(Buffer.from(explanationJson).toString()) as { excluded: unknown }).excluded, state?.ejectedFor];
    };
    expect(await planned()).toEqual([['azure-openai', 'openrouter'], { outlier: 1 }, 'failures']);
    const scraped = await (await fetch(`http://127.0.0.1:${String(service.ports()['metrics'])}/metrics`)).text();
    expect(scraped).toContain('signalbox_routing_ejected_endpoints{provider="openai",reason="failures",service="routing"} 1');
    await clock.advanceAsync(30_000);
    expect(await planned()).toEqual([['azure-openai', 'openai', 'openrouter'], {}, '']);
  });

  test('an endpoint waits for its credentials when none is left, and the refusal says for how long', async () => {
    const clock = createFakeClock();
    await start({}, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const hear = async (failure: 'RATE_LIMITED' | 'CREDENTIAL' | 'PROVIDER_ERROR', retryAfterMs: number, endpoint = 'fast'): Promise<void> => {
      bus.announce('attempts.v1.simulator', codec.encode({ attempts: [{ endpointId: `simulator:simulator/${endpoint}`, ok: false, failure, retryAfterMs }] }));
      await clock.settle();
    };
    await hear('RATE_LIMITED', 0);
    await hear('PROVIDER_ERROR', 60_000);
    expect((await decide({ model: 'simulator/fast' })).refusal).toBe('REFUSAL_UNSPECIFIED');
    await hear('CREDENTIAL', 60_000);
    expect(await decide({ model: 'simulator/fast' })).toMatchObject({ refusal: 'ALL_UNHEALTHY', retryAfterMs: 61_000 });
    // The operator's credential was refused; an account's own credential need not wait.
    expect((await decide({ model: 'simulator/fast', byokProviders: ['simulator'] })).attempts).toMatchObject([{ byok: true }]);
    await hear('RATE_LIMITED', 7_000, 'smart');
    expect(await decide({ model: 'simulator/fast', models: ['simulator/smart'] })).toMatchObject({ refusal: 'ALL_UNHEALTHY', retryAfterMs: 7_000 });
    clock.advance(7_000);
    expect((await decide({ model: 'simulator/smart' })).refusal).toBe('REFUSAL_UNSPECIFIED');
  });

  test('a key that is refused for one model is not asked for another; what concerns a model is learnt for that alone', async () => {
    const clock = createFakeClock();
    await start({ PROVIDERS: 'openai,azure-openai' }, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const hear = async (provider: string, failure: 'RATE_LIMITED' | 'CREDENTIAL' | 'NOT_FOUND', retryAfterMs: number, benchedMs: number): Promise<void> => {
      bus.announce(`attempts.v1.${provider}`, codec.encode({ attempts: [{ endpointId: `${provider}:openai/gpt-4o-mini`, ok: false, failure, retryAfterMs, benchedMs, forBreakers: true }] }));
      await clock.settle();
    };
    const planned = async (model: string): Promise<readonly string[]> => (await decide({ model })).attempts.map(({ provider }) => provider).sort();
    await hear('openai', 'RATE_LIMITED', 60_000, 0);
    await hear('azure-openai', 'NOT_FOUND', 0, 0);
    expect([await planned('gpt-4o-mini'), await planned('gpt-4o')]).toEqual([['azure-openai'], ['azure-openai', 'openai']]);
    await hear('openai', 'CREDENTIAL', 60_000, 30_000);
    expect([await planned('gpt-4o'), await planned('gpt-4.1')]).toEqual([['azure-openai'], ['azure-openai']]);
    const { providers } = await client.unary<object, ProvidersResponse__Output>('Providers', {});
    expect(new Set(providers.find(({ provider }) => provider === 'openai')?.endpoints.map(({ breaker }) => breaker))).toEqual(new Set(['open']));
    await hear('azure-openai', 'CREDENTIAL', 30_000, 30_000);
    expect(await decide({ model: 'gpt-4o' })).toMatchObject({ refusal: 'ALL_UNHEALTHY', retryAfterMs: 31_000 });
    expect((await decide({ model: 'gpt-4o', byokProviders: ['openai'] })).attempts.map(({ provider }) => provider)).toEqual(['openai']);
    await clock.advanceAsync(31_000);
    expect(await planned('gpt-4o')).toEqual(['azure-openai', 'openai']);
    // A worker that was started with another key reports it. The rate limit of one model stays.
    await hear('openai', 'RATE_LIMITED', 90_000, 0);
    await hear('openai', 'CREDENTIAL', 600_000, 600_000);
    expect(await planned('gpt-4o')).toEqual(['azure-openai']);
    bus.announce('attempts.v1.openai', codec.encode({ origin: 'call_2', freeProvider: 'openai' }));
    await clock.settle();
    expect([await planned('gpt-4o'), await planned('gpt-4o-mini')]).toEqual([['azure-openai', 'openai'], ['azure-openai']]);
  });

  test('what a replica meets with a key that others do not have leaves nothing out while theirs may be asked', async () => {
    const clock = createFakeClock();
    await start({ PROVIDERS: 'openai,azure-openai' }, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const say = async (message: AttemptsObserved): Promise<void> => {
      bus.announce('attempts.v1.openai', codec.encode(message));
      await clock.settle();
    };
    const meet = (pool: number, failure: 'RATE_LIMITED' | 'CREDENTIAL' | 'NO_CREDENTIAL', retryAfterMs: number, benchedMs: number): Promise<void> =>
      say({ pool, attempts: [{ endpointId: 'openai:openai/gpt-4o-mini', ok: false, failure, retryAfterMs, benchedMs, forBreakers: true }] });
    const planned = async (model = 'gpt-4o-mini'): Promise<readonly string[]> => (await decide({ model })).attempts.map(({ provider }) => provider).sort();
    const [old, fresh] = [1, 2];
    await say({ pool: fresh, origin: 'call_2', freeProvider: 'openai' });
    for (let i = 0; i < 30; i += 1) await meet(old, i === 0 ? 'CREDENTIAL' : 'NO_CREDENTIAL', 30_000, 30_000);
    await meet(old, 'RATE_LIMITED', 60_000, 0);
    await clock.advanceAsync(1_000);
    expect([await planned(), await planned('gpt-4o')]).toEqual([['azure-openai', 'openai'], ['azure-openai', 'openai']]);
    // One model is now limited for all credentials, as long as the first limit lasts. After that all credentials are refused.
    await meet(fresh, 'RATE_LIMITED', 7_000, 0);
    expect([await planned(), await planned('gpt-4o')]).toEqual([['azure-openai'], ['azure-openai', 'openai']]);
    await clock.advanceAsync(8_000);
    expect(await planned()).toEqual(['azure-openai', 'openai']);
    await meet(fresh, 'CREDENTIAL', 10_000, 10_000);
    expect(await planned('gpt-4o')).toEqual(['azure-openai']);
    await say({ pool: fresh, origin: 'call_2', freeProvider: 'openai' });
    await clock.advanceAsync(31_000);
    // The other credentials have not been reported for too long.
    await clock.advanceAsync(150_000);
    await meet(old, 'CREDENTIAL', 30_000, 30_000);
    expect(await planned('gpt-4o')).toEqual(['azure-openai']);
    // Now they are reported again, so a replica without a usable credential no longer excludes the endpoint.
    await say({ pool: fresh, origin: 'call_2', freeProvider: 'openai' });
    await meet(old, 'NO_CREDENTIAL', 20_000, 20_000);
    expect(await planned('gpt-4o')).toEqual(['azure-openai', 'openai']);
  });

  test('an endpoint that is to be tried again stands by in any plan, and goes first in one', async () => {
    const clock = createFakeClock();
    await start({ PROVIDERS: 'openai,azure-openai' }, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    bus.announce('attempts.v1.openai', codec.encode({ attempts: Array.from({ length: 5 }, () => ({ endpointId: 'openai:openai/gpt-4o-mini', ok: false, failure: 'PROVIDER_ERROR' as const })) }));
    await clock.advanceAsync(31_000);
    const planned = async (...order: readonly string[]): Promise<readonly string[]> =>
      (await decide({ model: 'gpt-4o-mini', provider: { order: [...order] } })).attempts.map(({ provider }) => provider);
    for (let n = 0; n < 3; n += 1) expect(await planned('azure-openai', 'openai')).toEqual(['azure-openai', 'openai']);
    expect(await planned('openai', 'azure-openai')).toEqual(['openai', 'azure-openai']);
    expect(await planned('openai', 'azure-openai')).toEqual(['azure-openai']);
  });

  test('a rollback with nothing to bring back changes nothing, says so, and is told to the other replicas all the same', async () => {
    await start({ SIMULATOR: 'on' });
    const told: unknown[] = [];
    await bus.listen('routing.v1.control', ({ payload }) => void told.push(payload));
    const before = await client.unary<object, QualityState__Output>('QualityShow', {});
    expect(before.problems).toEqual([]);
    expect(await client.unary<object, QualityState__Output>('QualityRollback', {})).toEqual({ ...before, problems: ['There is nothing to roll back: no artefact is on trial, and none was in force before this one.'] });
    expect(told).toHaveLength(1);
  });

  test('does not plan what a worker tries again, until that has gone well', async () => {
    const clock = createFakeClock();
    await start({}, 'link', clock);
    const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
    const endpointId = 'simulator:simulator/fast';
    const hear = async (message: AttemptsObserved): Promise<void> => {
      bus.announce('attempts.v1.simulator', codec.encode(message));
      await clock.settle();
    };
    await hear({ attempts: Array.from({ length: 5 }, () => ({ endpointId, ok: false, failure: 'DISCONNECTED' as const })) });
    clock.advance(31_000);
    await hear({ probedEndpointIds: [endpointId] });
    expect((await decide({ model: 'simulator/fast' })).refusal).toBe('ALL_UNHEALTHY');
    await hear({ attempts: [{ endpointId, ok: true }] });
    expect((await decide({ model: 'simulator/fast' })).refusal).toBe('REFUSAL_UNSPECIFIED');
  });
});
