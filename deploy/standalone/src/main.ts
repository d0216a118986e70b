/** `npm start`. Prints one `ready` line on stdout; everything else goes to stderr. */
import { existsSync } from 'node:fs';
import { tuneProcess } from '@signalbox/runtime/process';
import { makeDataDir } from './data-dir.js';
import { openEmbeddedStore } from './embedded-store.js';

const BODY = '{"model":"auto","messages":[{"role":"user","content":"Hello!"}]}';

if (existsSync('.env')) process.loadEnvFile('.env');

tuneProcess();

try {
  makeDataDir(process.env['DATA_DIR'] || '.data');
  const opening = openEmbeddedStore(process.env);
  // Its failure is reported where it is awaited.
  opening.catch(() => undefined);
  const { startStandalone } = await import('./compose.js');
  const standalone = await startStandalone(process.env, opening);
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    standalone.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  const { baseUrl, adminUrl, metricsUrl, firstKey } = standalone;
  const bearer = firstKey ?? '$SIGNALBOX_API_KEY';
  const curl = `curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer ${bearer}" -H "Content-Type: application/json" -d '${BODY}'`;
  process.stdout.write(`ready ${baseUrl} admin ${adminUrl}${firstKey === undefined ? '' : ` key ${firstKey}`}${metricsUrl === undefined ? '' : ` metrics ${metricsUrl}`} try: ${curl}\n`);
} catch (error) {
  process.stderr.write(`signalbox could not start: ${error instanceof Error ? error.message : 'unknown cause'}\n`);
  process.exit(1);
}
