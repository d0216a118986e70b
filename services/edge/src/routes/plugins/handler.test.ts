import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Account__Output } from '@signalbox/contracts/accounts';
import { callerWith } from '../../testing/callers.js';
import { ApiErrorException } from '../api-error-exception.js';
import { answerMemory, answerPlugins, forgetMemory } from './handler.js';

const PLAIN = { id: 'memory', name: '', description: '', paid: true, kind: 'retrieval', fee_nano_usd: '0', zdr: true, data_collection_deny: true, options: {} };
const MODELS = [{ id: 'openai/painter', provider: 'openai' }, { id: 'x/painter', provider: 'azure-openai' }, { id: 'x/sketch', provider: 'simulator' }];
const plugins = { unary: () => Promise.resolve({ manifests: Buffer.from(JSON.stringify([PLAIN, { ...PLAIN, id: 'image-gen', models: MODELS }])) }) } as unknown as NonNullable<Parameters<typeof answerPlugins>[0]>;

test.each<[string, Partial<Account__Output>, readonly string[], readonly string[]]>([
  ['all, without lists', {}, [], ['openai/painter', 'x/painter', 'x/sketch']],
  ['no denied one, under any name', { denyModels: ['Painter'] }, [], ['x/sketch']],
  ['only allowed ones', { allowModels: ['openai/gpt-4o', 'x/*'] }, [], ['x/painter', 'x/sketch']],
  ['those that the key allows, too', { allowModels: ['x/*'] }, ['X/Sketch', 'openai/painter'], ['x/sketch']],
  ['all except denied ones, if the plugin chooses', { allowModels: ['auto'], denyModels: ['x/sketch'] }, [], ['openai/painter', 'x/painter']],
  ['none, if only chat models are allowed', { allowModels: ['openai/gpt-4o'] }, [], []],
  ['none of a provider that is denied', { denyProviders: ['Azure', 'simulator/fast'] }, [], ['openai/painter']],
  ['those of providers that are allowed', { allowProviders: ['azure'] }, [], ['x/painter']],
])('lists which models a plugin may use for this key: %s', async (_what, account, allowedModels, left) => {
  const key = allowedModels.length === 0 ? {} : { limits: { costCapPeriod: '', allowedModels: [...allowedModels], costCaps: [] } };
  const { data } = JSON.parse(await answerPlugins(plugins, callerWith({ account, key }))) as { readonly data: readonly { readonly id: string; readonly models?: readonly string[] }[] };
  expect(data.map(({ id, models }) => [id, models])).toEqual([['memory', undefined], ['image-gen', left]]);
});

describe('memory', () => {
  const asked: [string, object][] = [];
  beforeEach(() => void asked.splice(0));
  const keeping = { unary: (method: string, request: object) => Promise.resolve((asked.push([method, request]), method === 'DeleteMemory' ? { deleted: 2 } : { facts: [], hasMore: false })) } as unknown as typeof plugins;

  test.each([
    ['read', answerMemory, { user: 'ada', namespace: '' }, 'namespace'],
    ['deleted', forgetMemory, { user: 'ada', namespace: '' }, 'namespace'],
    ['read', answerMemory, { user: '' }, 'user'],
    ['deleted', forgetMemory, { user: '' }, 'user'],
  ] as const)('nothing is %s for an empty name, which means neither all nor the account itself', async (_what, answer, query, param) => {
    const refused = await answer(keeping, 'acct_1', query).catch((error: unknown) => error);
    expect(refused instanceof ApiErrorException ? refused.error : refused).toMatchObject({ status: 400, code: 'invalid_value', param });
    expect(asked).toEqual([]);
  });

  test('is listed in pages with their first and last id, and whether more follow', async () => {
    const facts = ['f2', 'f1'].map((id) => ({ id, text: id, namespace: 'n', createdAtMs: '1000', updatedAtMs: '2000' }));
    const listing = { unary: (_method: string, request: object) => Promise.resolve((asked.push(['', request]), { facts, hasMore: true })) } as unknown as typeof plugins;
    expect(JSON.parse(await answerMemory(listing, 'acct_1', { user: 'ada', limit: '2', after: 'f3' }))).toMatchObject({ object: 'list', data: [{ id: 'f2' }, { id: 'f1' }], has_more: true, first_id: 'f2', last_id: 'f1' });
    expect(JSON.parse(await answerMemory(keeping, 'acct_1', {}))).toMatchObject({ data: [], first_id: null, last_id: null });
    expect(asked.map(([, request]) => request)).toMatchObject([{ limit: 2, after: 'f3' }, { limit: 100, after: '' }]);
    expect(JSON.parse(await answerPlugins(plugins, callerWith()))).toMatchObject({ has_more: false, first_id: 'memory', last_id: 'image-gen' });
  });

  test('a page after an unknown or deleted fact is refused, since an empty page would look like the end', async () => {
    const lost = { unary: () => Promise.resolve({ facts: [], hasMore: false, afterUnknown: true }) } as unknown as typeof plugins;
    const refused = await answerMemory(lost, 'acct_1', { user: 'ada', after: 'f3' }).catch((error: unknown) => error);
    expect(refused instanceof ApiErrorException ? refused.error : refused).toMatchObject({ status: 400, code: 'invalid_value', param: 'after' });
  });

  test('is deleted in all namespaces if none is named', async () => {
    await forgetMemory(keeping, 'acct_1', { user: 'ada' });
    await forgetMemory(keeping, 'acct_1', { user: 'ada', namespace: 'work' });
    expect(asked).toEqual(['', 'work'].map((namespace) => ['DeleteMemory', { accountId: 'acct_1', user: 'ada', namespace }]));
  });
});
