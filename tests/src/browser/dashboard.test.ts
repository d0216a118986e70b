import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { accessibilityProblems, chromiumPath, launch, openContext, overflow, screenshot, settle, type Look } from './browser.js';

const LOOKS: readonly Look[] = (['light', 'dark'] as const).flatMap((scheme) => [1_280, 360].map((width) => ({ scheme, width })));
const PAGES: readonly (readonly [string, string])[] = [
  ['', 'Overview'], ['/playground', 'Playground'], ['/requests', 'Requests'], ['/models', 'Models and providers'], ['/plugins', 'Plugins'], ['/keys', 'API keys'], ['/providers', 'Provider keys'], ['/policy', 'Policy and caps'], ['/statements', 'Statements'],
  ['/memory', 'Memory'], ['/api', 'API reference'],
];
const SLOW_MS = 120_000;
const REQUESTS = 6;

const suite = chromiumPath === undefined ? describe.skip : describe;
let gateway: Gateway;
let browser: Browser;

async function api<Answer>(path: string, options: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${gateway.baseUrl}${path}`, { ...options, headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' } });
  return (await response.json()) as Answer;
}

async function signIn(page: Page, key = gateway.key): Promise<void> {
  await page.goto(`${gateway.baseUrl}/dashboard`);
  await page.getByTestId('key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

suite('the dashboard', () => {
  beforeAll(async () => {
    gateway = await startGateway({ mode: 'standalone' });
    browser = await launch();
    for (let i = 0; i < REQUESTS; i += 1) await ask(gateway.baseUrl, gateway.key, { model: i === 0 ? 'simulator/smart' : 'auto', stream: i % 2 === 0, messages: [{ role: 'user', content: `Tell me about river ${i}` }] });
    await until(async () => (await api<{ readonly data: readonly unknown[] }>('/api/requests')).data.length === REQUESTS, 30_000, 200, 'the ledger');
  }, SLOW_MS);
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  }, SLOW_MS);

  describe.each(LOOKS)('$scheme, $width pixels wide', (look) => {
    test('every page shows its figures, is accessible, fits, and the browser has nothing to complain of', async () => {
      const { context, page, complaints } = await openContext(browser, look);
      const problems: string[] = [];
      const inspect = async (name: string): Promise<void> => {
        await screenshot(page, `${name}-${look.scheme}-${look.width}`);
        problems.push(...(await accessibilityProblems(page)).map((problem) => `${name}: ${problem}`));
        const wide = await overflow(page);
        if (wide > 0) problems.push(`${name}: ${wide} pixels too wide`);
      };
      await page.goto(`${gateway.baseUrl}/`);
      await page.getByTestId('key').waitFor();
      await inspect('sign-in');
      await signIn(page);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      for (const [path, title] of PAGES) {
        await page.goto(`${gateway.baseUrl}/dashboard${path}`);
        await settle(page);
        expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(title);
        if (path === '') await page.getByRole('img', { name: /^Median duration of answers on the latest day with any: [\d.]+ m?s/ }).waitFor();
        await inspect(path === '' ? 'overview' : path.slice(1));
      }
      const { data: [latest] } = await api<{ readonly data: readonly { readonly id: string }[] }>('/api/requests?limit=1');
      await page.goto(`${gateway.baseUrl}/dashboard/requests/${latest?.id ?? ''}`);
      await settle(page);
      await page.getByText('You asked for auto', { exact: false }).waitFor();
      await page.getByRole('region', { name: 'Considered' }).getByText('simulator:simulator/smart').waitFor();
      await inspect('request');
      const month = new Date().toISOString().slice(0, 7);
      await page.goto(`${gateway.baseUrl}/dashboard/statements/${month}`);
      await settle(page);
      await inspect('statement');
      await context.close();
      expect([...problems, ...complaints]).toEqual([]);
    }, SLOW_MS);
  });

  test('a wrong key is refused in words, and nothing of a right one stays in the browser', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, 'sbx_live_wrong');
    await page.getByRole('alert').waitFor();
    await signIn(page);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const kept = await page.evaluate(() => JSON.stringify([globalThis.document.cookie, { ...globalThis.localStorage }, { ...globalThis.sessionStorage }, globalThis.document.documentElement.outerHTML]));
    expect(kept.includes(gateway.key)).toBe(false);
    expect(await page.evaluate(() => globalThis.document.cookie)).toBe('');
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByTestId('key').waitFor();
    expect(await context.cookies()).toEqual([]);
    await context.close();
  }, SLOW_MS);

  test('the overview says what the books say', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByText(`on ${REQUESTS} requests`).waitFor();
    await page.getByText('less than the baseline', { exact: false }).waitFor();
    await page.getByRole('combobox', { name: 'Model' }).click();
    await page.getByRole('option', { name: 'simulator/smart' }).click();
    await page.getByText('on 1 request', { exact: true }).waitFor();
    await context.close();
  }, SLOW_MS);

  test('a narrow window shows each row whole: what a request cost is in sight', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 360 });
    await signIn(page);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goto(`${gateway.baseUrl}/dashboard/requests`);
    const cost = page.locator('[data-name="Cost"]').first();
    await cost.waitFor();
    const box = await cost.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(360);
    await context.close();
  }, SLOW_MS);

  test('a key is made with a cap, shown once, works, and is refused after its revocation was confirmed', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('from the browser');
    await page.getByRole('textbox', { name: 'Cost cap (US$)' }).fill('2.5');
    await page.getByRole('button', { name: 'Create key' }).click();
    const secret = (await page.getByTestId('secret').textContent()) ?? '';
    expect(secret).toMatch(/^sbx_live_\w{36}$/);
    await screenshot(page, 'key-made');
    await page.getByRole('button', { name: 'Copy' }).click();
    expect(await page.evaluate(() => globalThis.navigator.clipboard.readText())).toBe(secret);
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('$2.50 a month').waitFor();
    expect((await page.content()).includes(secret)).toBe(false);
    expect((await ask(gateway.baseUrl, secret, { model: 'auto', messages: [{ role: 'user', content: 'hello' }] })).status).toBe(200);
    await page.getByRole('button', { name: 'Revoke from the browser' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await until(async () => (await ask(gateway.baseUrl, secret, { model: 'auto', messages: [{ role: 'user', content: 'hello' }] })).status === 401, 2_000, 50, 'the refusal');
    await context.close();
  }, SLOW_MS);

  test('the playground streams, says what it cost, and leads to the request', async () => {
    const { context, page, complaints } = await openContext(browser, { scheme: 'dark', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'Playground' }).click();
    await page.getByRole('textbox', { name: 'Message' }).fill('What is a river?');
    await page.keyboard.press('Enter');
    await page.getByText('final', { exact: true }).waitFor();
    const answer = page.locator('.bubble[data-role="assistant"]');
    expect((await answer.textContent())?.length ?? 0).toBeGreaterThan(10);
    await screenshot(page, 'playground-answered');
    const link = page.getByRole('link', { name: 'Open this request' });
    const id = (await link.getAttribute('href'))?.split('/').at(-1) ?? '';
    await until(async () => (await api<{ readonly id?: string }>(`/api/requests/${id}`)).id === id, 20_000, 200, 'the ledger');
    await link.click();
    await page.getByText('Ledger').waitFor();
    await context.close();
    expect(complaints).toEqual([]);
  }, SLOW_MS);

  test('a cap that is set on its page is a bar on the overview', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'Policy and caps' }).click();
    await page.getByRole('textbox', { name: 'A day' }).fill('40');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.', { exact: false }).waitFor();
    // What the account did not set stays unset.
    expect(await api('/api/policy')).toMatchObject({ cost_caps: [{ cap_usd: 40, period: 'day' }], baseline_model: null, hard_cap: false, store_answers: null });
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('of $40.00 spent', { exact: false }).waitFor();
    await screenshot(page, 'overview-cap');
    await context.close();
  }, SLOW_MS);

  test('all of it can be reached by keyboard', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await page.goto(`${gateway.baseUrl}/dashboard`);
    await page.getByTestId('key').waitFor();
    await page.keyboard.insertText(gateway.key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const reached: string[] = [];
    for (let i = 0; i < 16; i += 1) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate(() => globalThis.document.activeElement?.textContent?.trim() || globalThis.document.activeElement?.getAttribute('aria-label') || ''));
    }
    expect(reached).toEqual(expect.arrayContaining(['Skip to the page', 'Sign out', 'Playground', 'API keys']));
    await context.close();
  }, SLOW_MS);

  test('a session ends within a second of its key’s revocation', async () => {
    const made = await api<{ readonly id: string; readonly key: string }>('/api/auth', { method: 'POST', body: JSON.stringify({ name: 'short-lived' }) });
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, made.key);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await api(`/api/auth/${made.id}`, { method: 'DELETE' });
    await until(async () => (await context.request.get(`${gateway.baseUrl}/api/session`)).status() === 401, 1_000, 50, 'the end of the session');
    await page.getByRole('link', { name: 'Requests' }).click();
    await page.getByTestId('key').waitFor();
    await context.close();
  }, SLOW_MS);
});
