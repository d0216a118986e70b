/** Runs the all-in-one until it is told to stop. Prints one `ready` line on stdout; everything else goes to stderr. */
import { resolve } from 'node:path';
import { systemClock } from '@signalbox/runtime/clock';
import { ENDED_BY_CTRL_C, onStopSignals } from '@signalbox/runtime/stop-signals';
import type { Standalone } from './compose.js';
import { claimDataDir } from './data-dir.js';
import { openEmbeddedStore, type EmbeddedStore } from './embedded-store.js';
import { wordsOfStartFailure } from './start-failure.js';
import { tellOperator } from './tell-operator.js';

const BODY = '{"model":"auto","messages":[{"role":"user","content":"Hello!"}]}';

export async function run(): Promise<void> {
  const starting = new AbortController();
  let opening: Promise<EmbeddedStore> | undefined;
  let store: EmbeddedStore | undefined;
  let standalone: Standalone | undefined;
  const endWith = (stopped: Promise<void>): void => {
    stopped.then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  onStopSignals({
    clock: systemClock,
    begin: () => {
      // Not ready yet: abort the start, which then ends below.
      starting.abort();
      if (standalone !== undefined) endWith(standalone.stop());
    },
    onWait: () => tellOperator('signalbox: stopping once running streams have finished; Ctrl-C again stops at once'),
    end: () => {
      tellOperator('signalbox: stopped at once; usage that is not booked yet is in the logs of the workers, and is booked at the next start');
      // The store is signalled in this turn; do not wait for it.
      void store?.stop();
      process.exit(ENDED_BY_CTRL_C);
    },
  });

  try {
    process.once('exit', claimDataDir(resolve(process.env['DATA_DIR'] || '.data')));
    let onWait = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (onWait = resolve));
    opening = openEmbeddedStore(process.env, onWait);
    // A failure is reported where `opening` is awaited.
    opening.then((opened) => (store = opened), () => undefined).finally(onWait);
    // Loading the services stops everything else in this process: only now that Postgres, in its own, needs it no more.
    await waiting;
    const { startStandalone } = await import('./compose.js');
    standalone = await startStandalone(process.env, opening, starting.signal);
    if (starting.signal.aborted) endWith(standalone.stop());
    else {
      const { baseUrl, adminUrl, dashboardUrl, metricsUrl, firstKey } = standalone;
      const told = (name: string, value: string | undefined): string => (value === undefined ? '' : ` ${name} ${value}`);
      const bearer = firstKey ?? '$SIGNALBOX_API_KEY';
      const curl = `curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer ${bearer}" -H "Content-Type: application/json" -d '${BODY}'`;
      process.stdout.write(`ready ${baseUrl} admin ${adminUrl}${told('key', firstKey)}${told('dashboard', dashboardUrl)}${told('metrics', metricsUrl)} try: ${curl}\n`);
    }
  } catch (error) {
    // Postgres outlives its parent, so stop it first, even if it is still starting.
    await opening?.then((store) => store.stop()).catch(() => undefined);
    if (starting.signal.aborted) process.exit(0);
    process.stderr.write(`signalbox could not start: ${wordsOfStartFailure(error, process.env)}\n`);
    process.exit(1);
  }
}
