/** What belongs to the account: its policy, its caps, its keys at providers. */
import { describe, expect, test } from '@jest/globals';
import { until } from '../harness/client.js';
import { screenshot, wantsScreenshots } from './browser.js';
import { follow, SLOW_MS, type Account, type Site } from './site.js';

const policyOf = ({ call }: Account, body?: object): Promise<unknown> => call('/api/policy', body === undefined ? {} : { method: 'PUT', body });

export function describePolicy(site: () => Site): void {
  describe('the policy', () => {
    test('a cap that is set on its page is a bar on the overview', async () => {
      const { account, visit } = site();
      const own = await account();
      const page = await visit('/policy', { key: own.key });
      await page.getByRole('textbox', { name: 'A day' }).fill('40');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved.', { exact: false }).waitFor();
      // What the account did not set stays unset.
      expect(await policyOf(own)).toMatchObject({ cost_caps: [{ cap_usd: 40, period: 'day' }], baseline_model: null, hard_cap: false, store_answers: null });
      await follow(page, 'Overview');
      await page.getByText('of $40.00 spent', { exact: false }).waitFor();
      if (wantsScreenshots) await screenshot(page, 'overview-cap');
    }, SLOW_MS);

    test('one that was changed elsewhere is not replaced unseen', async () => {
      const { account, visit } = site();
      const own = await account();
      const page = await visit('/policy', { key: own.key });
      await page.getByRole('textbox', { name: 'A week' }).fill('3');
      await policyOf(own, { deny_providers: ['groq'] });
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Changed elsewhere').waitFor();
      expect(await policyOf(own)).toMatchObject({ deny_providers: ['groq'], cost_caps: [] });
      await page.getByRole('button', { name: 'Show what holds now' }).click();
      await page.getByText('groq').waitFor();
      await page.getByRole('textbox', { name: 'A week' }).fill('3');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved.', { exact: false }).waitFor();
      expect(await policyOf(own)).toMatchObject({ deny_providers: ['groq'], cost_caps: [{ cap_usd: 3, period: 'week' }] });
    }, SLOW_MS);

    test('it is not saved over one that could not be read anew, which may have been changed elsewhere', async () => {
      const { account, visit } = site();
      const own = await account();
      const page = await visit('/policy', { key: own.key });
      await page.getByRole('textbox', { name: 'A week' }).fill('3');
      await policyOf(own, { deny_providers: ['groq'] });
      const away = { status: 400, contentType: 'application/json', body: JSON.stringify({ error: { message: 'It is away.', type: 'server_error', param: null, code: 'away' } }) };
      await page.route('**/api/policy', (route) => (route.request().method() === 'GET' ? route.fulfill(away) : route.continue()));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText(/^Saved\.|nothing was saved/).waitFor();
      expect(await page.getByText('nothing was saved').count()).toBe(1);
      expect(await policyOf(own)).toMatchObject({ deny_providers: ['groq'], cost_caps: [] });
      await page.unroute('**/api/policy');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Changed elsewhere').waitFor();
      expect(await page.getByText('nothing was saved').count()).toBe(0);
    }, SLOW_MS);
  });

  test('a provider key may be given for every provider that the gateway takes one for, but not for the simulator, which needs none', async () => {
    const { reader, visit } = site();
    const { providers } = await reader.call<{ readonly providers: readonly string[] }>('/api/providers');
    const page = await visit('/providers', { key: reader.key });
    await page.getByRole('button', { name: 'Add a key' }).click();
    await page.getByRole('combobox', { name: 'Provider' }).click();
    await page.getByRole('option').first().waitFor();
    expect([(await page.getByRole('option').allTextContents()), providers.length > 10]).toEqual([providers.filter((provider) => provider !== 'simulator'), true]);
  }, SLOW_MS);

  test('who has only the simulator is told so, and led to real models', async () => {
    const { account, visit, complaints } = site();
    const { key, call } = await account();
    const page = await visit('/models', { key });
    const note = page.getByRole('note', { name: 'Only the simulator answers here' });
    for (const path of ['Overview', 'Playground', 'Models']) {
      await follow(page, path);
      await note.waitFor();
    }
    await note.getByRole('link', { name: 'give this account a key of its own' }).click();
    await page.getByText('only the simulator answers', { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Add a key' }).click();
    await page.getByRole('combobox', { name: 'Provider' }).fill('groq');
    await page.getByRole('option', { name: 'groq' }).click();
    await page.getByLabel('Its API key').fill('gsk-of-nobody-0123456789');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await until(async () => (await call<{ readonly data: readonly { readonly owned_by: string }[] }>('/v1/models')).data.some(({ owned_by: maker }) => maker !== 'simulator' && maker !== 'signalbox'), 20_000, 200, 'the models of the provider');
    await page.reload();
    await follow(page, 'Models');
    await page.getByText('groq').first().waitFor();
    expect([await note.count(), complaints]).toEqual([0, []]);
  }, SLOW_MS);
}
