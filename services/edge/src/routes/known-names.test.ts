import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { SettingNames } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { startDoor, type Door } from '../testing/door.js';
import { accountWith, keyWith } from '../testing/callers.js';

const NONE = { allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], models: [] };
/** Models that make images are known only to plugins. */
const MODELS = [{ id: 'no/painter', provider: 'a' }, { id: 'nobody/painter', provider: 'a' }, { id: 'no/sketch', provider: 'a' }];
let arePluginsAway: boolean;
const plugins = {
  unary: () => (arePluginsAway ? Promise.reject(new Fault('peer_unavailable', 'away')) : Promise.resolve({ manifests: Buffer.from(JSON.stringify([{ id: 'memory' }, { id: 'image-gen', models: MODELS }])) })),
} as unknown as NonNullable<Parameters<typeof startDoor>[0]>['plugins'];
let door: Door;
let asked: SettingNames[];
beforeEach(async () => {
  arePluginsAway = false;
  door = await startDoor({ plugins });
  asked = [];
  // Names that begin with `no` are unknown.
  door.routes.set('UnknownNames', (names) => {
    asked.push(names as SettingNames);
    return { ...NONE, ...Object.fromEntries(Object.entries(names as Record<string, readonly string[]>).map(([kind, list]) => [kind, list.filter((name) => name.startsWith('no'))])) };
  });
});
afterEach(() => door.stop());

async function send(method: string, path: string, body: object): Promise<{ readonly status: number; readonly code: string; readonly param: string | null; readonly message: string }> {
  const answer = await fetch(`${door.url}${path}`, { method, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly param: string | null; readonly message: string } };
  return { status: answer.status, code: error.code, param: error.param, message: error.message };
}

/** The answer after all checks have passed: the accounts service of these tests stores nothing. */
const TAKEN = { status: 503, code: 'accounts_unavailable' };

describe('an unknown name', () => {
  test.each([
    ['PUT', '/api/policy', { allow_models: ['a/one', 'no/model'] }, 'allow_models', 'no/model'],
    ['PUT', '/api/policy', { deny_models: ['no/model'] }, 'deny_models', 'no/model'],
    ['PUT', '/api/policy', { allow_providers: ['nobody'] }, 'allow_providers', 'nobody'],
    ['PUT', '/api/policy', { deny_providers: ['a', 'nobody'] }, 'deny_providers', 'nobody'],
    ['PUT', '/api/policy', { baseline_model: 'no/model' }, 'baseline_model', 'no/model'],
    ['POST', '/api/auth', { name: 'ci', limits: { allowed_models: ['no/model'] } }, 'limits.allowed_models', 'no/model'],
  ])('%s %s %j is refused by name', async (method, path, body, param, name) => {
    expect(await send(method, path, body)).toEqual({ status: 400, code: 'invalid_value', param, message: expect.stringContaining(`"${name}"`) });
  });

  test('is accepted if the setting has it already, in any capitals', async () => {
    door.accounts.add(door.key, { key: keyWith(), account: accountWith({ denyModels: ['no/More'], policyBaselineModel: 'no/base' }) });
    expect(await send('PUT', '/api/policy', { deny_models: ['No/more', 'a/one'], baseline_model: 'no/base' })).toMatchObject(TAKEN);
    expect(asked).toEqual([{ denyModels: ['a/one'] }]);
  });

  test('routing is not asked if there are no names', async () => {
    expect(await send('PUT', '/api/policy', { mode: 'economy', deny_models: [] })).toMatchObject(TAKEN);
    expect(await send('POST', '/api/auth', { name: 'ci' })).toMatchObject(TAKEN);
    expect(asked).toEqual([]);
  });

  test('is not accepted unchecked while routing is away', async () => {
    door.routes.set('UnknownNames', () => {
      throw new Fault('peer_unavailable', 'away');
    });
    expect(await send('PUT', '/api/policy', { deny_models: ['a/one'] })).toMatchObject({ status: 500, code: 'routing_unavailable' });
  });
});

describe('a model that only a plugin uses', () => {
  test.each([
    ['PUT', '/api/policy', { allow_models: ['No/Painter', 'sketch', 'no/sk*'] }],
    ['PUT', '/api/policy', { deny_models: ['no/painter', 'a/one'] }],
    ['POST', '/api/auth', { name: 'ci', limits: { allowed_models: ['no/sketch'] } }],
  ])('%s %s %j is accepted', async (method, path, body) => {
    expect(await send(method, path, body)).toMatchObject(TAKEN);
  });

  test.each([
    [{ deny_models: ['no/painter', 'no/such'] }, 'no/such'],
    [{ baseline_model: 'no/painter' }, 'no/painter'],
    [{ allow_models: ['nothing/*'] }, 'nothing/*'],
  ])('%j is refused by name', async (body, name) => {
    expect(await send('PUT', '/api/policy', body)).toMatchObject({ status: 400, code: 'invalid_value', message: expect.stringContaining(`"${name}"`) });
  });

  test('is refused while plugins are away, since it cannot be told from a misspelt one; other names are checked', async () => {
    arePluginsAway = true;
    expect(await send('PUT', '/api/policy', { deny_models: ['no/painter'] })).toMatchObject({ status: 503, code: 'overloaded' });
    expect(await send('PUT', '/api/policy', { deny_models: ['a/one'] })).toMatchObject(TAKEN);
  });
});
