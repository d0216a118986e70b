import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { accessibilityProblems, chromiumPath, cutLabels, launch, openContext, overflow, screenshot, settle, type Look } from './browser.js';

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

/** An account beside the first one, without limits. */
async function madeAccount(over: object = {}): Promise<{ readonly key: string }> {
  const response = await fetch(`${gateway.adminUrl}/admin/accounts`, { method: 'POST', headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'other', tier: 'enterprise', ...over }) });
  return ((await response.json()) as { readonly key: { readonly key: string } }).key;
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
        problems.push(...(await cutLabels(page)).map((label) => `${name}: the button ${label} is cut`));
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
        // What stands in it is built only when it is opened.
        if (path === '/api') await page.getByRole('button', { name: 'GET /api/usage' }).click();
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

  test('figures of one question are never shown under the name of another', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
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

  test('a question that no provider answered says in the playground whom it was asked of, and leads to its request', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    const { key } = await madeAccount();
    await signIn(page, key);
    await page.getByRole('link', { name: 'Playground' }).click();
    await page.getByRole('textbox', { name: 'Message' }).fill('[sim:status=500] What is a river?');
    await page.keyboard.press('Enter');
    await page.getByText('Tried: simulator (provider error)', { exact: false }).waitFor();
    await page.getByText('final', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Open this request' }).click();
    await page.getByText('none answered', { exact: false }).waitFor();
    await context.close();
  }, SLOW_MS);

  test('a request whose tools cost something says what, and of which attempt its time is', async () => {
    const { key } = await madeAccount();
    const { text } = await ask(gateway.baseUrl, key, { model: 'simulator/fast', plugins: ['image-gen'], messages: [{ role: 'user', content: 'a fox' }] });
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, key);
    const { id } = JSON.parse(text) as { readonly id: string };
    await until(async () => (await context.request.get(`${gateway.baseUrl}/api/requests/${id}`)).ok(), 20_000, 200, 'the ledger');
    await page.goto(`${gateway.baseUrl}/dashboard/requests/${id}`);
    await page.getByRole('region', { name: 'Attempts' }).getByText(/^plugins \$0\.01/).waitFor();
    await page.getByText('Last attempt', { exact: true }).waitFor();
    await context.close();
  }, SLOW_MS);

  test('in variant B, whose streams do not tell it, the playground takes from the ledger what it cost; until then it is an estimate', async () => {
    const { key } = await madeAccount({ variant: 'B' });
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, key);
    await page.getByRole('link', { name: 'Playground' }).click();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/api/requests/*', async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole('textbox', { name: 'Message' }).fill('What is a river?');
    await page.keyboard.press('Enter');
    await page.getByText('not booked yet', { exact: true }).waitFor();
    for (const label of ['Cost, estimated', 'Saved, estimated']) await page.getByText(label, { exact: true }).waitFor();
    release();
    await page.getByText('final', { exact: true }).waitFor();
    const id = (await page.getByRole('link', { name: 'Open this request' }).getAttribute('href'))?.split('/').at(-1) ?? '';
    const booked = (await (await fetch(`${gateway.baseUrl}/api/requests/${id}`, { headers: { authorization: `Bearer ${key}` } })).json()) as { readonly cost_usd: number };
    const shown = await page.getByText('Cost', { exact: true }).locator('xpath=..').textContent();
    expect(Number(shown?.replace(/^Cost\$/, ''))).toBeCloseTo(booked.cost_usd, 6);
    await context.close();
  }, SLOW_MS);

  test('in variant B a refused action says why, and leaves its session', async () => {
    const { key } = await madeAccount({ variant: 'B' });
    const made = await fetch(`${gateway.baseUrl}/api/auth`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'bounded', limits: { requests_per_minute: 50 } }) });
    const { key: bounded } = (await made.json()) as { readonly key: string };
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, bounded);
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('unbounded');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('alert').getByText('must not have inference', { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Requests' }).click();
    await page.getByRole('heading', { name: 'Requests' }).waitFor();
    await context.close();
  }, SLOW_MS);

  test('a provider key may be given for every provider that the gateway takes one for', async () => {
    const { providers } = await api<{ readonly providers: readonly string[] }>('/api/providers');
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'Provider keys' }).click();
    await page.getByRole('button', { name: 'Add a key' }).click();
    await page.getByRole('combobox', { name: 'Provider' }).click();
    await page.getByRole('option').first().waitFor();
    expect([(await page.getByRole('option').allTextContents()), providers.length > 10]).toEqual([providers, true]);
    await context.close();
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

  test('a key is rotated: its new secret is shown once, whatever key is pressed, and the old one ends', async () => {
    const made = await api<{ readonly id: string; readonly key: string }>('/api/auth', { method: 'POST', body: JSON.stringify({ name: 'to be rotated' }) });
    const { context, page, complaints } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'API keys' }).click();
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
    const body = { model: 'auto', messages: [{ role: 'user', content: 'hello' }] };
    expect((await ask(gateway.baseUrl, secret, body)).status).toBe(200);
    await until(async () => (await ask(gateway.baseUrl, made.key, body)).status === 401, 2_000, 50, 'the end of the old secret');
    await context.close();
    expect(complaints).toEqual([]);
  }, SLOW_MS);

  test('a dialog that waits for a new secret is not closed away: the old one has ended, and the new one would be told to nobody', async () => {
    await api('/api/auth', { method: 'POST', body: JSON.stringify({ name: 'closed away' }) });
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'Rotate closed away' }).click();
    let goOn = (): void => undefined;
    const pressed = new Promise<void>((resolve) => (goOn = resolve));
    await page.route('**/rotate', async (route) => {
      await pressed;
      await route.continue();
    });
    const dialog = page.getByRole('dialog');
    const sent = page.waitForRequest('**/rotate');
    await dialog.getByRole('button', { name: 'Rotate', exact: true }).click();
    await sent;
    await page.keyboard.press('Escape');
    expect([await dialog.getByRole('button', { name: 'Cancel' }).isDisabled(), await dialog.getByRole('button', { name: 'Close' }).count()]).toEqual([true, 0]);
    goOn();
    expect(await page.getByTestId('secret').textContent()).toMatch(/^sbx_live_\w{36}$/);
    await context.close();
  }, SLOW_MS);

  test('periods and days are told in UTC wherever the reader is, and a filter of days is of the reader’s own', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280, timeZone: 'America/Los_Angeles' });
    await signIn(page);
    await page.getByRole('link', { name: 'Statements' }).click();
    await page.getByRole('cell', { name: new RegExp(`^1 ${new Date().toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' })} `) }).waitFor();
    await page.getByRole('link', { name: 'Requests' }).click();
    const asked = page.waitForRequest((request) => request.url().includes('to='));
    await page.getByLabel('From', { exact: true }).fill('2026-01-31');
    await page.getByLabel('To', { exact: true }).fill('2026-01-31');
    const { searchParams } = new URL((await asked).url());
    expect(['from', 'to'].map((name) => Number(searchParams.get(name)))).toEqual(['2026-01-31T08:00:00Z', '2026-02-01T08:00:00Z'].map((time) => Date.parse(time) / 1_000));
    await context.close();
  }, SLOW_MS);

  test('what a list was narrowed to is there again after a way back and a reload', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'Requests' }).click();
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
    await context.close();
  }, SLOW_MS);

  test('two tabs show one session: signed out of one, signed out of both, and in again as whoever signs in', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const other = await context.newPage();
    await other.goto(`${gateway.baseUrl}/dashboard/requests`);
    await other.getByRole('link', { name: /\d/ }).first().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await other.getByTestId('key').waitFor();
    const made = await api<{ readonly key: string }>('/api/auth', { method: 'POST', body: JSON.stringify({ name: 'of someone else', scopes: ['models:read'] }) });
    await signIn(page, made.key);
    await other.getByText('of someone else').waitFor();
    await other.getByText('Not for this key').waitFor();
    await context.close();
  }, SLOW_MS);

  test('a policy that was changed elsewhere is not replaced unseen', async () => {
    const { key } = await madeAccount();
    const policy = async (body?: object): Promise<unknown> => (await fetch(`${gateway.baseUrl}/api/policy`, { headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { method: 'PUT', body: JSON.stringify(body) }) })).json();
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, key);
    await page.getByRole('link', { name: 'Policy and caps' }).click();
    await page.getByRole('textbox', { name: 'A week' }).fill('3');
    await policy({ deny_providers: ['groq'] });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Changed elsewhere').waitFor();
    expect(await policy()).toMatchObject({ deny_providers: ['groq'], cost_caps: [] });
    await page.getByRole('button', { name: 'Show what holds now' }).click();
    await page.getByText('groq').waitFor();
    await page.getByRole('textbox', { name: 'A week' }).fill('3');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.', { exact: false }).waitFor();
    expect(await policy()).toMatchObject({ deny_providers: ['groq'], cost_caps: [{ cap_usd: 3, period: 'week' }] });
    await context.close();
  }, SLOW_MS);

  test('a policy is not saved over one that could not be read anew, which may have been changed elsewhere', async () => {
    const { key } = await madeAccount();
    const policy = async (body?: object): Promise<unknown> => (await fetch(`${gateway.baseUrl}/api/policy`, { headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { method: 'PUT', body: JSON.stringify(body) }) })).json();
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, key);
    await page.getByRole('link', { name: 'Policy and caps' }).click();
    await page.getByRole('textbox', { name: 'A week' }).fill('3');
    await policy({ deny_providers: ['groq'] });
    const away = { status: 400, contentType: 'application/json', body: JSON.stringify({ error: { message: 'It is away.', type: 'server_error', param: null, code: 'away' } }) };
    await page.route('**/api/policy', (route) => (route.request().method() === 'GET' ? route.fulfill(away) : route.continue()));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Saved\.|nothing was saved/).waitFor();
    expect(await page.getByText('nothing was saved').count()).toBe(1);
    expect(await policy()).toMatchObject({ deny_providers: ['groq'], cost_caps: [] });
    await page.unroute('**/api/policy');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Changed elsewhere').waitFor();
    expect(await page.getByText('nothing was saved').count()).toBe(0);
    await context.close();
  }, SLOW_MS);

  test('figures that could not be read anew say so, and a page that breaks leaves the menu', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'Statements' }).click();
    await page.getByRole('cell', { name: 'open' }).waitFor();
    const away = { status: 503, contentType: 'application/json', body: JSON.stringify({ error: { message: 'Billing is away.', type: 'server_error', param: null, code: 'billing_unavailable' } }) };
    await page.route('**/api/requests?*', (route) => route.fulfill(away));
    await page.getByRole('link', { name: 'Requests' }).click();
    await page.getByText('Billing is away.').waitFor();
    await page.unroute('**/api/requests?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('link', { name: /\d/ }).first().waitFor();
    await page.route('**/api/requests?*', (route) => route.fulfill(away));
    await page.getByText('Not up to date: Billing is away.').waitFor();
    await page.route('**/api/plugins', (route) => route.fulfill({ status: 200, contentType: 'application/json', body: '{}' }));
    await page.getByRole('link', { name: 'Plugins' }).click();
    await page.getByText('This page cannot be shown').waitFor();
    await page.getByRole('link', { name: 'Models' }).click();
    await page.getByRole('heading', { name: 'Models and providers' }).waitFor();
    await context.close();
  }, SLOW_MS);

  test('a long name hides no control, and a name that is markup is text', async () => {
    const names = ['W'.repeat(100), '<img src=x onerror="document.title=1">'];
    for (const name of names) await api('/api/auth', { method: 'POST', body: JSON.stringify({ name }) });
    const { context, page, complaints } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page);
    await page.getByRole('link', { name: 'API keys' }).click();
    for (const name of names) {
      const box = await page.getByRole('button', { name: `Revoke ${name}` }).boundingBox();
      expect((box?.x ?? 1_280) + (box?.width ?? 0)).toBeLessThanOrEqual(1_280);
      await page.getByRole('button', { name: `Revoke ${name}` }).click();
      await page.getByRole('dialog').getByText(name).waitFor();
      expect(await overflow(page)).toBe(0);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await context.close();
    expect(complaints).toEqual([]);
  }, SLOW_MS);

  test('on a phone the menu is out of the way of the keyboard until it is opened', async () => {
    const { context, page } = await openContext(browser, { scheme: 'light', width: 360 });
    await signIn(page);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const link = page.getByRole('link', { name: 'Statements' });
    expect(await link.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.click();
    await page.getByRole('heading', { name: 'Statements' }).waitFor();
    await link.waitFor({ state: 'hidden' });
    await context.close();
  }, SLOW_MS);

  test('a key that may only read is offered nothing to change', async () => {
    const made = await api<{ readonly key: string }>('/api/auth', { method: 'POST', body: JSON.stringify({ name: 'reader', scopes: ['usage:read'] }) });
    const { context, page, complaints } = await openContext(browser, { scheme: 'light', width: 1_280 });
    await signIn(page, made.key);
    await page.getByText(/^on \d+ requests/).waitFor();
    await page.getByRole('link', { name: 'Policy and caps' }).click();
    await page.getByText('This key may read the policy, not change it', { exact: false }).waitFor();
    expect(await page.getByRole('textbox', { name: 'A day' }).isDisabled()).toBe(true);
    for (const name of ['API keys', 'Provider keys', 'Playground']) {
      await page.getByRole('link', { name }).click();
      await page.getByText('Not for this key').waitFor();
    }
    await context.close();
    // Nothing was asked that is refused.
    expect(complaints).toEqual([]);
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
