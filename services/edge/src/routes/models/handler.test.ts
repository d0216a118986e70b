import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { accountWith, keyWith } from '../../testing/callers.js';
import { startDoor, type Door } from '../../testing/door.js';

let door: Door;
beforeEach(async () => {
  door = await startDoor();
});
afterEach(() => door.stop());

const NOTHING = { models: [], unsetProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], retired: false, fallbackModels: [] };

test.each([
  ['a dated name', 'gpt-4o-2024-08-06', { nearestModel: 'openai/gpt-4o' }, "does not exist or is not available to this key. Ask for 'openai/gpt-4o'."],
  ['a name with a provider', 'azure/gpt-4o', { nearestModel: 'openai/gpt-4o', nearestProvider: 'azure-openai' }, '`provider: {"only": ["azure-openai"]}`'],
  ['a model of a provider that is not set up', 'x-ai/grok-4.3', { unsetProviders: ['xai'] }, 'none of its providers is set up here: xai.'],
  ['an unknown name', 'maker/none', {}, 'GET /v1/models lists the names that this key may use.'],
])('for a model that is not listed the error names what to ask for, as for a completion: %s', async (_what, model, found, hint) => {
  const asked: unknown[] = [];
  door.routes.set('ListModels', (message) => {
    asked.push(message['model']);
    return { ...NOTHING, ...found };
  });
  const answer = await door.get(`/v1/models/${model}`);
  expect(await answer.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model', message: expect.stringContaining(hint) } });
  expect([answer.status, asked]).toEqual([404, [model]]);
});

test('for a model that is no longer served the error says so and names another, as for a completion', async () => {
  door.routes.set('ListModels', () => ({ ...NOTHING, nearestModel: 'maker/near', retired: true, fallbackModels: ['maker/two'] }));
  const answer = await door.get('/v1/models/maker/one');
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'model_deprecated', param: 'model', message: "The model 'maker/one' is no longer served.", metadata: { fallback_models: ['maker/two'] } } }]);
});

test.each(['/v1/models?detail=ful', '/v1/models?detail=', '/v1/models?detail=full&detail=full', '/v1/models/maker/one?detail=1'])('an unknown value of `detail` is refused and not ignored: %s', async (path) => {
  door.routes.set('ListModels', () => NOTHING);
  const answer = await door.get(path);
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'invalid_value', param: 'detail', message: "detail must be 'full', or absent for ids and makers alone." } }]);
});

test('other parameters are ignored', async () => {
  door.routes.set('ListModels', () => NOTHING);
  expect((await door.get('/v1/models?api-version=2024-06-01')).status).toBe(200);
});

test('a name of any length is repeated only in part', async () => {
  door.routes.set('ListModels', () => NOTHING);
  const { error } = (await (await door.get(`/v1/models/${'x'.repeat(2_000)}`)).json()) as { error: { message: string } };
  expect(error.message).toContain(`'${'x'.repeat(128)}'`);
});

test('routing is told the account’s own credentials, with their zero-retention agreements and own addresses', async () => {
  const key = makeApiKey(randomBytes);
  const own = { accountId: 'acct_1', last4: '', baseUrl: '', createdAt: '1' };
  door.accounts.add(key, { key: keyWith(), account: accountWith({ providerKeys: [{ ...own, handle: 'cred_1', provider: 'openai', zdr: true }, { ...own, handle: 'cred_2', provider: 'mistral', zdr: false, baseUrl: 'https://models.example.com' }] }) });
  const asked: unknown[] = [];
  door.routes.set('ListModels', ({ byokProviders, byokZdrProviders, byokOwnAddressProviders }) => {
    asked.push({ byokProviders, byokZdrProviders, byokOwnAddressProviders });
    return NOTHING;
  });
  await door.get('/v1/models', { headers: { authorization: `Bearer ${key}` } });
  expect(asked).toEqual([{ byokProviders: ['openai', 'mistral'], byokZdrProviders: ['openai'], byokOwnAddressProviders: ['mistral'] }]);
});
