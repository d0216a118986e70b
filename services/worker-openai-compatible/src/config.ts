/** Settings of worker-openai-compatible: PROVIDER picks a preset, which names the other variables. */
import { ConfigError, type Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';
import { isPresetId, PRESETS, presetOf, type PresetId } from './presets.js';

/** PROVIDER: id of a preset; no default, since each process serves one. */
export type WorkerOpenaiCompatibleConfig = WorkerConfig & { readonly PROVIDER: PresetId };

/** Throws ConfigError. */
export function loadWorkerOpenaiCompatibleConfig(environment: Environment): WorkerOpenaiCompatibleConfig {
  const provider = environment['PROVIDER'] ?? '';
  if (!isPresetId(provider)) throw new ConfigError(`PROVIDER: must be one of ${Object.keys(PRESETS).join(', ')}`);
  const preset = presetOf(provider);
  const config = loadWorkerConfig(environment, { credentials: preset.credentials, baseUrl: preset.baseUrlVariable, defaultBaseUrl: preset.baseUrl });
  return Object.freeze({ ...config, PROVIDER: provider });
}
