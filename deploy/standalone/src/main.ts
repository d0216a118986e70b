/** `npm start`. */
import { existsSync } from 'node:fs';
import { tuneProcess } from '@signalbox/runtime/process';

if (existsSync('.env')) process.loadEnvFile('.env');

// V8 takes compiled code only under the flags that it was compiled with: what is loaded before they are set is compiled at each start.
tuneProcess();
const { run } = await import('./run.js');
await run();
