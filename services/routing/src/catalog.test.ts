import { describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldOfParam } from '@signalbox/kernel/param-names';
import { findModel, type Catalog } from '@signalbox/router-core/catalog';
import { decide } from '@signalbox/router-core/decide';
import { plainRequest } from '@signalbox/router-core/request';
import { offersOf } from './adapters/catalog/build.js';
import { createCatalogFiles } from './adapters/catalog/files.js';
import { createCatalogHolder } from './domain/catalog-holder.js';
import { decideResponse } from './wire.js';

const SHIPPED = fileURLToPath(new URL('../catalog', import.meta.url));
const clock = { nowMs: () => 1_795_200_000_123, monotonicMs: () => 0, setTimer: () => ({ cancel: () => undefined }) };
const source = (providers: readonly string[], directory = '', withSimulator = false, offered: readonly string[] = []) =>
  createCatalogFiles({ directory, withSimulator, terms: { managedProviders: new Set(providers), byokProviders: new Set(), zdrAgreements: new Set(), offeredModels: offersOf(offered) } });

async function load(providers: readonly string[], withSimulator = false, offered: readonly string[] = []): Promise<Catalog> {
  const { problems, loaded } = await source(providers, '', withSimulator, offered).read('2026-11-21');
  expect(problems).toEqual([]);
  if (loaded === undefined) throw new Error('no catalog');
  return loaded.catalog;
}

describe('the shipped catalog', () => {
  test('is sound, and every endpoint that is served has a price, a built wire and the chat API', async () => {
    const catalog = await load(['cohere', 'google-ai-studio', 'google-vertex', 'openai', 'groq', 'mistral', 'vllm', 'anthropic', 'openrouter', 'azure-openai', 'amazon-bedrock']);
    const served = catalog.endpoints.filter((endpoint) => endpoint.isServable && endpoint.hasManagedCredential);
    expect(served.length).toBeGreaterThan(150);
    for (const endpoint of served) {
      expect(endpoint.prices.length).toBeGreaterThan(0);
      expect(['anthropic-messages', 'azure-openai', 'bedrock-converse', 'cohere-v2', 'google-generate-content', 'openai-chat', 'mistral']).toContain(endpoint.wireProtocol);
    }
  });

  test.each([
    ['ollama', 'all it may hold', [], 8],
    ['ollama', 'what it says it holds, in its own names', ['ollama/gpt-oss:20b', 'ollama/llama3.1:8b', 'ollama/no-such-model'], 2],
    ['ollama', 'nothing', ['ollama/'], 0],
    ['vllm', 'all it may hold', [], 8],
    ['vllm', 'what it says it holds', ['vllm/Qwen/Qwen3-32B'], 1],
  ])('%s, a server of the operator’s own, serves %s, at no price', async (provider, _what, offered, count) => {
    const catalog = await load([provider, 'groq'], false, offered);
    const served = catalog.endpoints.filter((endpoint) => endpoint.isServable && endpoint.provider === provider);
    expect(served).toHaveLength(count);
    for (const { prices } of served) expect(prices[0]?.card).toMatchObject({ inputUncached: 0n, outputText: 0n, requestNanoUsd: 0n });
    expect(catalog.endpoints.some((endpoint) => endpoint.isServable && endpoint.provider === 'groq')).toBe(true);
  });

  test('what is billed by the search is served by nobody, since no card can price it', async () => {
    const { endpoints } = await load(['perplexity', 'openrouter']);
    const served = (model: string): unknown => endpoints.filter((endpoint) => endpoint.model === model && endpoint.isServable).map(({ provider }) => provider);
    expect([served('perplexity/sonar-deep-research'), served('perplexity/sonar-pro')]).toEqual([[], ['openrouter']]);
  });

  test('a search that comes with each answer is in the price, at a host that resells the model, too', async () => {
    const { endpoints } = await load(['openrouter']);
    const fees = endpoints.filter(({ id, isServable }) => id.startsWith('openrouter:perplexity/') && isServable).map(({ id, prices }) => [id, prices[0]?.card.requestNanoUsd]);
    expect(fees).toEqual(['sonar', 'sonar-pro', 'sonar-reasoning-pro'].map((name) => [`openrouter:perplexity/${name}`, 5_000_000n]));
  });

  test.each([
    ['openai:openai/o4-mini', '2026-10-23'],
    ['openai:openai/gpt-5', '2026-12-11'],
    ['anthropic:anthropic/claude-opus-4.1', '2026-08-05'],
    ['google-ai-studio:google/gemini-2.5-pro', '2026-12-01'],
    ['google-vertex:google/gemini-2.5-flash-lite', '2026-10-20'],
    ['perplexity:perplexity/sonar', '2026-09-27'],
  ])('%s serves no more from %s on, when its host refuses or answers with another model', async (id, date) => {
    const servableOn = async (today: string): Promise<unknown> => (await source([id.split(':')[0] ?? '']).read(today)).loaded?.catalog.endpoints.find((endpoint) => endpoint.id === id)?.isServable;
    const before = new Date(Date.parse(date) - 86_400_000).toISOString().slice(0, 10);
    expect([await servableOn(before), await servableOn(date)]).toEqual([true, false]);
  });

  test('knows when an endpoint serves for the last time: with its maker, and elsewhere unless its weights are open', async () => {
    const { loaded } = await source(['anthropic', 'amazon-bedrock', 'moonshot', 'groq']).read('2026-05-01');
    const sunsets = (model: string): unknown[] => loaded?.catalog.endpoints.filter((endpoint) => endpoint.model === model && endpoint.hasManagedCredential).map(({ provider, sunsetDate }) => [provider, sunsetDate]) ?? [];
    expect(sunsets('anthropic/claude-sonnet-4')).toContainEqual(['anthropic', '2026-05-14']);
    expect(sunsets('moonshotai/kimi-k2-0905')).toEqual(expect.arrayContaining([['moonshot', '2026-05-25']]));
    expect(sunsets('moonshotai/kimi-k2-0905')).not.toContainEqual(['groq', '2026-05-25']);
    if (loaded === undefined) throw new Error('no catalog');
    const plan = decide(plainRequest('anthropic/claude-sonnet-4'), { catalog: loaded.catalog, live: new Map() }, 1);
    expect(decideResponse(plan, 'dec_1').attempts?.map(({ sunsetDate }) => sunsetDate)).toContain('2026-05-14');
  });

  test.each([
    ['2026-05-01', '2026-05-25'],
    ['2026-05-24', '2026-05-25'],
    ['2026-05-25', null],
    ['2026-11-21', null],
  ])('on %s tells %s as the end of a model that its maker gives up and another goes on with', async (today, date) => {
    const { loaded } = await source(['groq', 'moonshot']).read(today);
    const model = loaded?.catalog.models.find(({ id }) => id === 'moonshotai/kimi-k2-0905');
    expect([model?.deprecationDate, model?.isRetired, model?.endpoints.some(({ provider, isServable }) => provider === 'groq' && isServable)]).toEqual([date, false, true]);
  });

  test('keeps requests away from endpoints that cannot say them', async () => {
    const catalog = await load(['anthropic', 'amazon-bedrock', 'google-ai-studio', 'xai', 'mistral', 'openai', 'azure-openai']);
    const of = (id: string) => {
      const endpoint = catalog.endpoints.find((one) => one.id === id);
      if (endpoint === undefined) throw new Error(id);
      return endpoint.capabilities;
    };
    // Thinking cannot be turned off in these, and a thinking model cannot be forced to call a tool.
    for (const id of ['anthropic:anthropic/claude-fable-5', 'amazon-bedrock:anthropic/claude-fable-5', 'anthropic:anthropic/claude-fable-5.1', 'anthropic:anthropic/claude-opus-5.5']) expect(of(id)).toMatchObject({ tools: true, forcedToolChoice: false });
    // It requires the effort `none` with tools, and does not have that effort.
    for (const id of ['openai:openai/gpt-6-astra', 'azure-openai:openai/gpt-6-astra']) expect(of(id)).toMatchObject({ tools: false });
    expect(of('openai:openai/gpt-6-sol')).toMatchObject({ tools: true });
    expect(of('anthropic:anthropic/claude-opus-5')).toMatchObject({ forcedToolChoice: true, choices: false, fileInput: true });
    expect([of('google-ai-studio:google/gemini-2.5-flash').choices, of('google-ai-studio:google/gemini-3.5-flash').choices]).toEqual([true, false]);
    expect([of('xai:x-ai/grok-4.3').fileInput, of('mistral:mistralai/mistral-large-2512').fileInput, of('azure-openai:mistralai/mistral-large-2512').fileInput, of('azure-openai:openai/gpt-4o').fileInput, of('openai:openai/gpt-4o').fileInput]).toEqual([false, true, false, true, true]);
  });

  test('knows what a host does not take, whatever the model, and keeps to others where all is required', async () => {
    const catalog = await load(['groq', 'cerebras', 'deepinfra']);
    const lacks = (provider: string, field: string): unknown => catalog.endpoints.find((endpoint) => endpoint.provider === provider && endpoint.model === 'openai/gpt-oss-120b')?.unsupportedParams.has(field);
    expect([lacks('groq', 'logit_bias'), lacks('groq', 'presence_penalty'), lacks('cerebras', 'presence_penalty'), lacks('deepinfra', 'logit_bias')]).toEqual([true, false, true, false]);
    const request = plainRequest('openai/gpt-oss-120b');
    const decided = decide({ ...request, needs: { ...request.needs, params: ['logit_bias'] }, provider: { ...request.provider, requireParameters: true } }, { catalog, live: new Map() }, 1);
    expect(decided).toMatchObject({ kind: 'plan', attempts: [{ endpoint: { provider: 'deepinfra' } }] });
  });

  test('knows which of OpenAI’s own fields its models answer 400 to, at OpenAI and at Azure', async () => {
    const { endpoints } = await load(['openai', 'azure-openai', 'openrouter', 'simulator']);
    const of = (id: string): readonly unknown[] => ['metadata', 'verbosity', 'parallel_tool_calls'].map((name) => endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams.has(name));
    for (const host of ['openai', 'azure-openai']) {
      for (const name of ['gpt-4o-mini', 'gpt-4.1']) expect([host, name, of(`${host}:openai/${name}`)]).toEqual([host, name, [true, true, false]]);
      for (const name of ['o3-mini', 'o4-mini', 'o1']) expect([host, name, of(`${host}:openai/${name}`)]).toEqual([host, name, [true, true, true]]);
      for (const name of ['gpt-5', 'gpt-5.1']) expect([host, name, of(`${host}:openai/${name}`)]).toEqual([host, name, [true, false, false]]);
    }
    expect(of('openai:openai/gpt-6-sol')).toEqual([true, false, false]);
    expect(of('openrouter:openai/o4-mini')).toEqual([true, true, false]);
    expect(endpoints.filter(({ provider, model, unsupportedParams }) => provider === 'azure-openai' && !model.startsWith('openai/') && !unsupportedParams.has('verbosity')).map(({ id }) => id)).toEqual([]);
  });

  test("models of OpenAI's that do not reason take stop sequences and tell probabilities", async () => {
    const { endpoints, models } = await load(['openai']);
    const plain = endpoints.filter(({ provider, model, hiddenReasoning, isServable }) => provider === 'openai' && isServable && !hiddenReasoning && models.find(({ id }) => id === model)?.ownedBy === 'openai');
    expect(plain.map(({ model }) => model)).toEqual(expect.arrayContaining(['openai/gpt-4.1', 'openai/gpt-4.1-mini', 'openai/gpt-4o']));
    expect(plain.filter(({ unsupportedParams, capabilities }) => unsupportedParams.has('stop') || !capabilities.logprobs).map(({ id }) => id)).toEqual([]);
  });

  test('nobody writes a cache for nothing where its input has a price', async () => {
    const { endpoints } = await load(['openai', 'azure-openai', 'zai', 'deepseek', 'cerebras', 'anthropic']);
    const cards = endpoints.flatMap(({ id, prices }) => prices.map(({ card }) => ({ id, card })));
    expect(cards.filter(({ card }) => card.inputUncached > 0n && card.cacheWrite === 0n).map(({ id }) => id)).toEqual([]);
    expect(cards.find(({ id }) => id === 'openai:openai/gpt-4.1')?.card).toMatchObject({ inputUncached: 2_000_000_000n, cacheWrite: 2_000_000_000n });
  });

  test.each([
    ['openai:openai/gpt-6-sol', false, false, false],
    ['openai:openai/gpt-6-luna', false, false, false],
    ['azure-openai:openai/gpt-6-astra', false, false, false],
    ['azure-openai:openai/gpt-5.6-sol', false, false, false],
    ['amazon-bedrock:openai/gpt-5.6-sol', false, false, false],
    ['openai:openai/o3-pro', false, false, false],
    ['openai:openai/gpt-4o-mini', true, true, true],
    ['azure-openai:openai/gpt-oss-120b', true, true, true],
    ['xai:x-ai/grok-4.7', true, false, false],
    ['xai:x-ai/grok-4.3', true, false, false],
    ['xai:x-ai/grok-4.20', true, false, false],
    ['openrouter:x-ai/grok-4.3', true, true, true],
  ])('%s takes a temperature: %s, stop sequences: %s, penalties: %s', async (id, warmth, stop, penalties) => {
    const { endpoints } = await load(['openai', 'azure-openai', 'amazon-bedrock', 'xai', 'openrouter']);
    const lacks = endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams;
    expect(['temperature', 'top_p', 'stop', 'presence_penalty', 'frequency_penalty'].map((name) => lacks?.has(name) === false)).toEqual([warmth, warmth, stop, penalties, penalties]);
  });

  test('knows which wires refuse stop sequences of blank space, and take others', async () => {
    const { endpoints } = await load(['anthropic', 'amazon-bedrock', 'openai']);
    const of = (id: string): readonly unknown[] => ['stop.blank', 'stop'].map((name) => endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams.has(name));
    expect(['anthropic:anthropic/claude-opus-5', 'amazon-bedrock:anthropic/claude-opus-5', 'openai:openai/gpt-4o-mini'].map(of)).toEqual([[true, false], [true, false], [false, false]]);
  });

  test('knows which versions of Claude are sent no sampling, and which no `top_p` beside a temperature', async () => {
    const catalog = await load(['anthropic', 'amazon-bedrock', 'openai', 'minimax']);
    const of = (id: string): readonly unknown[] => ['temperature', 'top_p.second', 'top_p'].map((name) => catalog.endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams.has(name));
    for (const host of ['anthropic', 'amazon-bedrock']) {
      expect([4, 4.5, 4.6].map((version) => of(`${host}:anthropic/claude-sonnet-${String(version)}`))).toEqual([[false, false, false], [false, true, false], [false, true, false]]);
      expect(of(`${host}:anthropic/claude-opus-5`)).toEqual([true, true, true]);
    }
    expect(['openai:openai/gpt-4o-mini', 'minimax:minimax/minimax-m3'].map(of)).toEqual([[false, false, false], [false, false, false]]);
    const request = plainRequest('anthropic/claude-sonnet-4.5');
    const decided = (params: readonly string[], requireParameters: boolean): unknown => decide({ ...request, needs: { ...request.needs, params }, provider: { ...request.provider, requireParameters } }, { catalog, live: new Map() }, 1);
    expect(decided(['temperature', 'top_p', 'top_p.second'], false)).toMatchObject({ kind: 'plan', attempts: [{ dropParams: ['top_p.second'] }, { dropParams: ['top_p.second'] }] });
    expect(decided(['temperature', 'top_p', 'top_p.second'], true)).toMatchObject({ kind: 'no-eligible-provider', excludedBy: ['parameters'] });
    expect(decided(['top_p'], true)).toMatchObject({ kind: 'plan', attempts: [{ dropParams: [] }, { dropParams: [] }] });
  });

  test('knows who fixes sampling while it thinks, and who takes one stop sequence', async () => {
    const { endpoints } = await load(['anthropic', 'amazon-bedrock', 'google-ai-studio', 'zai', 'deepinfra']);
    const of = (id: string): readonly unknown[] => ['temperature.thinking', 'top_p.thinking', 'stop.second', 'temperature'].map((name) => endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams.has(name));
    for (const id of ['anthropic:anthropic/claude-sonnet-4.5', 'amazon-bedrock:anthropic/claude-opus-4.6', 'amazon-bedrock:amazon/nova-2-lite-v1']) expect([id, of(id)]).toEqual([id, [true, true, false, false]]);
    for (const id of ['amazon-bedrock:amazon/nova-pro-v1', 'google-ai-studio:google/gemini-2.5-pro', 'deepinfra:z-ai/glm-5.1']) expect([id, of(id)]).toEqual([id, [false, false, false, false]]);
    expect(of('zai:z-ai/glm-5.1')).toEqual([false, false, true, false]);
  });

  test.each([
    ['less than is asked for', 'openai/gpt-5.6-luna', 'minimal', 'low'],
    ['at its most, where there is no more', 'openai/gpt-5.5', 'max', 'xhigh'],
    ['at its least, where it always thinks', 'openai/o4-mini', 'none', 'low'],
    ['as it is asked to', 'openai/gpt-5.6-luna', 'none', ''],
    ['at its least, which is no longer called so', 'openai/gpt-5.1', 'minimal', 'low'],
    ['at its least, before it could be told not to', 'openai/gpt-5-nano', 'none', 'minimal'],
    ['as it is asked to, in a word that later ones lack', 'openai/gpt-5-mini', 'minimal', ''],
  ])('OpenAI’s models are told to think %s', async (_what, model, effort, sent) => {
    const catalog = await load(['openai', 'azure-openai']);
    const request = plainRequest(model);
    const planOf = (requireParameters: boolean): ReturnType<typeof decide> => decide({ ...request, needs: { ...request.needs, params: ['reasoning_effort', `reasoning_effort.of.${effort}`] }, provider: { ...request.provider, only: ['openai', 'azure-openai'], requireParameters } }, { catalog, live: new Map() }, 1);
    const found = planOf(false);
    const attempts = decideResponse(found, 'dec_1').attempts ?? [];
    expect(attempts.map(({ dropParams, reasoningEffort }) => [dropParams, reasoningEffort])).toEqual(attempts.map(() => [sent === '' ? [] : [`reasoning_effort.of.${effort}`], sent]));
    expect([attempts.length > 0, planOf(true).kind]).toEqual([true, sent === '' ? 'plan' : 'no-eligible-provider']);
  });

  test.each<[string, string, string, string]>([
    ['zai:z-ai/glm-5.3', 'none', 'changed', 'low'],
    ['zai:z-ai/glm-5.3', 'medium', 'changed', 'low'],
    ['zai:z-ai/glm-5.3', 'high', 'sent', ''],
    ['groq:qwen/qwen3-32b', 'none', 'sent', ''],
    ['groq:qwen/qwen3-32b', 'high', 'left out', ''],
    ['mistral:mistralai/mistral-small-2603', 'low', 'changed', 'high'],
    ['mistral:mistralai/mistral-medium-3-5', 'medium', 'changed', 'high'],
    ['mistral:mistralai/mistral-medium-3-5', 'none', 'sent', ''],
    ['deepseek:deepseek/deepseek-v4-pro', 'low', 'changed', 'high'],
    ['xai:x-ai/grok-4.5', 'none', 'changed', 'low'],
    ['amazon-bedrock:openai/gpt-5.5', 'max', 'changed', 'xhigh'],
    // The host's list takes precedence over the maker's, which applies if the host has none.
    ['fireworks:deepseek/deepseek-v4-pro', 'low', 'sent', ''],
    ['baseten:openai/gpt-oss-120b', 'none', 'changed', 'low'],
    // A wire that translates efforts accepts all of them.
    ['anthropic:anthropic/claude-opus-4.6', 'none', 'sent', ''],
    ['google-vertex:google/gemini-3.8-flash', 'minimal', 'sent', ''],
    ['alibaba:z-ai/glm-5.3', 'medium', 'sent', ''],
    ['openrouter:openai/gpt-5', 'none', 'sent', ''],
    // MiniMax has no efforts; only its newest model can be told not to think.
    ['minimax:minimax/minimax-m3', 'none', 'sent', ''],
    ['minimax:minimax/minimax-m3', 'high', 'left out', ''],
    // Its efforts are unknown.
    ['deepinfra:qwen/qwen3-32b', 'low', 'sent', ''],
  ])('to %s the effort %s is %s %s', async (id, effort, what, sent) => {
    const [provider = '', model = ''] = id.split(':');
    const catalog = await load([provider]);
    const request = plainRequest(model);
    const named = `reasoning_effort.of.${effort}`;
    const planOf = (requireParameters: boolean): ReturnType<typeof decide> => decide({ ...request, needs: { ...request.needs, params: ['reasoning_effort', named] }, provider: { ...request.provider, requireParameters } }, { catalog, live: new Map() }, 1);
    const attempt = decideResponse(planOf(false), 'dec_1').attempts?.find(({ endpointId }) => endpointId === id);
    expect([attempt?.dropParams, attempt?.reasoningEffort]).toEqual([what === 'sent' ? [] : what === 'changed' ? [named] : [named, 'reasoning_effort'], sent]);
    const kept = planOf(true);
    expect(kept.kind === 'plan' && kept.attempts.some(({ endpoint }) => endpoint.id === id)).toBe(what === 'sent');
  });

  test('knows whose thinking nobody can set, though they think', async () => {
    const { endpoints } = await load(['minimax', 'amazon-bedrock', 'google-ai-studio', 'google-vertex', 'anthropic']);
    const lacking = endpoints.filter(({ unsupportedParams, model }) => unsupportedParams.has('reasoning_effort') && /minimax|deepseek|kimi|gemma|gpt-5|grok|nova-2|gemini|claude-opus-5$/.test(model)).map(({ id }) => id);
    for (const id of ['minimax:minimax/minimax-m2.7', 'minimax:minimax/minimax-m2', 'amazon-bedrock:moonshotai/kimi-k2-thinking', 'amazon-bedrock:minimax/minimax-m2', 'google-ai-studio:google/gemma-4-31b-it']) expect(lacking).toContain(id);
    for (const id of ['minimax:minimax/minimax-m3', 'amazon-bedrock:openai/gpt-5.5', 'amazon-bedrock:x-ai/grok-4.3', 'amazon-bedrock:amazon/nova-2-lite-v1', 'amazon-bedrock:anthropic/claude-opus-5', 'google-ai-studio:google/gemini-2.5-pro', 'google-ai-studio:google/gemini-3.8-flash', 'google-vertex:google/gemma-4-26b-a4b-it', 'anthropic:anthropic/claude-opus-5']) expect(lacking).not.toContain(id);
  });

  test('knows which models of Moonshot are refused a temperature that is not their own', async () => {
    const { endpoints } = await load(['moonshot', 'novita']);
    const fixed = endpoints.filter(({ unsupportedParams }) => unsupportedParams.has('temperature')).map(({ id }) => id);
    expect(fixed).toEqual(expect.arrayContaining(['kimi-k2.5', 'kimi-k2.6', 'kimi-k2.7-code', 'kimi-k3'].map((name) => `moonshot:moonshotai/${name}`)));
    for (const id of ['moonshot:moonshotai/kimi-k2-thinking', 'novita:moonshotai/kimi-k2.6']) expect(fixed).not.toContain(id);
  });

  test('knows which wires cannot ask for one call at a time', async () => {
    const { endpoints } = await load(['anthropic', 'amazon-bedrock', 'google-ai-studio', 'cohere', 'openai', 'groq', 'zai']);
    const of = (id: string): unknown => endpoints.find((endpoint) => endpoint.id === id)?.unsupportedParams.has('parallel_tool_calls.single');
    for (const id of ['google-ai-studio:google/gemini-2.5-pro', 'cohere:cohere/command-a', 'amazon-bedrock:amazon/nova-pro-v1', 'zai:z-ai/glm-5.3']) expect([id, of(id)]).toEqual([id, true]);
    for (const id of ['amazon-bedrock:anthropic/claude-opus-4.6', 'anthropic:anthropic/claude-sonnet-4.5', 'openai:openai/gpt-4o-mini', 'groq:openai/gpt-oss-120b']) expect([id, of(id)]).toEqual([id, false]);
  });

  test.each([
    ['a temperature above the highest of a host', 'anthropic:anthropic/claude-sonnet-4.5', 'temperature.of.1.7', true],
    ['one above that of the wire, where models of others go higher', 'google-vertex:anthropic/claude-sonnet-4.5', 'temperature.of.1.1', true],
    ['one above that of the wire, where the host tells none', 'minimax:minimax/minimax-m3', 'temperature.of.2', true],
    ['one above that of this host and not of others', 'mistral:mistralai/mistral-large-2512', 'temperature.of.1.6', true],
    ['one below', 'mistral:mistralai/mistral-large-2512', 'temperature.of.1.5', false],
    ['one where no highest is known', 'deepinfra:z-ai/glm-5.1', 'temperature.of.1.9', false],
    ['a penalty that rewards', 'cohere:cohere/command-a', 'presence_penalty.wide', true],
    ['a mail address as the user', 'anthropic:anthropic/claude-sonnet-4.5', 'user.personal', true],
    ['one that is taken', 'openai:openai/gpt-4o-mini', 'user.personal', false],
    ['an effort without room for thoughts, of a model that counts them,', 'google-vertex:anthropic/claude-sonnet-4.5', 'reasoning_effort.cramped', true],
    ['one of a model that does not', 'anthropic:anthropic/claude-opus-4.6', 'reasoning_effort.cramped', false],
    ['an effort of an answer that is not streamed, of a model that thinks in streams alone,', 'alibaba:qwen/qwen3-32b', 'reasoning_effort.whole', true],
    ['one of a later model', 'alibaba:qwen/qwen3.7-plus', 'reasoning_effort.whole', false],
    ['one of the same model elsewhere', 'deepinfra:qwen/qwen3-32b', 'reasoning_effort.whole', false],
    ['a penalty that all have', 'openai:openai/gpt-4o-mini', 'frequency_penalty.wide', false],
    ['one call at a time, of a wire without a word for it,', 'google-vertex:google/gemini-3.1-pro-preview', 'parallel_tool_calls.single', true],
    ['one call at a time, of a model that is told so,', 'anthropic:anthropic/claude-sonnet-4.5', 'parallel_tool_calls.single', false],
  ])('%s is told where the value is changed, and kept away from there where all is required', async (_what, id, param, isChanged) => {
    const catalog = await load(['anthropic', 'google-vertex', 'minimax', 'mistral', 'deepinfra', 'cohere', 'openai', 'alibaba']);
    const [provider = '', model = ''] = id.split(':');
    const request = plainRequest(model);
    const decided = (requireParameters: boolean): unknown => decide({ ...request, needs: { ...request.needs, params: [fieldOfParam(param), param] }, provider: { ...request.provider, only: [provider], requireParameters } }, { catalog, live: new Map() }, 1);
    expect(decided(false)).toMatchObject({ kind: 'plan', attempts: [{ endpoint: { provider }, dropParams: isChanged ? [param] : [] }] });
    expect(decided(true)).toMatchObject(isChanged ? { kind: 'no-eligible-provider', excludedBy: expect.arrayContaining(['parameters']) } : { kind: 'plan' });
  });

  test('resolves full, bare and dated names, and prices exactly', async () => {
    const catalog = await load(['openai']);
    const mini = findModel(catalog, 'gpt-4o-mini');
    expect(mini?.id).toBe('openai/gpt-4o-mini');
    expect(findModel(catalog, 'openai/gpt-4o-mini')).toBe(mini);
    expect(mini?.listPrices[0]?.card).toMatchObject({ inputUncached: 150_000_000n, outputText: 600_000_000n, cacheRead: 75_000_000n });
    for (const model of catalog.models) for (const alias of model.aliases) expect(findModel(catalog, alias)?.id).toBe(model.id);
  });

  test('charges the long-context price for the whole prompt once it passes the threshold', async () => {
    const catalog = await load(['openai']);
    const at = (promptTokens: number) => {
      const plan = decide({ ...plainRequest('openai/gpt-5.6-sol'), promptTokens }, { catalog, live: new Map() }, 1);
      return plan.kind === 'plan' ? plan.attempts[0]?.card.inputUncached : undefined;
    };
    expect(at(272_000)).toBe(5_000_000_000n);
    expect(at(272_001)).toBe(10_000_000_000n);
  });

  test('tells what lists may call a model beside its id, so that a later list can be held against the plan', async () => {
    const catalog = await load(['openai', 'anthropic']);
    const told = (model: string) => decideResponse(decide(plainRequest(model), { catalog, live: new Map() }, 1), '', [], undefined, catalog.models).attempts?.[0]?.modelAliases;
    expect([told('anthropic/claude-opus-4.5'), told('openai/gpt-4o-mini')]).toEqual([['claude-opus-4-5'], undefined]);
  });

  test('tells both prices, since only the provider counts the prompt, and no steps where there are none', async () => {
    const catalog = await load(['openai']);
    const told = (model: string) => decideResponse(decide(plainRequest(model), { catalog, live: new Map() }, 1), '');
    const steps = [{ fromPromptTokens: 0, card: { inputUncached: '5000000000' } }, { fromPromptTokens: 272_001, card: { inputUncached: '10000000000' } }];
    const { attempts = [], referenceSteps } = told('openai/gpt-5.6-sol');
    expect([attempts[0]?.steps, referenceSteps]).toMatchObject([steps, steps]);
    const ids = attempts[0]?.steps?.map(({ card }) => card?.id);
    expect([ids?.[0], new Set(ids).size]).toEqual([attempts[0]?.card?.id, 2]);
    const ordinary = told('openai/gpt-4o-mini');
    expect(['steps' in (ordinary.attempts?.[0] ?? {}), 'referenceSteps' in ordinary]).toEqual([false, false]);
  });

  test('gives abilities in [0, 1] that put a flagship above a small model', async () => {
    const catalog = await load([]);
    for (const model of catalog.models) expect(model.ability >= 0 && model.ability <= 1).toBe(true);
    expect(findModel(catalog, 'openai/gpt-5.6-sol')?.ability ?? 0).toBeGreaterThan(findModel(catalog, 'openai/gpt-4o-mini')?.ability ?? 1);
  });

  test('answers auto from the simulator when there is nothing else, compared with its dearer model', async () => {
    const plan = decide(plainRequest('auto'), { catalog: await load(['simulator'], true), live: new Map() }, 1);
    expect(plan.kind === 'plan' ? [plan.attempts[0]?.endpoint.model, plan.reference?.model] : []).toEqual(['simulator/fast', 'simulator/smart']);
    expect(findModel(await load(['openai']), 'simulator/fast')).toBeUndefined();
  });
});

describe('a bad catalog', () => {
  test.each([
    ['a negative price', '"input":0.15,"output":0.6', '"input":-0.15,"output":0.6'],
    ['a blank price', '"input":0.15,"output":0.6', '"input":"","output":0.6'],
    ['a price that is not a number', '"input":0.15,"output":0.6', '"input":NaN,"output":0.6'],
    ['no price at all', '"input":0.15,"output":0.6', '"input":null,"output":0.6'],
    ['a price finer than a nano-dollar', '"input":0.15,"output":0.6', '"input":1e-12,"output":0.6'],
    ['a price that no model has', '"input":0.15,"output":0.6', '"input":1e9,"output":0.6'],
    ['two prices from the same length of prompts on', '"long_context_tiers":[{', '"long_context_tiers":[{"min_context_tokens":272000,"input":1,"output":2},{'],
    ['long prompts without a price of input', '"min_context_tokens":272000,"input":10.0,', '"min_context_tokens":272000,'],
    ['long prompts without a price of output', '"min_context_tokens":272000,"input":10.0,"output":45.0', '"min_context_tokens":272000,"input":10.0'],
    ['a model called auto', '"aliases":["gpt-6-sol"]', '"aliases":["auto"]'],
    ['an unknown provider', '"provider":"openai"', '"provider":"nobody"'],
    ['an alias of two models', '"aliases":["gpt-6-sol"]', '"aliases":["gpt-4o-mini"]'],
  ])('with %s is refused and the good one stays', async (_what, from, to) => {
    const directory = await mkdtemp(join(tmpdir(), 'catalog-'));
    try {
      const models = await readFile(join(SHIPPED, 'models.json'), 'utf8');
      await writeFile(join(directory, 'providers.json'), await readFile(join(SHIPPED, 'providers.json')));
      await writeFile(join(directory, 'models.json'), models);
      const holder = createCatalogHolder(source(['openai'], directory), clock);
      expect((await holder.reload()).problems).toEqual([]);
      const good = holder.current();
      expect(models).toContain(from);
      await writeFile(join(directory, 'models.json'), models.replace(from, to));
      expect((await holder.check()).problems.length).toBeGreaterThan(0);
      expect((await holder.reload()).problems.length).toBeGreaterThan(0);
      expect(holder.current()).toBe(good);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test('a price that more than doubles is told, and taken', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'catalog-'));
    try {
      const models = await readFile(join(SHIPPED, 'models.json'), 'utf8');
      await writeFile(join(directory, 'providers.json'), await readFile(join(SHIPPED, 'providers.json')));
      await writeFile(join(directory, 'models.json'), models);
      const holder = createCatalogHolder(source(['openai'], directory), clock);
      await holder.reload();
      await writeFile(join(directory, 'models.json'), models.replace('"input":0.15,"output":0.6', '"input":0.31,"output":0.6'));
      expect(await holder.reload()).toMatchObject({ problems: [], warnings: [expect.stringContaining('input')] });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

interface ShippedModel {
  readonly id: string;
  readonly capabilities: Record<string, unknown>;
  readonly endpoints: readonly { readonly id: string; readonly pricing: Record<string, unknown> }[];
}

describe('a file that is wrong', () => {
  const providers = '{"schema_version":1,"providers":[]}';
  const problemsOf = async (models: string): Promise<readonly string[]> => {
    const directory = await mkdtemp(join(tmpdir(), 'signalbox-catalog-'));
    try {
      await writeFile(join(directory, 'providers.json'), providers);
      await writeFile(join(directory, 'models.json'), models);
      return (await source([], directory).read('2026-11-21')).problems;
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  };

  test.each([
    ['{"models": [\n{"id": "a/b",\n}]}', 'models.json: is not JSON in line 3.'],
    ['{"models": [', 'models.json: is not JSON: it ends too early.'],
    ['{"models": [\n{"id": "a/b",\n"aliases": [],\n"open_weights": flase,\n"family": "c"}\n]}', 'models.json: is not JSON in line 4.'],
    ['{"models": [NaN]}', 'models.json: is not JSON in line 1.'],
  ])('%j is told with its line', async (text, problem) => {
    expect((await problemsOf(text)).filter((line) => line.startsWith('models.json'))).toEqual([problem]);
  });

  test.each(['2026-02-30', '2026-13-01', '30.11.2026', ''])('a shutdown on %j, which is no date, is told: it would never come', async (date) => {
    const shipped = JSON.parse(await readFile(join(SHIPPED, 'models.json'), 'utf8')) as { models: ShippedModel[] };
    const problems = await problemsOf(JSON.stringify({ ...shipped, models: shipped.models.slice(0, 1).map((model) => ({ ...model, deprecation_date: date })) }));
    expect(problems).toContainEqual(expect.stringMatching(/^models\.json: \S+: deprecation_date: Invalid ISO date$/));
  });

  test('a field is told by the record that it is of', async () => {
    const shipped = JSON.parse(await readFile(join(SHIPPED, 'models.json'), 'utf8')) as { models: { id: string; endpoints: { id: string; pricing: Record<string, unknown> }[] }[] };
    const model = shipped.models.find(({ endpoints }) => endpoints.length > 0);
    const endpoint = model?.endpoints[0];
    if (model === undefined || endpoint === undefined) throw new Error('no endpoint');
    endpoint.pricing['input'] = '0.15';
    const problems = await problemsOf(JSON.stringify({ ...shipped, models: [model] }));
    expect(problems).toContainEqual(expect.stringMatching(/^models\.json: \S+: pricing\.input: /));
    expect(problems.join('\n')).toContain(`models.json: ${endpoint.id}: pricing.input: `);
  });

  test.each<[string, (model: ShippedModel) => Record<string, unknown>, string, string]>([
    ['a price', ({ endpoints: [endpoint] }) => endpoint?.pricing ?? {}, 'cache_write', 'cache_writes'],
    ['the prices of long prompts', ({ endpoints: [endpoint] }) => endpoint?.pricing ?? {}, 'long_context_tiers', 'long_context_tier'],
    ['a capability', ({ capabilities }) => capabilities, 'vision', 'Vision'],
    ['a date', (model) => model as unknown as Record<string, unknown>, 'deprecation_date', 'depreciation_date'],
  ])('%s under a misspelt name is told, and not ignored', async (_, recordOf, known, misspelt) => {
    const shipped = JSON.parse(await readFile(join(SHIPPED, 'models.json'), 'utf8')) as { models: ShippedModel[] };
    const model = shipped.models[0];
    if (model === undefined) throw new Error('no model');
    const record = recordOf(model);
    record[misspelt] = record[known];
    Reflect.deleteProperty(record, known);
    const problems = (await problemsOf(JSON.stringify({ ...shipped, models: [model] }))).filter((line) => line.startsWith('models.json'));
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^models\\.json: .*${misspelt}: there is no such field; ${known} is probably meant$`))]);
  });

  test('fields that routing does not know, and that resemble none, may stand there', async () => {
    const shipped = JSON.parse(await readFile(join(SHIPPED, 'models.json'), 'utf8')) as { models: ShippedModel[] };
    const text = JSON.stringify({ ...shipped, note: 'ours', models: shipped.models.slice(0, 1).map((model) => ({ ...model, contact: 'ours' })) });
    expect((await problemsOf(text)).filter((line) => line.startsWith('models.json'))).toEqual([]);
  });

  test('nor is another percentile or year taken for a misspelt one, nor a field that was put aside', async () => {
    const shipped = JSON.parse(await readFile(join(SHIPPED, 'models.json'), 'utf8')) as { models: ShippedModel[] };
    const measured = { ttft_ms_p95: 900, throughput_tps_p90: 80 };
    const models = shipped.models.slice(0, 1).map(({ endpoints, capabilities: { vision, ...capabilities }, ...model }) => ({
      ...model, capabilities: { ...capabilities, _vision: vision }, priors: { quality: { academic_2026: {} } }, endpoints: endpoints.map((endpoint) => ({ ...endpoint, priors: measured })),
    }));
    expect((await problemsOf(JSON.stringify({ ...shipped, models }))).filter((line) => line.startsWith('models.json'))).toEqual([]);
  });
});
