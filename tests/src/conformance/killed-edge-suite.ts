/** An edge is killed in the middle of a request that carries an Idempotency-Key. Split processes only. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { errorOf, nanoIn, readUntil, send } from './http.js';
import { HELLO, type TestAccount, type World } from './world.js';

/** A worker that is told nothing by edge concludes after 30 s. */
const CONCLUDED_MS = 45_000;
/** The key of a request that was not dispatched is free after 15 s. */
const LEASE_MS = 25_000;

interface Broken {
  readonly account: TestAccount;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly requestId: string;
}

/** Kills now, while the other suites run; the returned function describes the tests of the result. */
export function describeKilledEdge(world: () => World): () => void {
  let broken: Broken | undefined;
  let undispatched: Omit<Broken, 'requestId'> | undefined;
  const farEdge = (): { readonly far: string; readonly pid: number } => {
    const far = world().edges()[1] ?? '';
    const found = world().gateway.processes().find(({ role, ports }) => role === 'edge' && far.endsWith(`:${ports['http'] ?? 0}`));
    if (found === undefined) throw new Error('There is no second edge.');
    return { far, pid: found.pid };
  };
  const isBack = (far: string): Promise<unknown> =>
    eventually('the killed edge is back', async () => {
      const got = await send(far, { key: world().account.key, body: { model: 'simulator/fast', messages: HELLO } }).catch(() => undefined);
      return got?.status === 200 ? true : undefined;
    }, 20_000);

  test('(an edge is killed before it dispatches)', async () => {
    const account = await world().newAccount({});
    const { far, pid } = farEdge();
    const routing = world().gateway.processes().find(({ role }) => role === 'routing');
    if (routing === undefined) throw new Error('There is no routing.');
    const body = { model: 'simulator/fast', messages: HELLO };
    const headers = { 'idempotency-key': randomUUID() };
    process.kill(routing.pid, 'SIGSTOP');
    try {
      // One of the two has the key and waits for its plan; the other gets a conflict.
      const asked = [1, 2].map(() => send(far, { key: account.key, headers, body }));
      expect(errorOf(await Promise.race(asked)).code).toBe('idempotency_in_progress');
      process.kill(pid, 'SIGKILL');
      expect((await Promise.allSettled(asked)).map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    } finally {
      process.kill(routing.pid, 'SIGCONT');
    }
    undispatched = { account, headers, body };
    await isBack(far);
  });

  test('(an edge is killed while it streams)', async () => {
    const account = await world().newAccount({ store_answers: true });
    const { far, pid } = farEdge();
    const body = { model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: 'tell [sim:tokens=2000,chunk-delay-ms=20]' }] };
    const headers = { 'idempotency-key': randomUUID() };
    const response = await fetch(`${far}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
    const reader = response.body?.getReader();
    if (reader === undefined) throw new Error('expected a body');
    await readUntil(reader, '"content":"T');
    process.kill(pid, 'SIGKILL');
    const rest = async (): Promise<void> => {
      for (let part = await reader.read(); !part.done; part = await reader.read());
    };
    // The connection breaks, so that a client does not take the part for the whole answer.
    await expect(rest()).rejects.toThrow();
    broken = { account, headers, body, requestId: response.headers.get('x-request-id') ?? '' };
    await isBack(far);
  });

  return () => {
    describe('after an edge was killed', () => {
      test('a repeat of a request that it had not dispatched runs once its short lease is over, and is charged once', async () => {
        if (undispatched === undefined) throw new Error('expected a request');
        const { account, headers, body } = undispatched;
        const edge = world().edges()[0] ?? '';
        const got = await eventually('the key is free', async () => {
          const answer = await send(edge, { key: account.key, headers, body });
          expect(answer.status === 200 ? 'answered' : errorOf(answer).code).toMatch(/^(answered|idempotency_in_progress)$/);
          return answer.status === 200 ? answer : undefined;
        }, LEASE_MS);
        const again = await send(edge, { key: account.key, headers, body });
        expect([again.status, errorOf(again).metadata?.['request_id']]).toEqual([409, got.headers['x-request-id']]);
      }, 2 * LEASE_MS);

      test('a repeat of a dispatched request never runs again at any edge, and gets the charge for what the client got', async () => {
        if (broken === undefined) throw new Error('expected a broken request');
        const { account, headers, body, requestId } = broken;
        for (const edge of world().edges()) {
          const told = await eventually('the ledger knows what was delivered', async () => {
            const got = await send(edge, { key: account.key, headers, body });
            expect([got.status, errorOf(got).metadata?.['request_id']]).toEqual([409, requestId]);
            return errorOf(got).code === 'idempotency_completed' ? got : undefined;
          }, CONCLUDED_MS);
          const rows = await world().ledgerOf(account.id, requestId);
          expect(rows.map(({ kind }) => kind)).toEqual(['attempt', 'charge']);
          expect(BigInt(rows[1]?.amount_nano_usd ?? 0)).toBe(nanoIn(told.text, 'cost_usd'));
          expect(nanoIn(told.text, 'cost_usd')).toBeGreaterThan(0n);
        }
      }, 2 * CONCLUDED_MS);
    });
  };
}
