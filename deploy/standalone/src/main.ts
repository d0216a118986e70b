/** `npm start`. */
import { loadEnvFile } from '@signalbox/runtime/env-file';
import { tuneProcess } from '@signalbox/runtime/process';

const unread = loadEnvFile(process.env);
if (unread !== undefined) {
  process.stderr.write(`signalbox could not start: ${unread}\n`);
  process.exit(1);
}

// V8 takes compiled code only under the flags that it was compiled with: what is loaded before they are set is compiled at each start.
tuneProcess();
const { run } = await import('./run.js');
await run();
