// npm run bench: builds what is stale, then measures.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

await ensureBuilt({ programs: ['standalone', 'services'] });
await import(pathToFileURL(join(root, 'bench/dist/main.js')).href);
