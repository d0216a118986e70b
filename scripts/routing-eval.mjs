// npm run routing:eval: builds what is stale, then prints the figures of `auto` or judges a file of prompts.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './ensure-built.mjs';

await ensureBuilt();
const { evaluate } = await import(pathToFileURL(join(root, 'training/dist/evaluate.js')).href);
try {
  evaluate(process.argv.slice(2), (line) => process.stdout.write(`${line}\n`));
} catch (error) {
  process.stderr.write(`signalbox: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
