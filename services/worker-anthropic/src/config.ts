/** Settings of worker-anthropic: PROVIDER picks a preset, which names the other variables. */
import { ConfigError, type Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';
import { isPresetId, PRESET_IDS, PRESETS, type PresetId } from './presets.js';

/** PROVIDER: id of a preset; Anthropic itself when unset. */
export type WorkerAnthropicConfig = WorkerConfig & { readonly PROVIDER: PresetId };

/** Throws ConfigError. */
export function loadWorkerAnthropicConfig(environment: Environment): WorkerAnthropicConfig {
  const provider = environment['PROVIDER'] || 'anthropic';
  if (!isPresetId(provider)) throw new ConfigError(`PROVIDER: must be one of ${PRESET_IDS.join(', ')}`);
  const { credential, baseUrlVariable, baseUrl } = PRESETS[provider];
  return Object.freeze({ ...loadWorkerConfig(environment, { credentials: [credential], baseUrl: baseUrlVariable, defaultBaseUrl: baseUrl }), PROVIDER: provider });
}
