// npm run routing:train: builds what is stale, then trains the artefact of `auto`.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

await ensureBuilt();
const { train } = await import(pathToFileURL(join(root, 'training/dist/train.js')).href);
try {
  train(process.argv.slice(2), (line) => process.stdout.write(`${line}\n`));
} catch (error) {
  process.stderr.write(`signalbox: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
