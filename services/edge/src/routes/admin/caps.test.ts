import { afterEach, expect, test } from '@jest/globals';
import type { CostCapSetting } from '@signalbox/contracts/accounts';
import { accountWith, keyWith } from '../../testing/callers.js';
import { startAdmin, type AdminDoor } from '../../testing/admin.js';

let door: AdminDoor;
afterEach(() => door.stop());

const TOTAL = { capNanoUsd: '100000000000', period: 'total' };
const DAILY = { capNanoUsd: '5000000000', period: 'day' };

/** The message to accounts when an account or key with the caps `before` is changed by `body`. */
async function changed(what: 'accounts' | 'keys', before: readonly CostCapSetting[], body: object): Promise<{ readonly status: number; readonly error: unknown; readonly caps: unknown }> {
  const told: { readonly account?: { readonly costCaps?: unknown }; readonly limits?: { readonly costCaps?: unknown } }[] = [];
  const costCaps = before.map((cap) => ({ capNanoUsd: String(cap.capNanoUsd), period: cap.period ?? '' }));
  const account = accountWith({ costCaps });
  const key = keyWith({ limits: { costCaps, allowedModels: [], costCapPeriod: '' } });
  door = await startAdmin((method, message) => {
    if (method === 'SetAccount' || method === 'UpdateKey') told.push(message);
    return { found: true, account, key, problem: '' };
  });
  const response = await door.call('PATCH', `/admin/${what}/x`, { body: JSON.stringify(body) });
  const { error } = (await response.json()) as { readonly error?: unknown };
  return { status: response.status, error, caps: told[0]?.account?.costCaps ?? told[0]?.limits?.costCaps };
}

test.each<['accounts' | 'keys']>([['accounts'], ['keys']])('a new amount for the only cap of %s keeps its period, and a first cap is monthly', async (what) => {
  const to = (period: string): object => ({ status: 200, caps: [{ capNanoUsd: '120000000000', period }] });
  expect(await changed(what, [TOTAL], { cost_cap_usd: '120' })).toMatchObject(to('total'));
  await door.stop();
  expect(await changed(what, [], { cost_cap_usd: '120' })).toMatchObject(to('month'));
  await door.stop();
  expect(await changed(what, [TOTAL], { cost_cap_usd: '120', cost_cap_period: 'week' })).toMatchObject(to('week'));
});

test.each<['accounts' | 'keys']>([['accounts'], ['keys']])('an amount without a period is refused if %s has several caps, and changes nothing', async (what) => {
  expect(await changed(what, [DAILY, TOTAL], { cost_cap_usd: '120' })).toMatchObject({ status: 400, error: { param: 'cost_cap_usd', message: expect.stringMatching(/^cost_cap_usd: there are several caps/) }, caps: undefined });
});

test.each<['accounts' | 'keys']>([['accounts'], ['keys']])('null removes all caps of %s', async (what) => {
  expect(await changed(what, [DAILY, TOTAL], { cost_cap_usd: null })).toMatchObject({ status: 200, caps: [] });
});
