// npm run chaos: builds what is stale, then breaks a real gateway.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

await ensureBuilt();
await import(pathToFileURL(join(root, 'tests/dist/chaos/main.js')).href);
