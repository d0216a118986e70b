import { afterEach, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { ListModelsRequest, ListModelsResponse__Output } from '@signalbox/contracts/routing';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

let stop = async (): Promise<void> => Promise.resolve();
afterEach(() => stop());

/** Starts routing with these providers; the function returned asks for one model. */
async function start(providers: string): Promise<(model: string, terms?: ListModelsRequest) => Promise<unknown>> {
  const service = composeRouting(loadRoutingConfig({ PROVIDERS: providers }), { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }) });
  await service.start();
  const client = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  stop = async () => {
    await client.close();
    await service.stop();
  };
  return async (model, terms = {}) => {
    const { models, ...missing } = await client.unary<ListModelsRequest, ListModelsResponse__Output>('ListModels', { model, ...terms });
    return { ...missing, models: models.map(({ id }) => id) };
  };
}

test('of one model that is not listed it is told what its name certainly means, or who would serve it', async () => {
  const ask = await start('openai,azure-openai');
  const none = { models: [], unsetProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], retired: false, fallbackModels: [] };
  expect(await ask('azure/gpt-4o')).toEqual({ ...none, nearestModel: 'openai/gpt-4o', nearestProvider: 'azure-openai' });
  expect(await ask('openai/gpt-4o:nitro')).toEqual({ ...none, nearestModel: 'openai/gpt-4o' });
  expect(await ask('google/gemini-3.5-flash')).toMatchObject({ ...none, unsetProviders: expect.arrayContaining(['google-ai-studio', 'google-vertex']) });
  expect(await ask('openai/gpt-4o')).toEqual({ ...none, models: ['openai/gpt-4o'] });
});

test('nothing of the kind is told of a model that this key may not use, nor with the whole list', async () => {
  const ask = await start('openai');
  const none = { unsetProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], retired: false, fallbackModels: [] };
  expect(await ask('azure/gpt-4o', { denyModels: ['openai/*'] })).toEqual({ ...none, models: [] });
  expect(await ask('openai/gpt-4o', { denyModels: ['openai/*'] })).toEqual({ ...none, models: [] });
  expect(await ask('azure/gpt-4o', { denyProviders: ['openai'] })).toEqual({ ...none, models: [] });
  expect(await ask('', { allowModels: ['nothing/of-this'] })).toEqual({ ...none, models: [] });
  for (const terms of [{ denyModels: ['openai/*'] }, { denyProviders: ['openai'] }, { allowModels: ['auto'] }]) expect(await ask('gpt-4o-mni', terms)).toEqual({ ...none, models: [] });
});

test('a name that nothing is known of is answered with those that are written alike, the likest first', async () => {
  const ask = await start('openai,azure-openai,anthropic,mistral');
  const alike = async (model: string, terms: ListModelsRequest = {}): Promise<readonly string[]> => ((await ask(model, terms)) as { readonly similarModels: readonly string[] }).similarModels;
  for (const [model, likest] of [['gpt-4o-mni', 'openai/gpt-4o-mini'], ['gpt4o', 'openai/gpt-4o'], ['GPT 4o', 'openai/gpt-4o'], ['gpt-4o-2024-08-06-preview', 'openai/gpt-4o'], ['openai:gpt-4o-mini', 'openai/gpt-4o-mini'], ['mistral-large-latest', 'mistralai/mistral-large']] as const) {
    const [first = '', ...others] = await alike(model);
    expect([model, first.startsWith(likest), others.length < 3]).toEqual([model, true, true]);
  }
  expect((await alike('claude-sonnet')).every((id) => id.startsWith('anthropic/claude'))).toBe(true);
  // Models that begin with the name come first.
  expect((await alike('openai/gpt-5.4-')).every((id) => id.startsWith('openai/gpt-5.4'))).toBe(true);
  expect(await alike('cla')).toEqual([expect.stringMatching(/^anthropic\/claude/), expect.stringMatching(/^anthropic\/claude/), expect.stringMatching(/^anthropic\/claude/)]);
  // Only models of the maker that the name begins with.
  expect((await alike('openai/claude-sonet')).filter((id) => !id.startsWith('openai/'))).toEqual([]);
  for (const model of ['nope', '/', 'x', 'default', `gpt-4o-${'m'.repeat(100)}`]) expect([model, await alike(model)]).toEqual([model, []]);
  expect(await alike('gpt4o', { denyModels: ['openai/gpt-4o'] })).not.toContain('openai/gpt-4o');
});

test('of a model that is served no more it is told so, and which of its maker this key may ask for', async () => {
  const ask = await start('anthropic');
  const retired = 'anthropic/claude-sonnet-4';
  const told = (await ask(retired)) as { readonly fallbackModels: readonly string[] };
  expect(told).toMatchObject({ models: [], retired: true, fallbackModels: expect.arrayContaining([expect.stringMatching(/^anthropic\//)]) });
  const [nearest = ''] = told.fallbackModels;
  expect(await ask(nearest)).toMatchObject({ models: [nearest], retired: false });
  expect(await ask(retired, { denyModels: [nearest] })).toMatchObject({ retired: true, fallbackModels: expect.not.arrayContaining([nearest]) });
  expect(await ask(retired, { denyModels: [retired] })).toMatchObject({ retired: false, fallbackModels: [] });
});
