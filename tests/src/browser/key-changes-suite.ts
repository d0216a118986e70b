/** Keys that are disabled and enabled, and their limits, on the page of API keys. */
import { describe, expect, test } from '@jest/globals';
import type { Locator, Page, Request } from 'playwright-core';
import { ask, until } from '../harness/client.js';
import { accessibilityProblems, overflow } from './browser.js';
import { follow, NARROW, SLOW_MS, WIDE, type Account, type Site } from './site.js';

const HELLO = { model: 'auto', messages: [{ role: 'user', content: 'hello' }] };
const LIMITS = { cost_caps: [{ cap_usd: 5, period: 'day' }, { cap_usd: 100, period: 'month' }], requests_per_minute: 60, allowed_models: ['simulator/fast', 'auto'] };

interface Record {
  readonly id: string;
  readonly status: string;
  readonly limits: object;
}

const recordOf = ({ call }: Account, id: string): Promise<Record> => call(`/api/auth/${id}`);

/** Holds calls of this method until they are let go. */
async function hold(page: Page, method: string): Promise<{ readonly sent: readonly Request[]; letGo(): void }> {
  let letGo = (): void => undefined;
  const gone = new Promise<void>((resolve) => (letGo = resolve));
  const sent: Request[] = [];
  await page.route('**/api/auth/*', async (route) => {
    if (route.request().method() === method) {
      sent.push(route.request());
      await gone;
    }
    await route.continue();
  });
  return { sent, letGo };
}

const button = (page: Page, name: string): Locator => page.getByRole('button', { name });
const closed = (page: Page): Promise<void> => page.getByRole('dialog').waitFor({ state: 'detached' });

export function describeKeyChanges(site: () => Site): void {
  const isAnswered = async (key: string, status: number): Promise<boolean> => (await ask(site().gateway.baseUrl, key, HELLO)).status === status;

  describe('a key that is disabled', () => {
    test('is refused, and works again when it is enabled, all by keyboard, which goes on where it was', async () => {
      const { account, visit, complaints } = site();
      const { key, makeKey } = await account();
      const made = await makeKey({ name: 'ci' });
      const page = await visit('/keys', { key });
      const dialog = page.getByRole('dialog');
      for (const [word, state, status] of [['Disable', 'disabled', 401], ['Enable', 'active', 200]] as const) {
        await button(page, `${word} ci`).press('Enter');
        await dialog.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor();
        await page.keyboard.press('Tab');
        await page.keyboard.press('Enter');
        await closed(page);
        await page.getByRole('row', { name: 'ci ' }).getByText(state, { exact: true }).waitFor();
        await page.waitForFunction(() => globalThis.document.activeElement?.textContent === 'Enable' || globalThis.document.activeElement?.textContent === 'Disable');
        await until(() => isAnswered(made.key, status), 2_000, 50, `${status}`);
      }
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('ends the session that it signed in, which is said before and after', async () => {
      const { account, visit } = site();
      const { makeKey } = await account();
      const own = await makeKey({ name: 'my own' });
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Disable my own').click();
      await page.getByRole('dialog').getByText('your session ends with it', { exact: false }).waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
      await page.getByTestId('key').waitFor();
      await page.getByText('disabled', { exact: false }).waitFor();
    }, SLOW_MS);

    test('is disabled once, and its dialog stays until that is known', async () => {
      const { account, visit } = site();
      const own = await account();
      const { id } = await own.makeKey({ name: 'slow' });
      const page = await visit('/keys', { key: own.key });
      const { sent, letGo } = await hold(page, 'PATCH');
      await button(page, 'Disable slow').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Disable', exact: true }).dblclick();
      await page.keyboard.press('Enter');
      await page.keyboard.press('Escape');
      expect([await dialog.getByRole('button', { name: 'Cancel' }).isDisabled(), await dialog.getByRole('button', { name: 'Close' }).count()]).toEqual([true, 0]);
      letGo();
      await closed(page);
      expect([sent.length, (await recordOf(own, id)).status]).toEqual([1, 'disabled']);
    }, SLOW_MS);

    test('says that it may have been disabled where the answer got lost, and the list tells whether it was', async () => {
      const { account, visit } = site();
      const own = await account();
      await own.makeKey({ name: 'lost' });
      const page = await visit('/keys', { key: own.key });
      await page.route('**/api/auth/*', async (route) => {
        await route.fetch();
        await route.abort();
      });
      await button(page, 'Disable lost').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
      await dialog.getByRole('alert').getByText('may have been made all the same', { exact: false }).waitFor();
      await page.locator('tbody tr', { hasText: 'lost' }).getByText('disabled', { exact: true }).waitFor();
    }, SLOW_MS);
  });

  describe('limits of a key', () => {
    test('are changed digit by digit, shown so when they are opened again, and what was not touched stays', async () => {
      const { account, visit, complaints } = site();
      const own = await account();
      const { id } = await own.makeKey({ name: 'ci', limits: LIMITS });
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Limits ci').press('Enter');
      const first = page.getByRole('textbox', { name: 'A day' });
      await first.and(page.locator(':focus')).waitFor();
      expect([await first.inputValue(), await page.getByRole('textbox', { name: 'Requests per minute' }).inputValue()]).toEqual(['5', '60']);
      await first.fill('4393092.087081594');
      await page.getByRole('textbox', { name: 'In all' }).fill('0.000000001');
      const sent = page.waitForRequest((request) => request.method() === 'PATCH');
      await page.keyboard.press('Enter');
      expect((await sent).postData()).toContain('{"cap_usd":4393092.087081594,"period":"day"}');
      await closed(page);
      await page.getByText('$0.000000001 in all', { exact: false }).waitFor();
      expect((await recordOf(own, id)).limits).toMatchObject({ cost_caps: [{ cap_usd: 4393092.087081594, period: 'day' }, { cap_usd: 100, period: 'month' }, { cap_usd: 1e-9, period: 'total' }], requests_per_minute: 60, allowed_models: ['simulator/fast', 'auto'] });
      await button(page, 'Limits ci').click();
      expect(await first.inputValue()).toBe('4393092.087081594');
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('are taken off where their fields are emptied, and hold for the next request', async () => {
      const { account, visit } = site();
      const own = await account();
      const made = await own.makeKey({ name: 'ci', limits: { cost_cap_usd: 0, cost_cap_period: 'day' } });
      expect(await isAnswered(made.key, 402)).toBe(true);
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Limits ci').click();
      await page.getByRole('textbox', { name: 'A day' }).fill('');
      await button(page, 'Save').click();
      await closed(page);
      expect((await recordOf(own, made.id)).limits).toEqual({ requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null });
      await until(() => isAnswered(made.key, 200), 2_000, 50, 'the end of the cap');
    }, SLOW_MS);

    test('that are no amounts are said beside their fields, and are not sent', async () => {
      const { account, visit, complaints } = site();
      const own = await account();
      await own.makeKey({ name: 'ci', limits: LIMITS });
      const page = await visit('/keys', { key: own.key });
      const { sent } = await hold(page, 'PATCH');
      await button(page, 'Limits ci').click();
      const week = page.getByRole('textbox', { name: 'A week' });
      await week.fill('2,50');
      await page.keyboard.press('Enter');
      await page.getByText('An amount such as 2.50', { exact: false }).waitFor();
      expect([await week.getAttribute('aria-invalid'), await button(page, 'Save').isDisabled(), sent.length]).toEqual(['true', true, 0]);
      const problems = [...(await accessibilityProblems(page))];
      await page.setViewportSize({ width: NARROW, height: 900 });
      problems.push(...(await accessibilityProblems(page)));
      expect([problems, await overflow(page), complaints]).toEqual([[], 0, []]);
    }, SLOW_MS);

    test('that were changed elsewhere are not replaced unseen', async () => {
      const { account, visit } = site();
      const own = await account();
      const { id } = await own.makeKey({ name: 'ci', limits: LIMITS });
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Limits ci').click();
      await page.getByRole('textbox', { name: 'A week' }).fill('3');
      await own.call(`/api/auth/${id}`, { method: 'PATCH', body: { limits: { requests_per_minute: 7, cost_cap_usd: null } } });
      await button(page, 'Save').click();
      await page.getByText('Changed elsewhere').waitFor();
      expect((await recordOf(own, id)).limits).toMatchObject({ requests_per_minute: 7, cost_cap_usd: null });
      await button(page, 'Show what holds now').click();
      expect(await page.getByRole('textbox', { name: 'Requests per minute' }).inputValue()).toBe('7');
      await page.getByRole('textbox', { name: 'A week' }).fill('3');
      const { sent, letGo } = await hold(page, 'PATCH');
      letGo();
      await button(page, 'Save').dblclick();
      await closed(page);
      expect(sent.length).toBe(1);
      expect((await recordOf(own, id)).limits).toMatchObject({ requests_per_minute: 7, cost_cap_usd: 3, cost_cap_period: 'week' });
    }, SLOW_MS);

    test('are not saved without a network, nor later when it is back, until somebody saves again', async () => {
      const { account, visit, context } = site();
      const own = await account();
      const { id } = await own.makeKey({ name: 'ci', limits: LIMITS });
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Limits ci').click();
      await page.getByRole('textbox', { name: 'A day' }).fill('6');
      await context.setOffline(true);
      try {
        await button(page, 'Save').click();
        await page.getByRole('alert').getByText('so nothing was saved', { exact: false }).waitFor();
      } finally {
        await context.setOffline(false);
      }
      expect((await recordOf(own, id)).limits).toMatchObject({ cost_cap_usd: 5 });
      await button(page, 'Save').click();
      await closed(page);
      expect((await recordOf(own, id)).limits).toMatchObject({ cost_cap_usd: 6 });
    }, SLOW_MS);

    test('that are only read before they are saved may be closed away, and then are not saved', async () => {
      const { account, visit } = site();
      const own = await account();
      const { id } = await own.makeKey({ name: 'ci', limits: LIMITS });
      const page = await visit('/keys', { key: own.key });
      await button(page, 'Limits ci').click();
      await page.getByRole('textbox', { name: 'A day' }).fill('6');
      const { sent: read, letGo } = await hold(page, 'GET');
      const changes: string[] = [];
      page.on('request', (request) => void (request.method() === 'PATCH' && changes.push(request.url())));
      await button(page, 'Save').click();
      await until(() => Promise.resolve(read.length === 1), 5_000, 20, 'the reading');
      await button(page, 'Cancel').click();
      await closed(page);
      letGo();
      // Another one goes all the way meanwhile.
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await button(page, 'Disable ci').click();
      await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
      await closed(page);
      page.removeAllListeners('request');
      expect([changes.length, (await recordOf(own, id)).limits]).toEqual([1, expect.objectContaining({ cost_cap_usd: 5 })]);
    }, SLOW_MS);

    test('that a key may not loosen are refused in words', async () => {
      const { account, visit } = site();
      const { makeKey } = await account();
      const bounded = await makeKey({ name: 'bounded', limits: { requests_per_minute: 50 } });
      const page = await visit('/keys', { key: bounded.key });
      await button(page, 'Limits bounded').click();
      await page.getByRole('textbox', { name: 'Requests per minute' }).fill('51');
      await button(page, 'Save').click();
      await page.getByRole('dialog').getByText('Not for this key').or(page.getByRole('dialog').getByRole('alert')).waitFor();
      await button(page, 'Cancel').click();
      await follow(page, 'Requests');
      await page.getByRole('heading', { name: 'Requests' }).waitFor();
    }, SLOW_MS);
  });

  test('keys of one name are told apart by ear, and each action is in sight of a wide window', async () => {
    const { account, visit } = site();
    const { key, makeKey } = await account();
    const made = [await makeKey({ name: 'twin' }), await makeKey({ name: 'twin' })];
    const page = await visit('/keys', { key });
    for (const { key: secret } of made) {
      for (const word of ['Limits', 'Disable', 'Rotate', 'Revoke']) {
        const box = await button(page, `${word} twin (${secret.slice(0, 13)}`).boundingBox();
        expect((box?.x ?? WIDE) + (box?.width ?? 0)).toBeLessThanOrEqual(WIDE);
      }
    }
  }, SLOW_MS);
}
