// The dashboard as static files. `__CSP_NONCE__` is filled in by edge with each page it serves.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';

/** Beside each text file its compressed form, made once here rather than with each request. */
const compressed = {
  name: 'compressed',
  apply: 'build',
  writeBundle({ dir }) {
    const assets = join(dir, 'assets');
    for (const name of readdirSync(assets).filter((file) => /\.(js|css|svg)$/.test(file))) writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }));
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  html: { cspNonce: '__CSP_NONCE__' },
  plugins: [compressed],
  build: {
    outDir: 'dist/site',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_500,
    rolldownOptions: {
      onLog(level, log, handle) {
        // Directives for servers mean nothing in a bundle for browsers.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log);
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/v1': 'http://127.0.0.1:8080', '/openapi.json': 'http://127.0.0.1:8080' } },
});
