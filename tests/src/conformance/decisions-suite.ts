/** Routing decisions, feedback on them, their replay, and what-if comparisons with another policy. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { completionOf, errorOf, header, send, type Got, type Sent } from './http.js';
import type { TestAccount, World } from './world.js';

type Json = Readonly<Record<string, unknown>>;
const jsonOf = (got: Got): Json => JSON.parse(got.text) as Json;
const PROMPTS = ['Name three rivers of Norway.', 'A farmer has 17 sheep and buys 5 more. How many sheep are there in total?', 'Which of these is a noble gas?\nA. Oxygen\nB. Neon\nC. Iron\nD. Chlorine'];
const UNKNOWN = 'dec_01JD0000000000000000000000';

export function describeDecisions(world: () => World): void {
  let account: TestAccount;
  const asks = (sent: Sent, key = account.key): Promise<Got> => send(world().gateway.baseUrl, { key, ...sent });
  const auto = (prompt: string, more: object = {}): Promise<Got> => asks({ body: { model: world().variant === 'A' ? 'auto' : 'router-auto', messages: [{ role: 'user', content: prompt }], ...more } });
  const decision = (id: string, key?: string): Promise<Got> => asks({ method: 'GET', path: `/v1/decisions/${id}` }, key);
  const feedback = (body: object, key?: string): Promise<Got> => asks({ path: '/v1/feedback', body }, key);
  const keyWith = async (scopes: readonly string[]): Promise<string> => {
    const got = await world().admin('POST', '/admin/keys', { account_id: account.id, name: 'narrow', scopes });
    return (jsonOf(got) as { key: { key: string } }).key.key;
  };
  /** Variant B has no 403. */
  const expectNoScope = (got: Got): void => expect([got.status, errorOf(got).code]).toEqual(world().variant === 'A' ? [403, 'insufficient_scope'] : [401, 'invalid_api_key']);

  describe('routing decisions', () => {
    let made: readonly { readonly id: string; readonly requestId: string }[];
    beforeAll(async () => {
      account = await world().newAccount({});
      // The provider that always answers.
      expect((await asks({ method: 'PUT', path: '/api/policy', body: { allow_providers: ['openai'] } })).status).toBe(200);
      const answers = await Promise.all(PROMPTS.map((prompt) => auto(prompt)));
      made = answers.map((got) => {
        expect(got.status).toBe(200);
        return { id: header(got, 'x-router-decision-id'), requestId: completionOf(got).id };
      });
    });
    const first = (): { readonly id: string; readonly requestId: string } => made[0] ?? { id: '', requestId: '' };

    test('200: show at once what was weighed, and why, without the prompt', async () => {
      const kinds: unknown[] = [];
      for (const { id, requestId } of made) {
        const got = await decision(id);
        expect(got.status).toBe(200);
        const body = jsonOf(got) as { candidates: readonly { model: string; quality: number; propensity: number }[]; attempts: readonly string[]; why: string; cluster: string; quality_floor: number; artefact_id: string };
        expect(body).toMatchObject({ id, request_id: requestId, object: 'decision', asked: { model: world().variant === 'A' ? 'auto' : 'router-auto' } });
        expect(body.attempts.length).toBeGreaterThan(0);
        expect(body.candidates[0]?.quality).toBeGreaterThanOrEqual(body.quality_floor);
        expect(body.artefact_id).toMatch(/^qua_/);
        expect(body.why.length).toBeGreaterThan(10);
        for (const word of ['rivers', 'farmer', 'noble']) expect(got.text).not.toContain(word);
        kinds.push(body.cluster);
      }
      expect(kinds).toEqual(['chat', 'word-problem', 'exam']);
    });

    test('401, 403: need a key of the account with the scope', async () => {
      const got = await send(world().gateway.baseUrl, { method: 'GET', path: `/v1/decisions/${first().id}` });
      expect(got.status).toBe(401);
      expectNoScope(await decision(first().id, await keyWith(['inference'])));
    });

    test('404: of another account, unknown ones, and those whose data must not be kept', async () => {
      const other = await world().newAccount({});
      const secret = await auto('Name a river.', { data_collection: 'deny' });
      expect(secret.status).toBe(200);
      for (const got of [await decision(first().id, other.key), await decision(UNKNOWN), await decision('x'), await decision(header(secret, 'x-router-decision-id') || UNKNOWN)]) {
        expect([got.status, errorOf(got).code]).toEqual([404, 'decision_not_found']);
      }
    });

    test('405: are read-only', async () => {
      expect((await asks({ method: 'DELETE', path: `/v1/decisions/${first().id}` })).status).toBe(405);
    });
  });

  describe('feedback', () => {
    test('204: is shown with the decision, and the last one counts', async () => {
      const got = await auto('Name two lakes of Finland.');
      const [id, requestId] = [header(got, 'x-router-decision-id'), completionOf(got).id];
      for (const score of [0, 0.75]) {
        expect((await feedback({ request_id: requestId, score })).status).toBe(204);
        await eventually('the score is shown', async () => (jsonOf(await decision(id))['score'] === score ? true : undefined));
      }
    });

    test('400: needs a score from 0 to 1', async () => {
      const got = await feedback({ request_id: 'chatcmpl-1', score: 2 });
      expect([got.status, errorOf(got).param]).toEqual([400, 'score']);
    });

    test('401, 403, 404, 405, 415', async () => {
      const given = { request_id: completionOf(await auto('Name a sea.')).id, score: 1 };
      const other = await world().newAccount({});
      expect((await send(world().gateway.baseUrl, { path: '/v1/feedback', body: given })).status).toBe(401);
      expectNoScope(await feedback(given, await keyWith(['usage:read'])));
      for (const got of [await feedback(given, other.key), await feedback({ ...given, request_id: 'chatcmpl-none' })]) expect([got.status, errorOf(got).code]).toEqual([404, 'request_not_found']);
      expect((await asks({ method: 'GET', path: '/v1/feedback' })).status).toBe(405);
      expect((await asks({ path: '/v1/feedback', body: 'score=1', headers: { 'content-type': 'text/plain' } })).status).toBe(415);
    });
  });

  describe('the admin port for decisions', () => {
    const whatIf = async (question: object): Promise<Json> => {
      const got = await world().admin('POST', '/admin/what-if', { account: account.id, ...question });
      expect([got.status, got.status === 200 ? '' : got.text]).toEqual([200, '']);
      return jsonOf(got);
    };
    let kept: string;
    beforeAll(async () => {
      kept = header(await auto('Name a bay.'), 'x-router-decision-id');
      await eventually('the decision is stored', async () => ((await world().admin('GET', `/admin/decisions/${kept}`)).status === 200 ? true : undefined));
    });

    test('200: replays a decision with the same plan', async () => {
      const got = await world().admin('GET', `/admin/decisions/${kept}`);
      const { attempts, replay } = jsonOf(got) as { attempts: readonly string[]; replay: Json };
      expect(jsonOf(got)).toMatchObject({ id: kept, account_id: account.id });
      expect(replay).toEqual({ same_snapshot: true, same_plan: true, attempts });
    });

    test('200: what-if without a change gives the same; with the model denied, another or none', async () => {
      const same = (await whatIf({})) as { decisions: number; compared: number; moved: number; recorded: { models: readonly { model: string }[] }; changed: Json };
      expect(same.compared).toBeGreaterThan(0);
      expect(same).toMatchObject({ moved: 0, changed: same.recorded });
      const denied = (await whatIf({ deny_models: same.recorded.models.map(({ model }) => model) })) as { compared: number; moved: number; refused: number };
      expect(denied.moved + denied.refused).toBeGreaterThanOrEqual(same.compared);
      expect(await whatIf({ limit: 1 })).toMatchObject({ decisions: 1 });
      const other = await world().newAccount({});
      expect(await whatIf({ account: other.id })).toMatchObject({ decisions: 0, compared: 0 });
    });

    test.each<[object, string]>([
      [{ mode: 'cheap' }, 'mode'], [{ lambda: -1 }, 'lambda'], [{ lambda: 'x' }, 'lambda'], [{ limit: 0 }, 'limit'], [{ limit: 50_001 }, 'limit'], [{ catalog: 'old' }, 'catalog'], [{ deny_models: 'a' }, 'deny_models'], [{ surprise: 1 }, 'surprise'],
    ])('400: what-if with %j', async (question, word) => {
      const got = await world().admin('POST', '/admin/what-if', question);
      expect([got.status, errorOf(got).message]).toEqual([400, expect.stringContaining(word)]);
    });

    test('401, 404', async () => {
      const { adminUrl } = world().gateway;
      for (const [method, path] of [['POST', '/admin/what-if'], ['GET', `/admin/decisions/${kept}`]] as const) expect((await send(adminUrl, { method, path, key: account.key, ...(method === 'POST' ? { body: {} } : {}) })).status).toBe(401);
      for (const id of [UNKNOWN, 'x']) expect((await world().admin('GET', `/admin/decisions/${id}`)).status).toBe(404);
    });
  });
}
