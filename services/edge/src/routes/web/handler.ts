/** The dashboard's built files: hashed ones are kept for ever, the page itself never. */
import type { RandomBytes } from '@signalbox/kernel/clock';
import express, { Router, type NextFunction, type Request, type Response } from 'express';
import { readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';

/** Where the dashboard is, below the site. Its build names the same path. */
export const DASHBOARD_PATH = '/dashboard';
const NONCE_PLACE = '__CSP_NONCE__';
const NONCE_BYTES = 16;
const YEAR_SECONDS = 31_536_000;
/** Kinds of file that the build also leaves compressed. */
const COMPRESSED = new Set(['.js', '.css', '.svg']);

/** No script but our own files, no style but these and those the page's nonce vouches for, nobody else's frame. */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "img-src 'self' data:", "font-src 'self'", "connect-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ');
}

export interface WebOptions {
  /** Folder of the built dashboard; it may be missing, which is a page that says so. */
  readonly folder: string;
  readonly randomBytes: RandomBytes;
  /** Answers a method that no page has. */
  refuseMethod(request: Request, response: Response): void;
}

/** Router to be mounted at `DASHBOARD_PATH`. A GET or HEAD of what is not there goes on. */
export function createWebRouter({ folder, randomBytes, refuseMethod }: WebOptions): Router {
  const router = Router();
  router.use((request: Request, response: Response, next: NextFunction) => (request.method === 'GET' || request.method === 'HEAD' ? next() : refuseMethod(request, response)));
  router.use('/assets', (request: Request, response: Response, next: NextFunction) => {
    const kind = extname(request.path);
    response.setHeader('vary', 'Accept-Encoding');
    if (COMPRESSED.has(kind) && request.acceptsEncodings('gzip') === 'gzip') {
      response.type(kind).setHeader('content-encoding', 'gzip');
      request.url = `${request.path}.gz`;
    }
    next();
  });
  router.use('/assets', express.static(join(folder, 'assets'), { index: false, immutable: true, maxAge: YEAR_SECONDS * 1_000, redirect: false }));
  router.use('/assets', (_request: Request, response: Response, next: NextFunction) => {
    for (const name of ['content-encoding', 'content-type', 'vary']) response.removeHeader(name);
    // Past every route below: a file that is not there must not be answered with a page.
    next('router');
  });
  // The file of the page is a form to be filled: as it lies there it has neither nonce nor policy.
  router.use((request: Request, response: Response, next: NextFunction) => {
    if (basename(decodeURIComponent(request.path)) === 'index.html') response.redirect(302, DASHBOARD_PATH);
    else next();
  });
  router.use(express.static(folder, { index: false, maxAge: 3_600_000, redirect: false }));
  router.get('/{*path}', async (request: Request, response: Response, next: NextFunction) => {
    if (extname(request.path) !== '') {
      next();
      return;
    }
    const nonce = Buffer.from(randomBytes(NONCE_BYTES)).toString('base64');
    response.set({ 'content-security-policy': contentSecurityPolicy(nonce), 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    try {
      response.type('html').send((await readFile(join(folder, 'index.html'), 'utf8')).replaceAll(NONCE_PLACE, nonce));
    } catch {
      response.status(404).type('text/plain').send('The dashboard is not built here: run npm run build.\n');
    }
  });
  return router;
}
