/** `npm run start:split`: runs every service as its own process on real stores, and restarts services that die. */
import { openSplit, type Split } from './split.js';
import { parseArguments } from './arguments.js';
import { preferBatches } from './scheduling.js';
import { loadEnvFile } from '@signalbox/runtime/env-file';
import { systemClock } from '@signalbox/runtime/clock';
import { ENDED_BY_CTRL_C, onStopSignals } from '@signalbox/runtime/stop-signals';
import { tellOperator } from '@signalbox/standalone/tell-operator';

const unread = loadEnvFile(process.env);
if (unread !== undefined) {
  process.stderr.write(`signalbox could not start: ${unread}\n`);
  process.exit(1);
}

preferBatches();

const starting = new AbortController();
let split: Split | undefined;
let stopping = false;
let killAll: () => void = () => undefined;
const stop = (): void => {
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
onStopSignals({
  clock: systemClock,
  begin: stop,
  onWait: () => tellOperator('signalbox: stopping once running streams have finished; Ctrl-C again stops at once'),
  end: () => {
    tellOperator('signalbox: stopped at once; usage that is not booked yet is in the logs of the workers, and is booked at the next start');
    killAll();
    process.exit(ENDED_BY_CTRL_C);
  },
});

try {
  const { isJson, isBundled, replicas } = parseArguments(process.argv.slice(2));
  split = await openSplit(process.env, {
    signal: starting.signal,
    replicas,
    isBundled,
    onEnd: (end) => {
      killAll = end;
    },
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
