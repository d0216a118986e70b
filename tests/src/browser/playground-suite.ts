/** The playground, and the requests that it leads to. */
import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ask, until } from '../harness/client.js';
import { screenshot, wantsScreenshots } from './browser.js';
import { SLOW_MS, type Site } from './site.js';

async function askIn(page: Page, question: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(question);
  await page.keyboard.press('Enter');
}

const idOf = async (page: Page): Promise<string> => (await page.getByRole('link', { name: 'Open this request' }).getAttribute('href'))?.split('/').at(-1) ?? '';

export function describePlayground(site: () => Site): void {
  describe('the playground', () => {
    test('it streams, says what it cost, and leads to the request', async () => {
      const { account, visit, complaints } = site();
      const { key, call } = await account();
      const page = await visit('/playground', { key });
      await askIn(page, 'What is a river?');
      await page.getByText('final', { exact: true }).waitFor();
      const answer = page.locator('.bubble[data-role="assistant"]');
      expect((await answer.textContent())?.length ?? 0).toBeGreaterThan(10);
      if (wantsScreenshots) await screenshot(page, 'playground-answered');
      const id = await idOf(page);
      await until(async () => (await call<{ readonly id?: string }>(`/api/requests/${id}`)).id === id, 20_000, 200, 'the ledger');
      await page.getByRole('link', { name: 'Open this request' }).click();
      await page.getByText('Ledger').waitFor();
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('a question that no provider answered says whom it was asked of, and leads to its request', async () => {
      const { account, visit, complaints } = site();
      const page = await visit('/playground', { key: (await account()).key });
      await askIn(page, '[sim:status=500] What is a river?');
      await page.getByText('Tried: simulator (provider error)', { exact: false }).waitFor();
      await page.getByText('final', { exact: true }).waitFor();
      // The answer itself, and nothing that was asked before it was booked.
      expect(complaints).toEqual([expect.stringContaining('status of 503')]);
      await page.getByRole('link', { name: 'Open this request' }).click();
      await page.getByText('none answered', { exact: false }).waitFor();
    }, SLOW_MS);

    test('in variant B, whose streams do not tell it, it takes from the ledger what it cost; until then it is an estimate', async () => {
      const { account, visit } = site();
      const { key, call } = await account({ variant: 'B' });
      const page = await visit('/playground', { key });
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      await page.route(/\/api\/requests\?/, async (route) => {
        await held;
        await route.continue();
      });
      await askIn(page, 'What is a river?');
      await page.getByText('not booked yet', { exact: true }).waitFor();
      for (const label of ['Cost, estimated', 'Saved, estimated']) await page.getByText(label, { exact: true }).waitFor();
      release();
      await page.getByText('final', { exact: true }).waitFor();
      const booked = await call<{ readonly cost_usd: number }>(`/api/requests/${await idOf(page)}`);
      const shown = await page.getByText('Cost', { exact: true }).locator('xpath=..').textContent();
      expect(Number(shown?.replace(/^Cost\$/, ''))).toBeCloseTo(booked.cost_usd, 6);
    }, SLOW_MS);
  });

  test('a request whose tools cost something says what, and of which attempt its time is', async () => {
    const { gateway, account, visit } = site();
    const { key, call } = await account();
    const { text } = await ask(gateway.baseUrl, key, { model: 'simulator/fast', plugins: ['image-gen'], messages: [{ role: 'user', content: 'a fox' }] });
    const { id } = JSON.parse(text) as { readonly id: string };
    await until(async () => (await call<{ readonly id?: string }>(`/api/requests/${id}`)).id === id, 20_000, 200, 'the ledger');
    const page = await visit(`/requests/${id}`, { key });
    await page.getByRole('region', { name: 'Attempts' }).getByText(/^plugins \$0\.01/).waitFor();
    await page.getByText('Last attempt', { exact: true }).waitFor();
  }, SLOW_MS);
}
