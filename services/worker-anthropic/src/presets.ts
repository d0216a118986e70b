/** Hosts that speak Anthropic's Messages: one row each. Ids, addresses and variables are those of the catalog. */
import { ANTHROPIC, MINIMAX, type MessagesQuirks } from '@signalbox/wires/anthropic-messages/request';

export interface Preset {
  readonly baseUrl: string;
  readonly credential: string;
  readonly baseUrlVariable: string;
  readonly quirks: MessagesQuirks;
}

export const PRESETS = {
  anthropic: { baseUrl: 'https://api.anthropic.com/v1', credential: 'ANTHROPIC_API_KEY', baseUrlVariable: 'ANTHROPIC_BASE_URL', quirks: ANTHROPIC },
  minimax: { baseUrl: 'https://api.minimax.io/anthropic/v1', credential: 'MINIMAX_API_KEY', baseUrlVariable: 'MINIMAX_BASE_URL', quirks: MINIMAX },
} as const satisfies Record<string, Preset>;

export type PresetId = keyof typeof PRESETS;

export const PRESET_IDS: readonly PresetId[] = ['anthropic', 'minimax'];

export function isPresetId(text: string): text is PresetId {
  return Object.hasOwn(PRESETS, text);
}
