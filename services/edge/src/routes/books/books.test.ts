import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import { randomBytes } from 'node:crypto';
import { keyWith, accountWith } from '../../testing/callers.js';
import { startDoor, type Door } from '../../testing/door.js';
import { statementCsv } from './schema.js';

let door: Door;
let key: string;
let asked: Readonly<Record<string, unknown>>[];
beforeEach(async () => {
  door = await startDoor();
  key = makeApiKey(randomBytes);
  asked = [];
  door.accounts.add(key, { key: keyWith({ scopes: ['usage:read'] }), account: accountWith() });
});
afterEach(() => door.stop());

const answer = (method: string, body: object): void => void door.books.set(method, (message) => (asked.push(message), body));
const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Response> => fetch(`${door.url}/api${path}`, { method, headers: { authorization: `Bearer ${key}`, ...headers } });
const line = { kind: 'overage', description: 'Tokens, "more"', model: '', provider: '', requestId: '', tokens: '1000001', requests: '0', amountNanoUsd: '400000' };
const bill = {
  found: true, status: 'closed', startMs: '1793491200000', endMs: '1796083200000', closedAtMs: '1796083300000', tier: 'team', variant: 'A', subscriptionNanoUsd: '99000000000', includedTokens: '10000000', overageNanoUsdPerMillion: '400000000',
  usedTokens: '11000001', overageTokens: '1000001', overageNanoUsd: '400000', modelSpendNanoUsd: '12345678900', pluginsNanoUsd: '0', adjustmentsNanoUsd: '-1', trialCreditNanoUsd: '0', totalNanoUsd: '111346078899', lines: [line],
};

test.each(['/usage', '/requests', '/requests/chatcmpl-1', '/statements', '/statements/2026-11'])('%s needs the scope usage:read, has only GET, and is 503 while billing is away', async (path) => {
  expect((await get(path)).status).toBe(503);
  for (const method of ['POST', 'OPTIONS']) expect((await get(path, {}, method)).status).toBe(405);
  const other = makeApiKey(randomBytes);
  door.accounts.add(other, { key: keyWith({ scopes: ['inference', 'keys'] }), account: accountWith() });
  const refused = await get(path, { authorization: `Bearer ${other}` });
  expect([refused.status, (await refused.json()) as unknown]).toMatchObject([403, { error: { code: 'insufficient_scope' } }]);
  expect((await fetch(`${door.url}/api${path}`)).status).toBe(401);
});

describe('usage', () => {
  test('gives exact amounts, signed savings and latency if known, and only of the caller’s account', async () => {
    answer('Usage', { rows: [{ group: 'm', requests: '2', promptTokens: '3', completionTokens: '4', costNanoUsd: '9007199254740993', chargeNanoUsd: '10', savingsNanoUsd: '-5', totalMsP50: 900, totalMsP95: 4000, ttftMsP50: 0, ttftMsP95: 0 }], hasMore: true });
    const response = await get('/usage?group_by=model&from=2026-11-01&to=2026-11-30&limit=1&model=m&provider=p&key=key_1');
    expect(await response.text()).toBe('{"object":"list","data":[{"model":"m","requests":2,"prompt_tokens":3,"completion_tokens":4,"cost_usd":9007199.254740993,"charge_usd":0.00000001,"savings_usd":-0.000000005,"latency_ms_p50":900,"latency_ms_p95":4000,"time_to_first_token_ms_p50":null,"time_to_first_token_ms_p95":null}],"has_more":true,"first_id":"m","last_id":"m"}');
    const other = await get('/usage?account_id=acct_other');
    expect([other.status, (await other.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'account_id' } }]);
    expect(asked).toEqual([{ accountId: accountWith().id, fromMs: String(Date.UTC(2026, 10, 1)), toMs: String(Date.UTC(2026, 11, 1)), groupBy: 'model', after: '', limit: 1, model: 'm', provider: 'p', keyId: 'key_1', order: '' }]);
  });

  test.each(['from=x', 'from=2026-02-31', 'to=-1', 'from=9999999999999', 'group_by=account', 'limit=0', 'limit=101', 'limit=1.5', 'after=a&after=b', 'after=a', 'after=2026-11-1', 'after=openai/gpt-4o&group_by=key', 'order=name', 'key=', 'model=', 'provider=', 'from=', 'to=', 'group_by=', 'after=a&order=cost', 'from=2026-11-03&to=2026-11-02', 'from=1793491201&to=1793491200', 'from=2026-11-03T00:00:01Z&to=2026-11-02'])('refuses %s without asking billing', async (query) => {
    answer('Usage', { rows: [], hasMore: false });
    const response = await get(`/usage?${query}`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: query.split('=')[0] } }]);
    expect(asked).toEqual([]);
  });
});

describe.each([['/usage', 'Usage', 'rows'], ['/requests', 'Requests', 'requests']])('%s of one key', (path, method, list) => {
  let looked: unknown[];
  const known = (isThere: boolean): void => {
    looked = [];
    answer(method, { [list]: [], hasMore: false, afterUnknown: false });
    const { unary } = door.accounts;
    door.accounts.unary = <Message extends object, Answer>(name: string, message: Message, options: never) => (name === 'GetKey' ? (looked.push(message), Promise.resolve({ found: isThere } as Answer)) : unary<Message, Answer>(name, message, options));
  };

  test.each(['key_nobodys', 'ci', makeApiKey(randomBytes)])('by an unknown id is refused, and the error does not repeat it', async (given) => {
    known(false);
    const response = await get(`${path}?key=${given}`);
    const body = await response.text();
    expect([response.status, JSON.parse(body) as unknown, body.includes(given)]).toMatchObject([400, { error: { code: 'invalid_value', param: 'key' } }, false]);
    expect(looked).toEqual([{ accountId: accountWith().id, keyId: given }]);
  });

  test('that was not used is empty and no error, also while accounts is away', async () => {
    known(true);
    expect(await (await get(`${path}?key=key_2`)).json()).toMatchObject({ data: [] });
    answer(method, { [list]: [], hasMore: false, afterUnknown: false });
    door.accounts.unary = () => Promise.reject(new Fault('peer_unavailable', 'away'));
    expect(await (await get(`${path}?key=key_2`)).json()).toMatchObject({ data: [] });
  });
});

describe('requests', () => {
  test('an unknown request, or one of another account, is 404', async () => {
    answer('GetRequest', { found: false, request: null, attempts: [], adjustments: [], period: '' });
    const response = await get('/requests/chatcmpl-1');
    expect([response.status, (await response.json()) as unknown]).toMatchObject([404, { error: { code: 'request_not_found' } }]);
    expect(asked).toEqual([{ accountId: accountWith().id, requestId: 'chatcmpl-1' }]);
  });

  const attempt = { attempt: 1, provider: 'p', model: 'm', endpointId: 'p:m', httpStatus: 200, failure: '', charged: true, byok: false, source: 'provider', flags: [], costNanoUsd: '10000345', savingsNanoUsd: '0', cardId: 'p:m@1+plugins.10000300+bought.p.10000000', totalMs: 2, ttftMs: 1, finishReason: 'stop', startedAtMs: '1', endedAtMs: '2' };
  const request = { id: 'chatcmpl-1', startedAtMs: '1', atMs: '2', keyId: '', model: 'm', provider: 'p', status: 'completed', byok: false, promptTokens: '1', completionTokens: '1', costNanoUsd: '10000345', chargeNanoUsd: '10000345', savingsNanoUsd: '0', totalMs: 2, ttftMs: 1, finishReason: 'stop', routedFrom: 'm', decisionId: '', source: 'provider' };

  test('each attempt shows the fees of plugins within its cost', async () => {
    answer('GetRequest', { found: true, request, attempts: [attempt, { ...attempt, attempt: 2, costNanoUsd: '45', cardId: 'p:m@1' }, { ...attempt, attempt: 3, costNanoUsd: '0' }], adjustments: [], period: '2026-11' });
    const { attempts } = (await (await get('/requests/chatcmpl-1')).json()) as { readonly attempts: readonly { readonly cost_usd: number; readonly plugins_usd: number }[] };
    expect(attempts.map(({ cost_usd, plugins_usd }) => [cost_usd, plugins_usd])).toEqual([[0.010000345, 0.0100003], [0.000000045, 0], [0, 0]]);
  });

  test('an attempt without a token has no time to the first one', async () => {
    const refused = { ...attempt, httpStatus: 500, failure: 'PROVIDER_ERROR', charged: false, tokens: { inputUncached: 0, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 } };
    const cut = { ...refused, attempt: 2, httpStatus: 200, failure: 'PROVIDER_DISCONNECTED', tokens: { ...refused.tokens, outputText: 3 } };
    const firsts = async (status: string): Promise<unknown> => {
      answer('GetRequest', { found: true, request: { ...request, status }, attempts: [refused, cut, attempt], adjustments: [], period: '2026-11' });
      const { time_to_first_token_ms: whole, attempts } = (await (await get('/requests/chatcmpl-1')).json()) as { readonly time_to_first_token_ms: number | null; readonly attempts: readonly { readonly time_to_first_token_ms: number | null }[] };
      return [whole, attempts.map((each) => each.time_to_first_token_ms)];
    };
    expect([await firsts('failed'), await firsts('completed')]).toEqual([[null, [null, 1, 1]], [1, [null, 1, 1]]]);
  });

  test('names the bound that a long value exceeds', async () => {
    expect(await (await get(`/requests?from=${'1'.repeat(301)}`)).json()).toMatchObject({ error: { param: 'from', message: 'from must not have more than 300 characters.' } });
    expect(await (await get('/requests?from=1&from=2')).json()).toMatchObject({ error: { param: 'from', message: 'from must be given once.' } });
  });

  test.each(['key=', 'model=', 'provider=', 'status=', 'from=', 'to='])('refuses %s, which would filter nothing, without asking billing', async (query) => {
    answer('Requests', { requests: [], hasMore: false, afterUnknown: false });
    const response = await get(`/requests?${query}`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: query.slice(0, -1), message: expect.stringContaining('must not be empty') } }]);
    expect(asked).toEqual([]);
  });

  test.each(['from=2026-11-03&to=2026-11-02', 'from=1793491201&to=1793491200'])('refuses %s without asking billing', async (query) => {
    answer('Requests', { requests: [], hasMore: false, afterUnknown: false });
    const response = await get(`/requests?${query}`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'from', message: 'from must not be after to.' } }]);
    expect(asked).toEqual([]);
  });

  test('explains how to write an offset whose plus sign was lost', async () => {
    expect(await (await get('/requests?from=2026-11-28T17:00:00+05:30')).json()).toMatchObject({ error: { param: 'from', message: 'from must be Unix seconds or an ISO 8601 date; in a query the + of an offset is written %2B.' } });
    expect(await (await get('/requests?from=yesterday')).json()).toMatchObject({ error: { param: 'from', message: 'from must be Unix seconds or an ISO 8601 date.' } });
  });

  test('one day, and one instant, are valid spans', async () => {
    answer('Requests', { requests: [], hasMore: false, afterUnknown: false });
    for (const query of ['from=2026-11-02&to=2026-11-02', 'from=1793491200&to=1793491200']) expect((await get(`/requests?${query}`)).status).toBe(200);
  });

  test('a page after an unknown id is refused', async () => {
    answer('Requests', { requests: [], hasMore: false, afterUnknown: true });
    for (const query of ['after=x', 'after=x&model=unknown']) expect(await (await get(`/requests?${query}`)).json()).toMatchObject({ error: { param: 'after' } });
    expect((await get('/requests?status=odd')).status).toBe(400);
  });
});

describe.each([['/usage', 'Usage', 'rows'], ['/requests', 'Requests', 'requests']])('%s of one provider', (path, method, list) => {
  const row = { group: 'azure-openai', id: 'chatcmpl-1', requests: '1', promptTokens: '0', completionTokens: '0', costNanoUsd: '0', chargeNanoUsd: '0', savingsNanoUsd: '0', totalMsP50: 0, totalMsP95: 0, ttftMsP50: 0, ttftMsP95: 0, atMs: '0', finishReason: '', routedFrom: '', decisionId: '', keyId: '', model: '', provider: '' };
  let looked: unknown[];
  const found = (rows: readonly object[], unknown: readonly string[] = []): void => {
    looked = [];
    answer(method, { [list]: rows, hasMore: false, afterUnknown: false });
    door.routes.set('UnknownNames', ({ allowProviders }) => (looked.push(allowProviders), { allowModels: [], denyModels: [], allowProviders: unknown, denyProviders: [], models: [] }));
  };

  test.each([['azure', 'azure-openai'], ['OpenAI', 'openai'], ['vertex_ai', 'google-vertex'], ['Amazon%20Bedrock', 'amazon-bedrock'], ['my_host', 'my_host']])('accepts the name that another gateway uses: %s', async (name, provider) => {
    found([row]);
    expect((await get(`${path}?provider=${name}`)).status).toBe(200);
    expect([asked, looked]).toMatchObject([[{ provider }], []]);
  });

  test('by a name of two providers is refused, naming both, without asking billing', async () => {
    found([row]);
    const response = await get(`${path}?provider=Google`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'provider', message: expect.stringContaining('google-vertex, google-ai-studio') } }]);
    expect(asked).toEqual([]);
  });

  test('by an unknown name is refused if nothing was found under it', async () => {
    found([], ['azzure']);
    const response = await get(`${path}?provider=azzure`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'provider', message: 'provider: "azzure" is the name of no provider.' } }]);
    found([], []);
    expect(await (await get(`${path}?provider=openai`)).json()).toMatchObject({ data: [] });
    // The catalog may no longer have it.
    found([row], ['bygone']);
    expect([(await get(`${path}?provider=bygone`)).status, looked]).toEqual([200, []]);
  });

  test('is answered while routing is away', async () => {
    found([]);
    door.routes.set('UnknownNames', () => { throw new Fault('routing_unavailable', 'away'); });
    expect((await get(`${path}?provider=azzure`)).status).toBe(200);
  });
});

describe.each(['/usage', '/requests'])('%s of one model', (path) => {
  const row = { group: 'openai/gpt-4o-mini', id: 'chatcmpl-1', requests: '1', promptTokens: '0', completionTokens: '0', costNanoUsd: '0', chargeNanoUsd: '0', savingsNanoUsd: '0', totalMsP50: 0, totalMsP95: 0, ttftMsP50: 0, ttftMsP95: 0, atMs: '0', finishReason: '', routedFrom: '', decisionId: '', keyId: '', model: '', provider: '' };
  let looked: unknown[];
  beforeEach(() => {
    looked = [];
    const booked = ({ model, fromMs }: Readonly<Record<string, unknown>>): readonly object[] => (model === 'openai/gpt-4o-mini' || model === 'gone/model' || (model === 'gone/lately' && fromMs === undefined) ? [row] : []);
    for (const each of ['Usage', 'Requests']) door.books.set(each, (message) => (asked.push(message), { [each === 'Usage' ? 'rows' : 'requests']: booked(message), hasMore: false, afterUnknown: false }));
    door.routes.set('FindModel', ({ name }) => (looked.push(name), { id: ({ 'gpt-4o-mini': 'openai/gpt-4o-mini', 'openai/gpt-4o': 'openai/gpt-4o' } as Readonly<Record<string, string>>)[String(name)] ?? '' }));
  });
  const found = async (query: string): Promise<unknown> => ((await (await get(`${path}?${query}`)).json()) as { readonly data: readonly object[] }).data.length;

  test('accepts any name that a request may use, page after page', async () => {
    const after = path === '/usage' ? '2026-11-09' : 'chatcmpl-9';
    expect(await found(`model=gpt-4o-mini&after=${after}`)).toBe(1);
    expect(asked).toMatchObject([{ model: 'gpt-4o-mini', after }, { model: 'openai/gpt-4o-mini', after, accountId: accountWith().id }]);
  });

  test('by its id needs no look-up if it was used, even if the catalog no longer has it', async () => {
    expect([await found('model=openai/gpt-4o-mini'), await found('model=gone/model'), looked]).toEqual([1, 1, []]);
  });

  test('that was not used then is empty and no error, whether it is in the catalog or was used at another time', async () => {
    expect([await found('model=openai/gpt-4o'), await found('model=gone/lately&from=2026-11-01')]).toEqual([0, 0]);
  });

  test.each(['opnai/gpt-4o', 'gpt-4o-mni', 'auto', 'router-auto'])('by an unknown name is refused: %s', async (name) => {
    const response = await get(`${path}?model=${name}&from=2026-11-01`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'model', message: expect.stringContaining(name) } }]);
  });

  test('while routing is away is answered for an id, and refused for a name that cannot be looked up', async () => {
    door.routes.set('FindModel', () => { throw new Fault('routing_unavailable', 'away'); });
    expect(await found('model=openai/gpt-4o')).toBe(0);
    const response = await get(`${path}?model=gpt-4o-mini`);
    expect([response.status, (await response.json()) as unknown]).toMatchObject([500, { error: { code: 'routing_unavailable' } }]);
  });
});

describe('statements', () => {
  test('as JSON, exact to the nano-dollar', async () => {
    answer('Statement', bill);
    const response = await get('/statements/2026-11');
    expect(response.headers.get('vary')).toContain('Accept');
    expect(await response.text()).toContain('"overage_usd":0.0004,"model_spend_usd":12.3456789,"plugins_usd":0,"adjustments_usd":-0.000000001,"trial_credit_usd":0,"total_usd":111.346078899,"lines":[{"kind":"overage"');
  });

  test('as CSV on request', async () => {
    answer('Statement', bill);
    const response = await get('/statements/2026-11', { accept: 'text/csv' });
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(await response.text()).toBe(
      'period,kind,description,model,provider,request_id,tokens,requests,amount_usd\r\n2026-11,overage,"Tokens, ""more""",,,,1000001,0,0.000400000\r\n2026-11,total,,,,,11000001,,111.346078899\r\n',
    );
  });

  test('a page after an unknown id is refused', async () => {
    answer('Periods', { periods: [], hasMore: false, afterUnknown: true });
    const response = await get('/statements?after=zzz');
    expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { code: 'invalid_value', param: 'after' } }]);
  });

  test('no cell can be read as a formula', () => {
    expect(statementCsv('2026-11', { ...bill, lines: [{ ...line, description: '=1+1', model: '@x' }] } as never)).toContain(",'=1+1,'@x,");
  });

  test('an invalid period is 404, without asking billing', async () => {
    answer('Statement', bill);
    const response = await get('/statements/..%2f2026');
    expect([response.status, (await response.json()) as unknown]).toMatchObject([404, { error: { code: 'statement_not_found' } }]);
    expect(asked).toEqual([]);
  });
});
