/** What `npm run bench` was asked. */
import { parseArgs } from 'node:util';

export interface BenchArguments {
  readonly isQuick: boolean;
  readonly withPortkey: boolean;
  readonly portkeyDir: string | undefined;
  /** Which of the ways Signalbox runs. */
  readonly modes: readonly ('split' | 'standalone')[];
  /** Profiles of Signalbox's processes go here; figures of such a run are not to be compared. */
  readonly profileDir: string | undefined;
}

/** Throws TypeError on an unknown flag. */
export function parseArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: { quick: { type: 'boolean' }, 'with-portkey': { type: 'boolean' }, 'portkey-dir': { type: 'string' }, only: { type: 'string' }, 'cpu-prof': { type: 'string' } },
  });
  const modes = (['split', 'standalone'] as const).filter((mode) => values.only === undefined || values.only.split(',').includes(mode));
  return { isQuick: values.quick === true, withPortkey: values['with-portkey'] === true || values['portkey-dir'] !== undefined, portkeyDir: values['portkey-dir'], modes, profileDir: values['cpu-prof'] };
}
