/** The dashboard's built files. Browsers may cache hashed ones for a year, the page itself never. */
import type { RandomBytes } from '@signalbox/kernel/clock';
import express, { Router, type NextFunction, type Request, type Response } from 'express';
import { readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';

/** Path of the dashboard. Its build uses the same one. */
export const DASHBOARD_PATH = '/dashboard';
const NONCE_PLACE = '__CSP_NONCE__';
const NONCE_BYTES = 16;
const YEAR_SECONDS = 31_536_000;
/** Kinds of file that the build also leaves compressed. */
const COMPRESSED = new Set(['.js', '.css', '.svg']);

/** Allows scripts only from this site's files, styles from these and with the page's nonce, and no embedding in frames. */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "img-src 'self' data:", "font-src 'self'", "connect-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ');
}

export interface WebOptions {
  /** Folder of the built dashboard; if it is missing, a page says so. */
  readonly folder: string;
  readonly randomBytes: RandomBytes;
  /** Answers a method that no page has. */
  refuseMethod(request: Request, response: Response): void;
}

/** Router to be mounted at `DASHBOARD_PATH`. A GET or HEAD of an unknown file is passed on. */
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
    // Skips the routes below: a missing file must not be answered with the page.
    next('router');
  });
  // index.html is a template: the file itself has neither nonce nor policy, so it is not served as it is.
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
