import { expect, test } from '@jest/globals';
import { planWith } from '../testing/callers.js';
import { refusalToApiError } from './refusals.js';

const messageFor = (model: string, variant: 'A' | 'B' = 'A'): string => refusalToApiError(planWith([], { refusal: 'MODEL_NOT_FOUND' }), model, variant).message;

test.each([
  ['openai/gpt-4o:nitro', "ask for 'openai/gpt-4o' with `provider: {\"sort\": \"throughput\"}`"],
  ['openai/gpt-4o:floor', "ask for 'openai/gpt-4o' with `provider: {\"sort\": \"price\"}`"],
  ['openai/gpt-4o:online', "ask for 'openai/gpt-4o' with `plugins: [\"web-search\"]`"],
  ['deepseek/deepseek-r1:free', "ask for 'deepseek/deepseek-r1'."],
  ['openrouter/auto', "is called 'auto' here"],
  ['@preset/mine', 'There are no presets here'],
  ['bedrock/anthropic.claude-3', '`provider.only`'],
  ['openai/gpt-4o/endpoints', 'are at GET /v1/models/openai/gpt-4o?detail=full.'],
  ['llama3.1:8b', 'GET /v1/models lists'],
])('%s, a name of another gateway, is answered with what to ask for here', (model, hint) => {
  expect(messageFor(model)).toContain(`'${model}' does not exist`);
  expect(messageFor(model)).toContain(hint);
});

test.each([
  ['gpt-4o-2024-08-06', { nearestModel: 'openai/gpt-4o' }, "Ask for 'openai/gpt-4o'."],
  ['gpt-4o:nitro', { nearestModel: 'openai/gpt-4o' }, "ask for 'openai/gpt-4o' with `provider: {\"sort\": \"throughput\"}`."],
  ['openai/gpt-4o@preset/mine', { nearestModel: 'openai/gpt-4o' }, "no presets here: what one would set stands in the request. Ask for 'openai/gpt-4o'."],
  ['azure/gpt-4o', { nearestModel: 'openai/gpt-4o', nearestProvider: 'azure-openai' }, "Ask for 'openai/gpt-4o', and for that provider alone with `provider: {\"only\": [\"azure-openai\"]}`."],
])('%s, which certainly means one model here, is answered with its name', (model, nearest, hint) => {
  const decision = planWith([], { refusal: 'MODEL_NOT_FOUND', ...nearest });
  const message = refusalToApiError(decision, model, 'A').message;
  expect(message).toContain(`'${model}' does not exist`);
  expect(message).toContain(hint);
  expect(refusalToApiError(decision, model, 'B').message).toMatch(/available to this key\. Ask for 'openai\/gpt-4o'\. GET \/v1\/models lists the names that this key may use\.$/);
});

test.each(['AUTO', ' Auto', 'router-AUTO', 'openrouter/Auto'])('%s is answered with the name of the automatic model in the variant', (model) => {
  expect(messageFor(model)).toMatch(/is called 'auto' here\.$/);
  expect(messageFor(model, 'B')).toMatch(/is called 'router-auto' here\.$/);
});

test.each(['A', 'B'] as const)('variant %s lists similar names', (variant) => {
  const decision = planWith([], { refusal: 'MODEL_NOT_FOUND', similarModels: ['openai/gpt-4o', 'openai/gpt-4o-mini'] });
  expect(refusalToApiError(decision, 'gpt-4o-mni', variant).message).toBe("The model 'gpt-4o-mni' does not exist or is not available to this key. Written alike: 'openai/gpt-4o', 'openai/gpt-4o-mini'. GET /v1/models lists the names that this key may use.");
});

test('if no provider is left, unknown provider names are listed', () => {
  const { message } = refusalToApiError(planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['provider_preferences'], ignoredParams: ['provider.only.[0]', 'models.[1]'] }), 'gpt-4o', 'A');
  expect(message).toMatch(/left out by: provider_preferences\. Of no provider that is known here: provider\.only\.\[0\]\.$/);
});

test('if no provider is left, requested providers without a credential are listed', () => {
  const { message } = refusalToApiError(planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['provider_preferences'], unsetProviders: ['azure-openai'] }), 'gpt-4o', 'A');
  expect(message).toMatch(/left out by: provider_preferences\. Asked for, and not set up here: azure-openai\.$/);
});

test('if no provider is left, requested providers without that model are listed', () => {
  const { message } = refusalToApiError(planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['provider_preferences'], unsetProviders: ['azure-openai'], absentProviders: ['groq', 'zai'] }), 'gpt-4o', 'A');
  expect(message).toMatch(/left out by: provider_preferences\. Asked for, and not set up here: azure-openai\. Asked for, and not serving any of it here: groq, zai\.$/);
});

test('if a list excludes a provider, the message says where the lists are', () => {
  const { message } = refusalToApiError(planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['allow_list', 'vision'] }), 'gpt-4o', 'A');
  expect(message).toMatch(/left out by: allow_list, vision\. 'allow_list' is the account's policy \(GET \/api\/policy\) and this key's allowed_models; GET \/v1\/models lists what both let it use\.$/);
});

test('if all parameters are required, those that are not supported are listed', () => {
  const { message } = refusalToApiError(planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['parameters'], untakenParams: ['top_p', 'seed'] }), 'claude-sonnet-4.5', 'A');
  expect(message).toMatch(/left out by: parameters\. Not taken as they are by each of its endpoints: top_p, seed\.$/);
});

test('no field that variant B lacks is recommended in it', () => {
  for (const model of ['openai/gpt-4o:nitro', 'openai/gpt-4o:online', 'azure/x']) {
    expect(messageFor(model, 'B')).toMatch(/GET \/v1\/models lists the names that this key may use\.$/);
    expect(messageFor(model, 'B')).not.toMatch(/provider|plugins/);
  }
});

test('a long name is repeated only up to the usual length', () => {
  expect(messageFor(`${'x'.repeat(5_000)}:nitro`).length).toBeLessThan(400);
});

test('a model that only lacks a credential is reported as such, with its providers, and not as unknown', () => {
  const message = refusalToApiError(planWith([], { refusal: 'MODEL_NOT_FOUND', unsetProviders: ['openai', 'azure-openai'] }), 'gpt-4o-mini', 'A').message;
  expect(message).toContain("'gpt-4o-mini' is known, but none of its providers is set up here: openai, azure-openai.");
  expect(message).not.toContain('does not exist');
});

test('if no model is served, `auto` is not reported as a wrong name', () => {
  expect(messageFor('auto')).toMatch(/^There is no model that 'auto' could choose: none is served here\./);
});
