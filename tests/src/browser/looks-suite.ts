/** How pages look: to the eye, to an ear, in a narrow window, by keyboard. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { accessibilityProblems, cutLabels, overflow, screenshot, settle, useColors, wantsScreenshots, type Look, type Rules } from './browser.js';
import { follow, menuLink, NARROW, signIn, SLOW_MS, WIDE, type Site } from './site.js';

/** Path, label in the menu, title. */
const PAGES: readonly (readonly [string, string, string])[] = [
  ['', 'Overview', 'Overview'], ['/playground', 'Playground', 'Playground'], ['/requests', 'Requests', 'Requests'], ['/models', 'Models', 'Models and providers'], ['/plugins', 'Plugins', 'Plugins'], ['/keys', 'API keys', 'API keys'],
  ['/providers', 'Provider keys', 'Provider keys'], ['/policy', 'Policy and caps', 'Policy and caps'], ['/statements', 'Statements', 'Statements'], ['/memory', 'Memory', 'Memory'], ['/api', 'API reference', 'API reference'],
];

/** Looks at what is shown in the colours that it was loaded in, then in the other ones. */
function createInspector(page: Page, width: number): { readonly problems: string[]; inspect(name: string): Promise<void> } {
  const problems: string[] = [];
  let scheme: Look['scheme'] = 'light';
  const look = async (name: string, rules: Rules): Promise<void> => {
    const shown = `${name}-${scheme}-${width}`;
    const found = [...(await accessibilityProblems(page, rules))];
    const wide = await overflow(page);
    if (wide > 0) found.push(`${wide} pixels too wide`);
    found.push(...(await cutLabels(page)).map((label) => `the button ${label} is cut`));
    if (found.length > 0 || wantsScreenshots) await screenshot(page, shown);
    problems.push(...found.map((problem) => `${shown}: ${problem}`));
  };
  return {
    problems,
    inspect: async (name) => {
      await look(name, 'all');
      scheme = scheme === 'light' ? 'dark' : 'light';
      await useColors(page, scheme);
      await look(name, 'colors');
    },
  };
}

/** What stands on a page only when it is opened, or after its lists. */
async function unfold(page: Page, path: string): Promise<void> {
  if (path === '/api') await page.getByRole('button', { name: 'GET /api/usage' }).click();
  if (path === '') await page.getByRole('img', { name: /^Median duration of answers on the latest day with any: [\d.]+ m?s/ }).waitFor();
}

async function unfoldRequest(page: Page): Promise<void> {
  await page.getByText('You asked for auto', { exact: false }).waitFor();
  await page.getByRole('region', { name: 'Considered' }).getByText('simulator:simulator/smart').waitFor();
}

/** Each page by the menu. Answers what is wrong with any. */
async function walkByMenu({ reader, visit, complaints }: Site): Promise<readonly string[]> {
  const page = await visit('');
  const { problems, inspect } = createInspector(page, WIDE);
  // A browser asks for the icon by itself, and tells nobody what it got.
  const icon = await page.locator('link[rel="icon"]').getAttribute('href');
  expect((await page.request.get(new URL(icon ?? '', page.url()).href)).headers()['content-type']).toBe('image/svg+xml');
  await inspect('sign-in');
  await signIn(page, reader.key);
  const open = async (link: Locator, title: string | RegExp): Promise<void> => {
    await link.click();
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
    await settle(page);
  };
  const first = page.locator('tbody').getByRole('link').first();
  for (const [path, label, title] of PAGES) {
    await open(menuLink(page, label), title);
    await unfold(page, path);
    await inspect(path === '' ? 'overview' : path.slice(1));
    if (path === '/requests') {
      await open(first, 'Request');
      await unfoldRequest(page);
      await inspect('request');
    }
    if (path === '/statements') {
      await open(first, /^Statement \d/);
      await inspect('statement');
    }
  }
  return [...problems, ...complaints];
}

/** Each page by its address, in a browser of its own. Answers what is wrong with any. */
async function walkByAddress({ gateway, reader, open: openOwn }: Site): Promise<readonly string[]> {
  const { context, page, complaints } = await openOwn('', { width: NARROW });
  const { problems, inspect } = createInspector(page, NARROW);
  await inspect('sign-in');
  await signIn(page, reader.key);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const open = async (path: string): Promise<void> => {
    await page.goto(`${gateway.baseUrl}/dashboard${path}`);
    await settle(page);
  };
  for (const [path, , title] of PAGES) {
    await open(path);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(title);
    await unfold(page, path);
    await inspect(path === '' ? 'overview' : path.slice(1));
  }
  const { data: [latest] } = await reader.call<{ readonly data: readonly { readonly id: string }[] }>('/api/requests?limit=1');
  await open(`/requests/${latest?.id ?? ''}`);
  await unfoldRequest(page);
  await inspect('request');
  await open(`/statements/${new Date().toISOString().slice(0, 7)}`);
  await inspect('statement');
  await context.close();
  return [...problems, ...complaints];
}

export function describeLooks(site: () => Site): void {
  test('every page, in a wide and a narrow window, in both colour schemes, shows its figures, is accessible, fits, and the browser has nothing to complain of', async () => {
    // One waits for the gateway while the other is drawn.
    expect((await Promise.all([walkByMenu(site()), walkByAddress(site())])).flat()).toEqual([]);
  }, SLOW_MS);

  test('a narrow window shows each row whole: what a request cost is in sight', async () => {
    const { reader, visit } = site();
    const page = await visit('/requests', { key: reader.key, width: NARROW });
    const cost = page.locator('[data-name="Cost"]').first();
    await cost.waitFor();
    const box = await cost.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(NARROW);
  }, SLOW_MS);

  test('on a phone the menu is out of the way of the keyboard until it is opened', async () => {
    const { reader, visit } = site();
    const page = await visit('', { key: reader.key, width: NARROW });
    const link = page.getByRole('link', { name: 'Statements' });
    expect(await link.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.click();
    await page.getByRole('heading', { name: 'Statements' }).waitFor();
    await link.waitFor({ state: 'hidden' });
  }, SLOW_MS);

  test('to who asked for less motion nothing moves, not even what is loading', async () => {
    const { reader, visit } = site();
    const page = await visit('', { key: reader.key });
    let goOn = (): void => undefined;
    const looked = new Promise<void>((resolve) => (goOn = resolve));
    await page.route('**/api/auth?*', async (route) => {
      await looked;
      await route.continue();
    });
    await follow(page, 'API keys');
    await page.getByRole('status', { name: 'Loading' }).waitFor();
    expect(await page.evaluate(() => globalThis.document.getAnimations().length)).toBe(0);
    goOn();
    await page.getByRole('row').first().waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    expect(await page.evaluate(() => globalThis.document.getAnimations().length)).toBe(0);
  }, SLOW_MS);

  test('all of it can be reached by keyboard', async () => {
    const { reader, visit } = site();
    const page = await visit('');
    await page.getByTestId('key').waitFor();
    await page.keyboard.insertText(reader.key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const reached: string[] = [];
    for (let i = 0; i < 16; i += 1) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate(() => globalThis.document.activeElement?.textContent?.trim() || globalThis.document.activeElement?.getAttribute('aria-label') || ''));
    }
    expect(reached).toEqual(expect.arrayContaining(['Skip to the page', 'Sign out', 'Playground', 'API keys']));
  }, SLOW_MS);

  test('a long name hides no control, and a name that is markup is text', async () => {
    const { account, visit, complaints } = site();
    const { key, makeKey } = await account();
    const names = ['W'.repeat(100), '<img src=x onerror="document.title=1">'];
    for (const name of names) await makeKey({ name });
    const page = await visit('/keys', { key });
    for (const name of names) {
      const box = await page.getByRole('button', { name: `Revoke ${name}` }).boundingBox();
      expect((box?.x ?? WIDE) + (box?.width ?? 0)).toBeLessThanOrEqual(WIDE);
      await page.getByRole('button', { name: `Revoke ${name}` }).click();
      await page.getByRole('dialog').getByText(name).waitFor();
      expect(await overflow(page)).toBe(0);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    expect(complaints).toEqual([]);
  }, SLOW_MS);
}
