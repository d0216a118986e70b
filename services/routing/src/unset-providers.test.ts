import { afterEach, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

let stop = async (): Promise<void> => Promise.resolve();
afterEach(() => stop());

test('of providers that a request keeps to, those that lack nothing but a credential are told, and those that have no such model', async () => {
  const service = composeRouting(loadRoutingConfig({ PROVIDERS: 'openai,deepinfra' }), { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }) });
  await service.start();
  const client = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  stop = async () => {
    await client.close();
    await service.stop();
  };
  const lacking = async (provider: NonNullable<DecideRequest['provider']>, over: Partial<DecideRequest> = {}): Promise<{ readonly unset: readonly string[]; readonly absent: readonly string[] }> => {
    const { refusal, unsetProviders, absentProviders } = await client.unary<DecideRequest, DecideResponse__Output>('Decide', { model: 'openai/gpt-4o', promptTokens: 12, seed: 7, provider, ...over });
    expect(refusal).toBe('NO_ELIGIBLE_PROVIDER');
    return { unset: unsetProviders, absent: absentProviders };
  };
  const unset = async (...asked: Parameters<typeof lacking>): Promise<readonly string[]> => (await lacking(...asked)).unset;
  expect(await unset({ only: ['azure'] })).toEqual(['azure-openai']);
  expect(await unset({ only: ['azure'] }, { model: 'auto' })).toEqual(['azure-openai']);
  expect(await unset({ order: ['Azure', 'openrouter'], allowFallbacks: false })).toEqual(['azure-openai', 'openrouter']);
  expect(await unset({ only: ['groq', 'deepinfra', 'azure'], maxPricePrompt: '1' }, { models: ['openai/gpt-oss-20b'] })).toEqual(['groq', 'azure-openai']);
  // A provider without the model is absent; an unknown provider is reported elsewhere.
  expect(await lacking({ only: ['groq', 'azure', 'nobody'] })).toEqual({ unset: ['azure-openai'], absent: ['groq'] });
  expect(await lacking({ only: ['deepinfra'] })).toEqual({ unset: [], absent: ['deepinfra'] });
  expect(await lacking({ order: ['groq', 'deepinfra'], allowFallbacks: false, maxPricePrompt: '1' }, { models: ['openai/gpt-oss-20b'] })).toEqual({ unset: ['groq'], absent: [] });
  // A provider with a credential is not the reason.
  expect(await lacking({ only: ['openai'], maxPricePrompt: '1' })).toEqual({ unset: [], absent: [] });
  expect(await unset({ ignore: ['openai'] })).toEqual([]);
  // A provider that the account's policy forbids would not be used even with a credential.
  expect(await unset({ only: ['azure'] }, { denyProviders: ['azure'] })).toEqual([]);
  expect(await unset({ only: ['azure'] }, { denyModels: ['openai/gpt-4o'] })).toEqual([]);
  expect(await lacking({ only: ['groq'] }, { denyProviders: ['groq'] })).toEqual({ unset: [], absent: [] });
  expect(await lacking({ only: ['groq'] }, { denyModels: ['openai/gpt-4o'] })).toEqual({ unset: [], absent: [] });
});
