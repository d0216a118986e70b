/** Providers and models that an account denies while its request runs are no longer asked. */
import { describe, expect, test } from '@jest/globals';
import { callerWith, plannedAt, planWith } from '../testing/callers.js';
import { answersWith, fails } from '../testing/scripts.js';
import { calling, ours, saying, story as roundsStory } from '../testing/rounds-story.js';
import { story } from '../testing/story.js';
import type { FakeNeighbours, Script } from '../testing/neighbours.js';
import type { ChatRequest } from './chat-request.js';
import { conduct } from './conduct.js';
import type { Caller } from './ports.js';

type Terms = Parameters<typeof callerWith>[0];

const limits = (...allowedModels: readonly string[]) => ({ limits: { costCapPeriod: '', allowedModels: [...allowedModels], costCaps: [] } });
const credential = (handle: string) => ({ handle, accountId: 'acct_1', provider: 'b', last4: '', zdr: false, baseUrl: '', createdAt: '1' });

/** Fails after the account has changed its lists. */
const failsOnce = (neighbours: () => FakeNeighbours, present: Caller): Script => (call) => {
  neighbours().present = present;
  fails('PROVIDER_ERROR')(call);
};

/** A plan over `a`, `b` and `c`, of which the first fails while the account's lists become `now`. */
async function failover(now: Terms, { before = {}, request = {}, byok = false }: { readonly before?: Terms; readonly request?: Partial<ChatRequest>; readonly byok?: boolean } = {}) {
  const told = story({ a: (call) => failsOnce(() => told.neighbours, callerWith(now))(call), b: fails('PROVIDER_ERROR'), c: answersWith('x') }, { request, caller: callerWith(before) });
  told.neighbours.plan = planWith([plannedAt('a', { byok }), plannedAt('b', { model: 'maker/Other', modelAliases: ['other-of-may'], byok }), plannedAt('c', { model: 'maker/third', byok })]);
  const { result } = await told.run();
  return { ...told, result, asked: told.neighbours.calls.map(({ provider }) => provider) };
}

describe('a failover', () => {
  test.each<[string, Terms, Parameters<typeof failover>[1]]>([
    ['the provider denied', { account: { denyProviders: ['b'] } }, {}],
    ['the provider denied in other letters', { account: { denyProviders: ['B/eu'] } }, {}],
    ['other providers allowed', { account: { allowProviders: ['a', 'C'] } }, {}],
    ['the model denied', { account: { denyModels: ['Maker/other'] } }, {}],
    ['the model denied by its bare id', { account: { denyModels: ['other'] } }, {}],
    ['the model denied by another name', { account: { denyModels: ['other-of-May'] } }, {}],
    ['the model denied by a prefix', { account: { denyModels: ['maker/o*'] } }, {}],
    ['other models allowed to the account', { account: { allowModels: ['maker/m', 'third'] } }, {}],
    ['other models allowed to the key', { key: limits('maker/m', 'third') }, {}],
    ['other models allowed beside auto', { account: { allowModels: ['auto', 'maker/third'] } }, {}],
    ['the credential taken away', {}, { before: { account: { providerKeys: [credential('cred_1')] } }, byok: true }],
    ['the credential set anew', { account: { providerKeys: [credential('cred_2')] } }, { before: { account: { providerKeys: [credential('cred_1')] } }, byok: true }],
  ])('leaves out what the account has denied meanwhile: %s', async (_what, now, setting) => {
    const { asked, result } = await failover(now, setting);
    expect([asked, result]).toEqual([['a', 'c'], 'answered']);
  });

  test.each<[string, Terms, Parameters<typeof failover>[1]]>([
    ['nothing was changed', {}, {}],
    ['others were denied', { account: { denyModels: ['maker/else', 'otter'], denyProviders: ['d'] } }, {}],
    ['the account allows it', { account: { allowModels: ['other-of-may', 'maker/*'], allowProviders: ['a', 'b', 'c'] } }, {}],
    ['auto may choose among all', { account: { allowModels: ['auto'] } }, {}],
    ['the list is unchanged, whatever its names mean', { account: { allowModels: ['name-of-the-catalog'], denyProviders: ['d'] } }, { before: { account: { allowModels: ['name-of-the-catalog'] } } }],
    ['the key was revoked', { key: { status: 'revoked' } }, {}],
    ['the account was suspended', { account: { suspended: true } }, {}],
    ['a credential was added that no attempt uses', { account: { providerKeys: [credential('cred_1')] } }, {}],
  ])('follows the plan if %s', async (_what, now, setting) => {
    expect((await failover(now, setting)).asked).toEqual(['a', 'b', 'c']);
  });

  test('does not happen for a model by name once the account allows only auto', async () => {
    const named = await failover({ account: { allowModels: ['auto'] } }, { request: { model: 'maker/m', models: ['maker/other'] } });
    expect(named.asked).toEqual(['a']);
  });

  test('without an allowed attempt left tells the client what failed, and nothing is charged', async () => {
    const { answer, asked, neighbours } = await failover({ account: { allowProviders: ['a'] } });
    expect(asked).toEqual(['a']);
    expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ provider: 'a', failed: { class: 'PROVIDER_ERROR' } }] });
    expect([neighbours.outcomes, neighbours.released]).toEqual([['a#1 DISCARDED'], []]);
  });

  test('is filtered, but not the first attempt', async () => {
    const { neighbours, run } = story({ a: answersWith('x'), b: answersWith('y') });
    await run();
    const { fake, run: runRounds } = roundsStory({ rounds: [(call) => call.play(...saying())] });
    await runRounds();
    // That request had plugins, which take time.
    expect([neighbours.presentAsked, fake.presentAsked]).toEqual([0, 1]);
  });
});

test('after plugins ran uses the lists of that moment', async () => {
  const { fake, neighbours, turn } = roundsStory({ rounds: [(call) => call.play(...saying())] });
  const { plugins } = neighbours;
  if (plugins === undefined) throw new Error('There are plugins.');
  const prepare: typeof plugins.prepare = (asked, signal) => {
    fake.present = callerWith({ account: { denyProviders: ['b'] } });
    return plugins.prepare(asked, signal);
  };
  await conduct({ ...neighbours, plugins: { ...plugins, prepare } }, turn);
  expect(fake.decided).toMatchObject([{ denyProviders: ['b'] }]);
});

describe('later rounds', () => {
  /** Its first round calls a tool, during which the account's lists become `now`. */
  function rounds(now: Terms) {
    const changes: Script = (call) => {
      told.fake.present = callerWith(now);
      call.play(...calling(ours()));
    };
    const told = roundsStory({ providers: ['a', 'b'], rounds: [changes, (call) => call.play(...saying())] });
    return told;
  }

  test('use providers that are still allowed', async () => {
    const { fake, run } = rounds({ account: { denyProviders: ['a'] } });
    expect((await run()).result).toBe('answered');
    expect(fake.calls.map(({ provider }) => provider)).toEqual(['a', 'b']);
  });

  test('are refused like a new request if none is allowed, and nothing is charged', async () => {
    const { fake, answer, run } = rounds({ account: { denyModels: ['maker/m'] } });
    expect((await run()).result).toBe('refused');
    expect(fake.calls).toHaveLength(1);
    expect(answer.refusal).toMatchObject({ kind: 'routing', decision: { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['allow_list'] } });
    expect(fake.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test('and their tools are bound by the present lists', async () => {
    const { ran, run } = rounds({ account: { denyModels: ['openai/gpt-image-1'], denyProviders: ['openai'], providerKeys: [credential('cred_9')] } });
    expect((await run()).result).toBe('answered');
    expect(ran).toMatchObject([{ deniedProviders: ['openai'], models: { denied: ['openai/gpt-image-1'] }, ownCredentials: [{ handle: 'cred_9' }] }]);
  });
});
