import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { startDoor, type Door } from '../../testing/door.js';

let door: Door;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-web-'));
  const site = join(folder, 'site');
  mkdirSync(join(site, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'secret.js'), 'not to be served');
  writeFileSync(join(site, 'index.html'), '<!doctype html><meta nonce="__CSP_NONCE__"><script nonce="__CSP_NONCE__" src="/x.js"></script>');
  writeFileSync(join(site, 'assets', 'app-abc.js'), 'let plain;');
  writeFileSync(join(site, 'assets', 'app-abc.js.gz'), gzipSync('let plain;'));
  door = await startDoor({ dashboardDir: site });
});
afterAll(async () => {
  await door.stop();
  rmSync(folder, { recursive: true, force: true });
});
const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> => fetch(`${door.url}${path}`, { redirect: 'manual', headers });

describe('the dashboard’s files', () => {
  test('the site’s root redirects to it', async () => {
    const answer = await get('/');
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/dashboard']);
  });
  test.each(['OPTIONS', 'POST', 'DELETE'])('%s is refused, since no page has that method', async (method) => {
    for (const path of ['/', '/dashboard', '/dashboard/requests', '/dashboard/assets/app-abc.js']) {
      const answer = await fetch(`${door.url}${path}`, { method });
      expect([path, answer.status, answer.headers.get('allow')]).toEqual([path, 405, 'GET']);
    }
  });
  test('every answer without a caller has a request id, too', async () => {
    const ids = await Promise.all(['/', '/dashboard', '/dashboard/assets/app-abc.js', '/openapi.json', '/nothing'].map(async (path) => (await get(path)).headers.get('x-request-id')));
    for (const id of ids) expect(id).toMatch(/^req_[0-9A-Z]{26}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });
  test('every page is the same file with a nonce of its own, and is never cached', async () => {
    const pages = await Promise.all(['/dashboard', '/dashboard/requests/chatcmpl-1', '/dashboard/'].map((path) => get(path)));
    const nonces = pages.map((page) => /'nonce-([^']+)'/.exec(page.headers.get('content-security-policy') ?? '')?.[1] ?? '');
    expect(new Set(nonces).size).toBe(3);
    for (const [index, page] of pages.entries()) {
      expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store']);
      const text = await page.text();
      expect(text).toContain(`nonce="${nonces[index]}"`);
      expect(text).not.toContain('__CSP_NONCE__');
    }
  });
  test('a page may only run scripts that are files of this site, and cannot be framed', async () => {
    const policy = (await get('/dashboard')).headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
  });
  test('a browser that used TLS must keep using it here, but not on the operator’s subdomains', async () => {
    const policy = (await get('/dashboard')).headers.get('strict-transport-security');
    expect(policy).toMatch(/^max-age=\d+$/);
  });
  test.each(['/dashboard/index.html', '/dashboard/index%2ehtml', '/dashboard/x%2f..%2findex.html'])('%s does not give the page without its policy', async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/dashboard']);
  });
  test('hashed files are cached for a year, and compressed for clients that accept it', async () => {
    const plain = await get('/dashboard/assets/app-abc.js', { 'accept-encoding': 'identity' });
    expect([plain.status, plain.headers.get('cache-control'), plain.headers.get('content-encoding'), await plain.text()]).toEqual([200, 'public, max-age=31536000, immutable', null, 'let plain;']);
    const small = await get('/dashboard/assets/app-abc.js', { 'accept-encoding': 'gzip' });
    expect([small.headers.get('content-encoding'), small.headers.get('content-type'), small.headers.get('vary')]).toEqual(['gzip', 'text/javascript; charset=utf-8', 'Accept-Encoding']);
    expect(await small.text()).toBe('let plain;');
  });
  test.each(['/dashboard/assets/app-old.js', '/dashboard/missing.svg', '/dashboard/assets/..%2f..%2fsecret.js', '/dashboard/..%2fsecret.js', '/dashboard/%2e%2e/secret.js', '/dashboard/assets/'])('%s is 404', async (path) => {
    const answer = await get(path, { 'accept-encoding': 'identity' });
    const text = await answer.text();
    expect([answer.status, text.includes('not to be served')]).toEqual([404, false]);
  });
});
