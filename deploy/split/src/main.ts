/** `npm run start:split`: every service its own process on real stores; a service that dies is started again. */
import { openSplit, type Split } from './split.js';
import { parseArguments } from './arguments.js';
import { existsSync } from 'node:fs';

if (existsSync('.env')) process.loadEnvFile('.env');

const starting = new AbortController();
let split: Split | undefined;
let stopping = false;
const stop = (): void => {
  if (stopping) return;
  stopping = true;
  if (split === undefined) {
    starting.abort();
    return;
  }
  split.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
};
process.on('SIGINT', stop);
process.on('SIGTERM', stop);

try {
  const { isJson, isBundled, replicas } = parseArguments(process.argv.slice(2));
  split = await openSplit(process.env, {
    signal: starting.signal,
    replicas,
    isBundled,
    onProcesses: (processes) => {
      if (isJson) process.stdout.write(`${JSON.stringify({ processes })}\n`);
    },
  });
  if (stopping) {
    await split.stop();
    process.exit(0);
  }
  if (isJson) process.stdout.write(`${JSON.stringify({ ready: true, base_url: split.baseUrl, admin_url: split.adminUrl, processes: split.processes(), ...(split.firstKey === undefined ? {} : { key: split.firstKey }) })}\n`);
  else {
    process.stdout.write(`ready ${split.baseUrl} admin ${split.adminUrl}${split.firstKey === undefined ? '' : ` key ${split.firstKey}`}\n`);
    for (const { role, replica, pid, ports } of split.processes()) process.stderr.write(`  ${role} ${replica}  pid ${pid}  ${JSON.stringify(ports)}\n`);
  }
} catch (error) {
  if (stopping) process.exit(0);
  process.stderr.write(`signalbox could not start: ${error instanceof Error ? error.message : 'unknown cause'}\n`);
  process.exit(1);
}
