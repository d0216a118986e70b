/** What the lists and charts tell, and what they say when they cannot. */
import { describe, expect, test } from '@jest/globals';
import { ask } from '../harness/client.js';
import { follow, REQUESTS, SLOW_MS, type Site } from './site.js';

const refusal = (status: number, message: string): { readonly status: number; readonly contentType: string; readonly body: string } => ({ status, contentType: 'application/json', body: JSON.stringify({ error: { message, type: 'server_error', param: null, code: 'billing_unavailable' } }) });

export function describeFigures(site: () => Site): void {
  describe('figures', () => {
    test('the overview says what the books say', async () => {
      const { reader, visit } = site();
      const page = await visit('', { key: reader.key });
      await page.getByText(`on ${REQUESTS} requests`).waitFor();
      await page.getByText('less than the baseline', { exact: false }).waitFor();
      await page.getByRole('combobox', { name: 'Model' }).click();
      await page.getByRole('option', { name: 'simulator/smart' }).click();
      await page.getByText('on 1 request', { exact: true }).waitFor();
    }, SLOW_MS);

    test('the overview asks at first for no more than any account may at once, and for lists to choose from when they are opened', async () => {
      const asked: string[] = [];
      const { context, page } = await site().open('', { key: site().reader.key }, (own) => {
        own.on('request', (request) => {
          const { pathname, search } = new URL(request.url());
          if (/^\/(api|v1)\//.test(pathname)) asked.push(pathname + search);
        });
        return Promise.resolve();
      });
      await page.getByText(`on ${REQUESTS} requests`).waitFor();
      await page.getByRole('cell', { name: 'simulator', exact: true }).waitFor();
      const first = asked.findIndex((path) => /group_by=(model|provider|key)/.test(path));
      expect(asked.slice(0, first).length).toBeLessThanOrEqual(5);
      expect(asked.slice(0, first)).toEqual(expect.arrayContaining([expect.stringContaining('group_by=day'), expect.stringContaining('/api/requests?')]));
      const isList = (path: string): boolean => /^\/api\/usage\?group_by=(model|provider)&limit/.test(path);
      expect(asked.filter(isList)).toEqual([]);
      await page.getByRole('combobox', { name: 'Provider' }).click();
      await page.getByRole('option', { name: 'simulator' }).click();
      expect(asked.filter(isList)).toEqual(['/api/usage?group_by=provider&limit=100']);
      await page.reload();
      await page.getByText(`on ${REQUESTS} requests`).waitFor();
      expect(await page.getByRole('combobox', { name: 'Provider' }).inputValue()).toBe('simulator');
      await context.close();
    }, SLOW_MS);

    test('the dearest key is named, though more keys than are read were made after it and used', async () => {
      const { key } = await site().account();
      await ask(site().gateway.baseUrl, key, { model: 'auto', messages: [{ role: 'user', content: 'hello' }] });
      const full = { object: 'list', data: [], has_more: true, first_id: null, last_id: null };
      const { context, page } = await site().open('', { key }, async (own) => {
        // As if the pages in the order of ids were full of such keys.
        for (const list of [/\/api\/auth\?limit=100$/, /\/api\/usage\?group_by=key(?!.*order=cost)/]) await own.route(list, (route) => route.fulfill({ json: full }));
      });
      await page.getByRole('cell', { name: 'default', exact: true }).waitFor();
      await context.close();
    }, SLOW_MS);

    test('an answer that broke off is not shown as a whole one, in the list and on its page', async () => {
      const { account, gateway, visit } = site();
      const { key } = await account();
      const answer = await fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: '[sim:cut-after=3]' }] }) });
      await answer.text();
      const page = await visit('/requests', { key });
      await page.getByText('cut short', { exact: true }).waitFor();
      await page.getByRole('cell').getByRole('link').first().click();
      await page.getByRole('heading', { name: 'What happened' }).waitFor();
      await page.getByText('cut short', { exact: true }).waitFor();
    }, SLOW_MS);

    test('figures of one question are never shown under the name of another', async () => {
      const { reader, visit } = site();
      const page = await visit('', { key: reader.key });
      await page.getByText(`on ${REQUESTS} requests`).waitFor();
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      await page.route(/\/api\/usage\?group_by=day&.*model=/, async (route) => {
        await held;
        await route.continue();
      });
      await page.getByRole('combobox', { name: 'Model' }).click();
      await page.getByRole('option', { name: 'simulator/smart' }).click();
      await page.getByText(`on ${REQUESTS} requests`).waitFor({ state: 'detached' });
      release();
      await page.getByText('on 1 request', { exact: true }).waitFor();
    }, SLOW_MS);

    test('periods and days are told in UTC wherever the reader is, and a filter of days is of the reader’s own', async () => {
      const { reader, open } = site();
      const { context, page } = await open('/statements', { key: reader.key, timeZone: 'America/Los_Angeles' });
      await page.getByRole('cell', { name: new RegExp(`^1 ${new Date().toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' })} `) }).waitFor();
      await follow(page, 'Requests');
      const asked = page.waitForRequest((request) => request.url().includes('to='));
      await page.getByLabel('From', { exact: true }).fill('2026-01-31');
      await page.getByLabel('To', { exact: true }).fill('2026-01-31');
      const { searchParams } = new URL((await asked).url());
      expect(['from', 'to'].map((name) => Number(searchParams.get(name)))).toEqual(['2026-01-31T08:00:00Z', '2026-02-01T08:00:00Z'].map((time) => Date.parse(time) / 1_000));
      await context.close();
    }, SLOW_MS);

    test('what a list was narrowed to is there again after a way back and a reload', async () => {
      const { reader, visit } = site();
      const page = await visit('/requests', { key: reader.key });
      await page.getByRole('combobox', { name: 'Model' }).click();
      await page.getByRole('option', { name: 'simulator/smart' }).click();
      const rows = page.locator('tbody tr');
      const narrowed = async (): Promise<void> => page.waitForFunction(() => globalThis.document.querySelectorAll('tbody tr').length === 1).then(() => undefined);
      await narrowed();
      await rows.first().getByRole('link').click();
      await page.getByText('Ledger').waitFor();
      expect(await page.evaluate(() => globalThis.document.activeElement?.id)).toBe('main');
      await page.goBack();
      await narrowed();
      await page.reload();
      await narrowed();
    }, SLOW_MS);

    test('figures that could not be read anew say so', async () => {
      const { reader, open } = site();
      const { context, page } = await open('/statements', { key: reader.key }, (own) => own.clock.install());
      await page.getByRole('cell', { name: 'open' }).waitFor();
      const away = refusal(503, 'Billing is away.');
      /** Until what is tried again after a while has been. */
      const passTime = async (text: string): Promise<void> => {
        const told = page.getByText(text).waitFor();
        let isTold = false;
        void told.then(() => (isTold = true), () => (isTold = true));
        while (!isTold) await page.clock.runFor(500);
        await told;
      };
      await page.route('**/api/requests?*', (route) => route.fulfill(away));
      await follow(page, 'Requests');
      await passTime('Billing is away.');
      await page.unroute('**/api/requests?*');
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('link', { name: /\d/ }).first().waitFor();
      await page.route('**/api/requests?*', (route) => route.fulfill(away));
      await passTime('Not up to date: Billing is away.');
      await context.close();
    }, SLOW_MS);

    test('a page that breaks leaves the menu', async () => {
      const { reader, visit } = site();
      const page = await visit('', { key: reader.key });
      await page.route('**/api/plugins', (route) => route.fulfill({ status: 200, contentType: 'application/json', body: '{}' }));
      await follow(page, 'Plugins');
      await page.getByText('This page cannot be shown').waitFor();
      await follow(page, 'Models');
      await page.getByRole('heading', { name: 'Models and providers' }).waitFor();
    }, SLOW_MS);
  });
}
