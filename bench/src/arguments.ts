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
  /** Minutes of the soak that is run instead of the measurements; undefined = none. */
  readonly soakMinutes: number | undefined;
}

const SOAK_MINUTES_MAX = 24 * 60;

/** Throws TypeError on an unknown flag, RangeError on minutes that are none. */
export function parseArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: { quick: { type: 'boolean' }, 'with-portkey': { type: 'boolean' }, 'portkey-dir': { type: 'string' }, only: { type: 'string' }, 'cpu-prof': { type: 'string' }, soak: { type: 'string' } },
  });
  const modes = (['split', 'standalone'] as const).filter((mode) => values.only === undefined || values.only.split(',').includes(mode));
  const soakMinutes = values.soak === undefined ? undefined : Number(values.soak);
  if (soakMinutes !== undefined && !(soakMinutes > 0 && soakMinutes <= SOAK_MINUTES_MAX)) throw new RangeError(`--soak wants minutes, above 0 and at most ${String(SOAK_MINUTES_MAX)}.`);
  return { isQuick: values.quick === true, withPortkey: values['with-portkey'] === true || values['portkey-dir'] !== undefined, portkeyDir: values['portkey-dir'], modes, profileDir: values['cpu-prof'], soakMinutes };
}
