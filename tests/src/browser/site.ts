/** One gateway, one browser and one tab for all tests of the pages, since a new tab costs a second of processor time. */
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { launch, openContext, settle, type Complaints, type Look, type Opened } from './browser.js';

export const SLOW_MS = 120_000;
export const WIDE = 1_280;
export const NARROW = 360;
/** Number of requests of the account that has used the gateway; one of them names the more able model itself. */
export const REQUESTS = 6;

export interface Account {
  readonly key: string;
  /** Calls the API with the account's first key. */
  call<Answer>(path: string, options?: { readonly method?: string; readonly body?: object }): Promise<Answer>;
  /** Creates another key; fields that are not given are as for the first one. */
  makeKey(body: { readonly name: string; readonly scopes?: readonly string[]; readonly limits?: object }): Promise<{ readonly id: string; readonly key: string }>;
}

export interface Visit {
  /** Key of the session; absent = not signed in. */
  readonly key?: string;
  readonly width?: number;
}

export interface Site {
  readonly gateway: Gateway;
  /** An account that has used the gateway. Tests must only read it, so that each finds the same data. */
  readonly reader: Account;
  /** Problems reported since the last `visit`. */
  readonly complaints: Complaints;
  readonly context: BrowserContext;
  /** An account for one test, without limits. */
  account(over?: object): Promise<Account>;
  /** The shared tab, reset so that nothing of the previous test is left. `path` is below /dashboard. */
  visit(path: string, visit?: Visit): Promise<Page>;
  /** A separate browser context, for tests that affect a whole browser. `prepare` runs before anything is loaded. */
  open(path: string, visit?: Visit & Partial<Look>, prepare?: (page: Page) => Promise<void>): Promise<Opened>;
  close(): Promise<void>;
}

export async function openSite(): Promise<Site> {
  const [gateway, browser] = await Promise.all([startGateway({ mode: 'standalone' }), launch()]);
  const { context, page, complaints } = await openContext(browser, { scheme: 'light', width: WIDE });
  const reader = accountOf(gateway, gateway.key);
  await use(gateway, reader);
  return {
    gateway,
    reader,
    complaints,
    context,
    account: async (over = {}) => {
      const response = await fetch(`${gateway.adminUrl}/admin/accounts`, { method: 'POST', headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'other', tier: 'enterprise', ...over }) });
      return accountOf(gateway, ((await response.json()) as { readonly key: { readonly key: string } }).key.key);
    },
    visit: async (path, { key, width = WIDE } = {}) => {
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ ...page.viewportSize(), height: HEIGHT, width });
      await enter(gateway, context, page, path, key);
      complaints.length = 0;
      await settle(page);
      return page;
    },
    open: async (path, { key, ...look } = {}, prepare = () => Promise.resolve()) => {
      const own = await openContext(browser, { scheme: 'light', width: WIDE, ...look });
      await prepare(own.page);
      await enter(gateway, own.context, own.page, path, key);
      await settle(own.page);
      return own;
    },
    close: async () => {
      await Promise.all([browser.close(), gateway.stop()]);
    },
  };
}

const HEIGHT = 900;

function accountOf({ baseUrl }: Gateway, key: string): Account {
  const call = async <Answer>(path: string, { method = 'GET', body }: { readonly method?: string; readonly body?: object } = {}): Promise<Answer> => {
    const response = await fetch(`${baseUrl}${path}`, { method, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return (await response.json()) as Answer;
  };
  return { key, call, makeKey: (body) => call('/api/auth', { method: 'POST', body }) };
}

async function use({ baseUrl }: Gateway, { key, call }: Account): Promise<void> {
  for (let i = 0; i < REQUESTS; i += 1) await ask(baseUrl, key, { model: i === 0 ? 'simulator/smart' : 'auto', stream: i % 2 === 0, messages: [{ role: 'user', content: `Tell me about river ${i}` }] });
  await until(async () => (await call<{ readonly data: readonly unknown[] }>('/api/requests')).data.length === REQUESTS, 30_000, 200, 'the ledger');
}

const HINT = 'signalbox-signed-in';

/** Gets the session cookie without the sign-in page. Loaded pages are notified as if another tab had signed in, so they drop all their data. */
async function enter({ baseUrl }: Gateway, context: BrowserContext, page: Page, path: string, key: string | undefined): Promise<void> {
  const address = `${baseUrl}/dashboard${path}`;
  // An image of the same origin, where no scripts run.
  const picture = `${baseUrl}/dashboard/icon.svg`;
  const isLoaded = page.url().startsWith(`${baseUrl}/dashboard`) && page.url() !== picture;
  if (!isLoaded || key === undefined) {
    await page.goto(picture);
    await context.clearCookies();
    await page.evaluate(() => globalThis.localStorage.clear());
  }
  if (key !== undefined) {
    await context.request.post(`${baseUrl}/api/session`, { headers: { authorization: `Bearer ${key}` } });
    await page.evaluate((hint) => globalThis.localStorage.setItem(hint, '1'), HINT);
  }
  if (!isLoaded || key === undefined) {
    await page.goto(address);
    return;
  }
  const read = page.waitForResponse(`${baseUrl}/api/session`);
  await page.evaluate(([hint, to]) => {
    globalThis.history.pushState(null, '', to);
    globalThis.dispatchEvent(new PopStateEvent('popstate'));
    globalThis.dispatchEvent(new StorageEvent('storage', { key: hint ?? '' }));
  }, [HINT, address]);
  await read;
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByTestId('key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

export const menuLink = (page: Page, label: string): Locator => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: label, exact: true });

/** Opens a page from the menu. */
export const follow = (page: Page, label: string): Promise<void> => menuLink(page, label).click();
