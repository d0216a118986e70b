/** Chromium for tests of pages; the gateway's own pages only. */
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Artefacts of a test run; not committed. */
const SCREENSHOTS = fileURLToPath(new URL('../../../coverage/screenshots', import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Undefined = there is no Chromium, which `npm test` reports. */
export const chromiumPath: string | undefined = process.env['CHROMIUM_PATH'] === '' ? undefined : process.env['CHROMIUM_PATH'];

export function launch(): Promise<Browser> {
  const own = JSON.parse(process.env['CHROMIUM_ENVIRONMENT'] || '{}') as Record<string, string>;
  // Chromium's sandbox needs rights that containers and root do not have. Pages that live for seconds are not worth optimising their scripts.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--js-flags=--no-turbofan --no-maglev'];
  return chromium.launch({ ...(chromiumPath === undefined ? {} : { executablePath: chromiumPath }), args, env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...own } });
}

export interface Look {
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  /** Time zone of the user; absent = of the machine. */
  readonly timeZone?: string;
}

/** Problems reported by the browser: script errors, refused styles, failed loads. */
export type Complaints = string[];

export interface Opened {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: Complaints;
}

export async function openContext(browser: Browser, { scheme, width, timeZone }: Look): Promise<Opened> {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, reducedMotion: 'reduce', ...(timeZone === undefined ? {} : { timezoneId: timeZone }) });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints: Complaints = [];
  page.on('console', (message) => {
    // Requested for an image opened directly; pages have their own icon.
    if (message.location().url.endsWith('/favicon.ico')) return;
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  return { context, page, complaints };
}

/** Waits until nothing is loading any more. */
export async function settle(page: Page): Promise<void> {
  await page.waitForSelector('h1');
  await page.waitForFunction(() => globalThis.document.querySelector('[role="status"][aria-label="Loading"]') === null);
}

/** Switches the colour scheme of an open page, as an operating system does in the evening. */
export async function useColors(page: Page, scheme: Look['scheme']): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme });
  await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor();
}

/** Screenshots for people: all of them if SCREENSHOTS is 1, else only those of failures. */
export const wantsScreenshots: boolean = process.env['SCREENSHOTS'] === '1';

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}

/** All rules; or only those that depend on the colour scheme, if the page was already checked in another scheme. */
export type Rules = 'all' | 'colors';

const RULES: Readonly<Record<Rules, object>> = { all: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }, colors: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };

/** Violations of WCAG 2 A and AA, one line each. */
export async function accessibilityProblems(page: Page, rules: Rules = 'all'): Promise<readonly string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as { readonly axe: { run(context: unknown, options: object): Promise<{ readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[] }[] }> } };
    const { violations } = await axe.run(globalThis.document, { runOnly, resultTypes: ['violations'], preload: false });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary = '' }) => `${html.slice(0, 160)} (${failureSummary.replaceAll('\n', ' ').slice(0, 200)})`).join(' | ')}`);
  }, RULES[rules]);
}

/** Pixels by which the page is wider than its window; 0 = nothing is cut or scrolls sideways. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => Math.max(0, globalThis.document.documentElement.scrollWidth - globalThis.document.documentElement.clientWidth));
}

/** Labels of buttons that are cut off. */
export function cutLabels(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => [...globalThis.document.querySelectorAll('button')].filter((button) => [button, ...button.querySelectorAll('span')].some((part) => part.scrollWidth > part.clientWidth && part.clientWidth > 0)).map((button) => button.textContent ?? ''));
}
