/** Who is signed in, in how many tabs, and what that key may do. */
import { describe, expect, test } from '@jest/globals';
import { until } from '../harness/client.js';
import { follow, signIn, SLOW_MS, type Site } from './site.js';

export function describeSessions(site: () => Site): void {
  describe('sessions', () => {
    test('a wrong key is refused in words, and nothing of a right one stays in the browser', async () => {
      const { reader, visit, context } = site();
      const page = await visit('');
      await signIn(page, 'sbx_live_wrong');
      await page.getByRole('alert').waitFor();
      await signIn(page, reader.key);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      const kept = await page.evaluate(() => JSON.stringify([globalThis.document.cookie, { ...globalThis.localStorage }, { ...globalThis.sessionStorage }, globalThis.document.documentElement.outerHTML]));
      expect(kept.includes(reader.key)).toBe(false);
      expect(await page.evaluate(() => globalThis.document.cookie)).toBe('');
      const [cookie] = await context.cookies();
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByTestId('key').waitFor();
      expect(await context.cookies()).toEqual([]);
    }, SLOW_MS);

    test('two tabs show one session: signed out of one, signed out of both, and in again as whoever signs in', async () => {
      const { gateway, account, visit, context } = site();
      const { key, makeKey } = await account();
      const page = await visit('', { key });
      const other = await context.newPage();
      await other.goto(`${gateway.baseUrl}/dashboard/requests`);
      await other.getByRole('heading', { name: 'Requests' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await other.getByTestId('key').waitFor();
      const made = await makeKey({ name: 'of someone else', scopes: ['models:read'] });
      await signIn(page, made.key);
      await other.getByText('of someone else').waitFor();
      await other.getByText('Not for this key').waitFor();
      await other.close();
    }, SLOW_MS);

    test('a session ends within a second of its key’s revocation', async () => {
      const { gateway, account, visit, context } = site();
      const { call, makeKey } = await account();
      const made = await makeKey({ name: 'short-lived' });
      const page = await visit('', { key: made.key });
      await call(`/api/auth/${made.id}`, { method: 'DELETE' });
      await until(async () => (await context.request.get(`${gateway.baseUrl}/api/session`)).status() === 401, 1_000, 50, 'the end of the session');
      await follow(page, 'Requests');
      await page.getByTestId('key').waitFor();
    }, SLOW_MS);

    test('a key that may only read is offered nothing to change', async () => {
      const { account, visit, complaints } = site();
      const { makeKey } = await account();
      const made = await makeKey({ name: 'reader', scopes: ['usage:read'] });
      const page = await visit('', { key: made.key });
      await page.getByText(/^on \d+ requests/).waitFor();
      await follow(page, 'Policy and caps');
      await page.getByText('This key may read the policy, not change it', { exact: false }).waitFor();
      expect(await page.getByRole('textbox', { name: 'A day' }).isDisabled()).toBe(true);
      for (const name of ['API keys', 'Provider keys', 'Playground']) {
        await follow(page, name);
        await page.getByText('Not for this key').waitFor();
      }
      // Nothing was asked that is refused.
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('a key with limits of its own is offered no change of policy and provider keys', async () => {
      const { account, visit } = site();
      const { makeKey } = await account();
      const made = await makeKey({ name: 'capped', limits: { cost_cap_usd: 1, cost_cap_period: 'day' } });
      const page = await visit('/policy', { key: made.key });
      await page.getByText('This key may read the policy, not change it', { exact: false }).waitFor();
      expect(await page.getByRole('textbox', { name: 'A day' }).isDisabled()).toBe(true);
      await follow(page, 'Provider keys');
      await page.getByText('None of your own').waitFor();
      expect(await page.getByRole('button', { name: 'Add a key' }).count()).toBe(0);
      await follow(page, 'API keys');
      await page.getByRole('button', { name: 'New key' }).waitFor();
    }, SLOW_MS);

    test('in variant B a refused action says why, and leaves its session', async () => {
      const { account, visit } = site();
      const { makeKey } = await account({ variant: 'B' });
      const bounded = await makeKey({ name: 'bounded', limits: { requests_per_minute: 50 } });
      const page = await visit('/keys', { key: bounded.key });
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByRole('textbox', { name: 'Name' }).fill('unbounded');
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('alert').getByText('must not have inference', { exact: false }).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await follow(page, 'Requests');
      await page.getByRole('heading', { name: 'Requests' }).waitFor();
    }, SLOW_MS);
  });
}
