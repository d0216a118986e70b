/** Changes of a caller while its request waits for live holds or for the rest of its body. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AuthenticateResponse__Output } from '@signalbox/contracts/accounts';
import { until } from '@signalbox/testkit/until';
import { accountWith, keyWith } from './testing/callers.js';
import { chatText, errorOf, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { admissionOf } from './testing/neighbours.js';
import { answersWith } from './testing/scripts.js';

const CAPPED = { costCaps: [{ capNanoUsd: '5000000', period: 'day' }] };
const BLOCKED = admissionOf('BLOCKED_BY_LIVE', { blockedAs: 'COST_CAPPED', limitNanoUsd: '5000000', spendNanoUsd: '0', reservedNanoUsd: '5000000' });

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answersWith('ok'));
  known({});
});
afterEach(() => door.stop());

type Known = Pick<AuthenticateResponse__Output, 'key' | 'account'>;
const known = ({ key = keyWith(), account = accountWith(CAPPED) }: Partial<Known>): void => door.accounts.add(door.key, { key, account });

/** Notifies the edge of a change, as accounts does within a second. */
async function change(to: Partial<Known>): Promise<void> {
  known(to);
  door.accounts.changes.push({ keyId: 'key_1', accountId: 'acct_1', reason: 'changed' });
  await door.neighbours.clock.advanceAsync(400);
}

const STATES: readonly (readonly [string, number, string, Partial<Known>])[] = [
  ['is revoked', 401, 'api_key_revoked', { key: keyWith({ status: 'revoked' }) }],
  ['has expired', 401, 'api_key_expired', { key: keyWith({ status: 'expired' }) }],
  ['is disabled', 401, 'invalid_api_key', { key: keyWith({ status: 'disabled' }) }],
  ['may no longer ask models', 403, 'insufficient_scope', { key: keyWith({ scopes: ['keys'] }) }],
  ['is of an account that was suspended', 401, 'account_suspended', { account: accountWith({ ...CAPPED, suspended: true }) }],
];

describe('if, while a request waits for live holds,', () => {
  beforeEach(() => void (door.neighbours.admissions = [BLOCKED]));
  test.each(STATES)('its key %s, it is refused as on arrival, although there is room by now', async (_what, status, code, to) => {
    const answer = door.chat(hello);
    await until(() => door.neighbours.asked.length > 0);
    await change(to);
    door.neighbours.admissions = [admissionOf('ADMITTED')];
    await door.neighbours.clock.advanceAsync(250);
    expect((await errorOf(await answer)).filter((part) => part !== 'invalid_request_error' && part !== 'permission_error')).toEqual([status, code]);
    expect(door.neighbours.calls).toEqual([]);
  });

  test('its account’s limits change, it is admitted under the new ones', async () => {
    const answer = door.chat(hello);
    await until(() => door.neighbours.asked.length > 0);
    await change({ account: accountWith({ costCaps: [{ capNanoUsd: '7000000', period: 'day' }] }) });
    door.neighbours.admissions = [admissionOf('ADMITTED')];
    await door.neighbours.clock.advanceAsync(250);
    expect((await answer).status).toBe(200);
    expect(door.neighbours.asked.at(-1)?.limits?.caps).toMatchObject([{ capNanoUsd: '7000000' }]);
  });

  test('nothing changes, it runs once there is room', async () => {
    const answer = door.chat(hello);
    await until(() => door.neighbours.asked.length > 0);
    door.neighbours.admissions = [admissionOf('ADMITTED')];
    await door.neighbours.clock.advanceAsync(250);
    expect((await answer).status).toBe(200);
  });

  test('accounts goes away and its key is no longer cached, it gets 503 as on arrival', async () => {
    const answer = door.chat(hello);
    await until(() => door.neighbours.asked.length > 0);
    await change({});
    door.accounts.isAway = true;
    await door.neighbours.clock.advanceAsync(250);
    expect(await errorOf(await answer)).toEqual([503, 'server_error', 'accounts_unavailable']);
  });
});

test.each(STATES)('a request whose key %s while its body arrives is refused as on arrival', async (_what, status, code, to) => {
  const body = JSON.stringify(hello);
  const text = chatText(door.key, body, { lines: 'connection: close\r\n' });
  const socket = door.raw(text.slice(0, -10));
  await until(() => door.accounts.lookUps > 0);
  await change(to);
  socket.write(text.slice(-10));
  const answer = await readRaw(socket);
  expect([answer.slice(0, 12), answer.includes(`"code":"${code}"`)]).toEqual([`HTTP/1.1 ${status}`, true]);
  expect([door.neighbours.asked, door.neighbours.calls]).toEqual([[], []]);
});
