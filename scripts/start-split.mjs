// npm run start:split: every service in its own process, on real stores.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

if (await ensureBuilt({ programs: ['services'] })) process.argv.push('--bundled');
await import(pathToFileURL(join(root, 'deploy/split/dist/main.js')).href);
