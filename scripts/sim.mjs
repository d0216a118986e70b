// npm run sim: builds what is stale, then simulates.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

await ensureBuilt();
await import(pathToFileURL(join(root, 'sim/dist/main.js')).href);
