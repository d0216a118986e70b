// npm start: everything in one process; needs nothing installed beforehand.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

const [unknown] = process.argv.slice(2);
if (unknown !== undefined) {
  process.stderr.write(`Unknown argument ${unknown}. npm start takes none: its settings are environment variables (docs/configuration.md).\n`);
  process.exit(1);
}
const program = (await ensureBuilt()) ? 'program.js' : 'main.js';
await import(pathToFileURL(join(root, 'deploy/standalone/dist', program)).href);
