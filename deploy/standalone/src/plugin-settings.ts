/** What the operator's environment says to the plugins. */
import { PLUGIN_SETTINGS } from '@signalbox/plugins/config';
import type { Environment } from './wanted-workers.js';

/** Settings of plugins that are set; those of no other service are among them. */
export function pluginSettings(environment: Environment): Readonly<Record<string, string>> {
  return Object.fromEntries(PLUGIN_SETTINGS.flatMap((name): (readonly [string, string])[] => ((environment[name] ?? '') === '' ? [] : [[name, environment[name] ?? '']])));
}
