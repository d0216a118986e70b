/** The page of API keys. */
import { describe, expect, test } from '@jest/globals';
import { ask, until } from '../harness/client.js';
import { screenshot, wantsScreenshots } from './browser.js';
import { follow, SLOW_MS, type Site } from './site.js';

const HELLO = { model: 'auto', messages: [{ role: 'user', content: 'hello' }] };

export function describeKeys(site: () => Site): void {
  const isAnswered = async (key: string, status: number): Promise<boolean> => (await ask(site().gateway.baseUrl, key, HELLO)).status === status;

  describe('API keys', () => {
    test('a key is made with a cap, shown once, works, and is refused after its revocation was confirmed', async () => {
      const { account, visit } = site();
      const page = await visit('', { key: (await account()).key });
      await follow(page, 'API keys');
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByRole('textbox', { name: 'Name' }).fill('from the browser');
      await page.getByRole('textbox', { name: 'A month' }).fill('2.5');
      await page.getByRole('button', { name: 'Create key' }).click();
      const secret = (await page.getByTestId('secret').textContent()) ?? '';
      expect(secret).toMatch(/^sbx_live_\w{36}$/);
      if (wantsScreenshots) await screenshot(page, 'key-made');
      await page.getByRole('button', { name: 'Copy' }).click();
      expect(await page.evaluate(() => globalThis.navigator.clipboard.readText())).toBe(secret);
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByText('$2.50 a month').waitFor();
      expect((await page.content()).includes(secret)).toBe(false);
      expect(await isAnswered(secret, 200)).toBe(true);
      await page.getByRole('button', { name: 'Revoke from the browser' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      // Its button has gone with it.
      await page.waitForFunction(() => globalThis.document.activeElement?.id === 'main');
      await until(() => isAnswered(secret, 401), 2_000, 50, 'the refusal');
    }, SLOW_MS);

    test('who clicks twice makes one key, and rotates it once', async () => {
      const { account, visit } = site();
      const { key, call } = await account();
      const page = await visit('/keys', { key });
      const sent: string[] = [];
      page.on('request', (request) => void (request.method() === 'POST' && sent.push(request.url())));
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByRole('textbox', { name: 'Name' }).fill('twice');
      await page.getByRole('button', { name: 'Create key' }).dblclick();
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByRole('button', { name: 'Rotate twice' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).dblclick();
      await page.getByRole('button', { name: 'I have stored it' }).click();
      page.removeAllListeners('request');
      const { data } = await call<{ readonly data: readonly { readonly name: string }[] }>('/api/auth');
      expect([sent.length, data.filter(({ name }) => name === 'twice').length]).toEqual([2, 1]);
    }, SLOW_MS);

    test('a key is rotated: its new secret is shown once, whatever key is pressed, and the old one ends', async () => {
      const { account, visit, complaints } = site();
      const { key, makeKey } = await account();
      const made = await makeKey({ name: 'to be rotated' });
      const page = await visit('/keys', { key });
      await page.getByRole('button', { name: 'Rotate to be rotated' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click();
      const secret = (await page.getByTestId('secret').textContent()) ?? '';
      expect(secret).toMatch(/^sbx_live_\w{36}$/);
      expect(secret).not.toBe(made.key);
      await page.keyboard.press('Escape');
      expect(await page.getByTestId('secret').count()).toBe(1);
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect((await page.content()).includes(secret)).toBe(false);
      expect(await isAnswered(secret, 200)).toBe(true);
      await until(() => isAnswered(made.key, 401), 2_000, 50, 'the end of the old secret');
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('a key that is made or revoked elsewhere is shown so without a reload', async () => {
      const { account, open } = site();
      const { key, call, makeKey } = await account();
      const { context, page, complaints } = await open('/keys', { key }, (own) => own.clock.install());
      const shown = (name: string): Promise<readonly string[]> => page.getByRole('row').filter({ hasText: name }).allInnerTexts();
      expect(await shown('from elsewhere')).toEqual([]);
      const { id } = await makeKey({ name: 'from elsewhere' });
      await page.clock.runFor(15_000);
      await page.getByRole('button', { name: 'Revoke from elsewhere' }).waitFor();
      await call(`/api/auth/${id}`, { method: 'DELETE' });
      await page.clock.runFor(15_000);
      await page.getByRole('row').filter({ hasText: 'from elsewhere' }).getByText('revoked').waitFor();
      expect(await page.getByRole('button', { name: 'Revoke from elsewhere' }).count()).toBe(0);
      expect(complaints).toEqual([]);
      await context.close();
    }, SLOW_MS);

    test('keys that work are found among those that programs made and revoked, from the first page, and after a reload too', async () => {
      const { account, visit, complaints } = site();
      const { key, call, makeKey } = await account();
      await makeKey({ name: 'that works' });
      // More than a page of them, each made later.
      for (let run = 0; run < 51; run += 1) await call(`/api/auth/${(await makeKey({ name: `run ${run}` })).id}`, { method: 'DELETE' });
      const page = await visit('/keys', { key });
      await page.getByRole('button', { name: 'Older' }).click();
      await page.getByRole('row').filter({ hasText: 'that works' }).waitFor();
      await page.getByRole('combobox', { name: 'State' }).click();
      await page.getByRole('option', { name: 'active', exact: true }).click();
      await page.getByRole('row').filter({ hasText: 'revoked' }).waitFor({ state: 'detached' });
      await page.reload();
      await page.getByRole('button', { name: 'Revoke that works' }).waitFor();
      expect(await page.getByText('run ').count()).toBe(0);
      await page.getByRole('combobox', { name: 'State' }).click();
      await page.getByRole('option', { name: 'disabled' }).click();
      await page.getByRole('button', { name: 'Clear the filter' }).click();
      await page.getByRole('row').filter({ hasText: 'run 50' }).waitFor();
      expect(complaints).toEqual([]);
    }, SLOW_MS);

    test('a dialog that waits for a new secret is not closed away: the old one has ended, and the new one would be told to nobody', async () => {
      const { account, visit } = site();
      const { key, makeKey } = await account();
      await makeKey({ name: 'closed away' });
      const page = await visit('/keys', { key });
      await page.getByRole('button', { name: 'Rotate closed away' }).click();
      let goOn = (): void => undefined;
      const pressed = new Promise<void>((resolve) => (goOn = resolve));
      await page.route('**/rotate', async (route) => {
        await pressed;
        await route.continue();
      });
      const dialog = page.getByRole('dialog');
      const rotate = dialog.getByRole('button', { name: 'Rotate', exact: true });
      // As the next event of the browser: what the click began has run, and no timer has.
      await rotate.evaluate(async (button: HTMLElement) => {
        button.click();
        for (let turn = 0; turn < 50; turn += 1) await undefined;
        button.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', code: 'Escape', bubbles: true }));
      });
      await page.keyboard.press('Escape');
      expect([await dialog.getByRole('button', { name: 'Cancel' }).isDisabled(), await dialog.getByRole('button', { name: 'Close' }).count()]).toEqual([true, 0]);
      goOn();
      expect(await page.getByTestId('secret').textContent()).toMatch(/^sbx_live_\w{36}$/);
    }, SLOW_MS);
  });
}
