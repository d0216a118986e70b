import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { ADMIN_TOKEN, startAdmin, type AdminDoor } from '../../testing/admin.js';

let door: AdminDoor;
let asked: string[];
/** The answer of every other service, if set. */
let fault: Error | undefined;
beforeEach(async () => {
  asked = [];
  fault = undefined;
  door = await startAdmin((method) => {
    asked.push(method);
    if (fault !== undefined) throw fault;
    return { account: null, key: null, found: false, problem: 'refused by the neighbour' };
  });
});
afterEach(() => door.stop());

async function call(method: string, path: string, body?: string, headers?: Readonly<Record<string, string>>): Promise<{ readonly status: number; readonly message: string }> {
  const answer = await door.call(method, path, { body, ...(headers === undefined ? {} : { headers }) });
  const { error } = (await answer.json()) as { readonly error: { readonly message: string } };
  return { status: answer.status, message: error.message };
}

describe('the admin port', () => {
  test.each([[{}], [{ authorization: 'Bearer ' }], [{ authorization: ADMIN_TOKEN }], [{ authorization: `Bearer ${ADMIN_TOKEN} ` + 'x' }], [{ cookie: `signalbox=${ADMIN_TOKEN}` }]])('refuses requests with %j on every path', async (headers) => {
    for (const [method, path] of [['GET', '/admin/accounts'], ['POST', '/admin/keys'], ['GET', '/nothing'], ['GET', '/admin/accounts/%00']] as const) expect((await call(method, path, undefined, headers)).status).toBe(401);
    expect(asked).toEqual([]);
  });

  test.each([
    ['an empty list of scopes', 'POST', '/admin/keys', '{"account_id":"acct_1","name":"n","scopes":[]}', 400, /^scopes: /],
    ['a blank name', 'POST', '/admin/accounts', '{"name":"  ","tier":"team"}', 400, /^name: must be one line that is not blank/],
    ['an invisible name', 'POST', '/admin/accounts', '{"name":"\u200b","tier":"team"}', 400, /^name: must be one line that is not blank/],
    ['a name of two lines', 'PATCH', '/admin/accounts/acct_1', '{"name":"a\\nb"}', 400, /^name: must be one line that is not blank/],
    ['a name that moves the cursor', 'POST', '/admin/accounts', '{"name":"a\\u001b[2J","tier":"team"}', 400, /^name: must be one line that is not blank/],
    ['a field that is not known', 'PATCH', '/admin/accounts/acct_1', '{"suspended":true}', 400, /^suspended: there is no such field\. It takes name, .*\bcost_caps\b.*\.$/],
    ['a compromised key that is not said to be one', 'DELETE', '/admin/keys/key_1?compromised=1', undefined, 400, /compromised/],
    ['a switch that is misspelt', 'DELETE', '/admin/keys/key_1?compromized=true', undefined, 400, /compromised/],
    ['a switch that is given twice', 'DELETE', '/admin/keys/key_1?compromised=true&compromised=true', undefined, 400, /compromised/],
    ['a NUL in a body', 'POST', '/admin/accounts', '{"name":"a\\u0000","tier":"team"}', 400, /NUL/],
    ['half a surrogate pair in a body', 'PATCH', '/admin/accounts/acct_1', '{"baseline_model":"\\ud800"}', 400, /surrogate/],
    ['a NUL in a path', 'GET', '/admin/accounts/%00', undefined, 400, /NUL/],
    ['a NUL in a query', 'GET', '/admin/ledger?account=%00', undefined, 400, /NUL/],
    ['a ledger span that ends before it begins', 'GET', '/admin/ledger?account=acct_1&from_ms=2&to_ms=1', undefined, 400, /^from_ms must not be after to_ms\.$/],
    ['a ledger span with an invalid start', 'GET', '/admin/ledger?account=acct_1&from_ms=yesterday', undefined, 400, /^from_ms must be a whole number\.$/],
    ['a repeated account', 'GET', '/admin/byok?account=acct_1&account=acct_2', undefined, 400, /^account must be given once\.$/],
    ['a path that cannot be decoded', 'GET', '/admin/accounts/%E0%A4%A', undefined, 400, /percent-encode/],
    ['a body that is too large', 'POST', '/admin/accounts', JSON.stringify({ name: 'a'.repeat(1_100_000) }), 413, /too large/],
    ['a body that is not JSON', 'POST', '/admin/accounts', '{', 400, /not JSON/],
  ])('tells the operator about %s, and calls no other service', async (_what, method, path, body, status, message) => {
    expect(await call(method, path, body)).toEqual({ status, message: expect.stringMatching(message) });
    expect(asked).toEqual([]);
  });

  test.each([
    ['GET', '/admin/accounts', 'accounts', 503], ['GET', '/admin/watermarks', 'billing', 503], ['GET', '/admin/providers', 'routing', 503], ['GET', '/admin/sources', 'plugins', 503], ['POST', '/admin/reconcile', 'billing', 503],
  ])('answers %s %s with the name of %s if that is away', async (method, path, service, status) => {
    fault = new Fault('peer_unavailable', 'no connection');
    expect(await call(method, path)).toEqual({ status, message: `${service} does not answer (peer_unavailable). See whether it is up, and try again.` });
  });

  test('tells nothing of a bug', async () => {
    fault = new Error('something inside');
    expect(await call('GET', '/admin/accounts')).toEqual({ status: 500, message: 'An internal error occurred.' });
  });

  test('says that nothing was rolled back if there is nothing', async () => {
    const state = { artefactId: 'qua_1', canaryId: '', canaryShare: 0, previousId: '' };
    for (const [problems, status] of [[['Nothing is there.'], 409], [[], 200]] as const) {
      const own = await startAdmin(() => ({ ...state, problems }));
      const answer = await own.call('POST', '/admin/quality/rollback');
      const told: unknown = await answer.json();
      await own.stop();
      expect([answer.status, told]).toMatchObject([status, status === 200 ? { artefact_id: 'qua_1' } : { error: { message: 'Nothing is there.' } }]);
    }
  });

  test('passes a document with a NUL on to plugins', async () => {
    expect(await call('POST', '/admin/sources', '{"corpus":"books","text":"a\\u0000b"}')).toEqual({ status: 400, message: 'refused by the neighbour' });
    expect(asked).toEqual(['AddSource']);
  });
});
