/** Compares the fields that workers of OpenAI's wire leave out with what routing knows about their hosts: a mismatch would drop a field silently. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { AUTO_TOOL_CHOICE_PROVIDERS, CHOICES_PROVIDERS, NO_LOGPROBS_PROVIDERS, NO_SINGLE_CALLS_PROVIDERS, ONE_STOP_PROVIDERS } from '@signalbox/routing/host-limits';
import { isPresetId, PRESETS, presetOf, type Preset } from '@signalbox/worker-openai-compatible/presets';

interface ModelRow {
  readonly id: string;
  readonly capabilities: { readonly tools?: boolean | null };
  readonly endpoints: readonly { readonly provider: string; readonly supports_tools?: boolean | null }[];
}

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../../services/routing/catalog/${name}`, import.meta.url), 'utf8'));
const { models } = read('models.json') as { models: readonly ModelRow[] };
const { providers } = read('providers.json') as { providers: readonly { readonly id: string; readonly unsupported_params?: readonly string[] }[] };

const presets = Object.keys(PRESETS).filter(isPresetId).map((id): readonly [string, Preset] => [id, presetOf(id)]);
/** Hosts of the presets for which `is` returns true. */
const hosts = (is: (preset: Preset) => boolean): readonly string[] => presets.filter(([, preset]) => is(preset)).map(([id]) => id).sort();
const drops = (field: string) => hosts(({ quirks }) => quirks.dropFields.includes(field));
const among = (ids: ReadonlySet<string>): readonly string[] => presets.map(([id]) => id).filter((id) => ids.has(id)).sort();

/** Fields that only OpenAI supports: routing reports them as ignored for every other endpoint. */
const OPENAI_ALONE = ['service_tier', 'metadata', 'verbosity', 'modalities'];
/** Fields that change the meaning of an answer: requests that need one avoid hosts without it. */
const KEPT_AWAY = ['logprobs', 'top_logprobs', 'n', 'tools', 'tool_choice', 'parallel_tool_calls'];

/** True if no model is known to support tools there. */
const isToolless = (id: string): boolean => models.every(({ capabilities, endpoints }) => endpoints.every(({ provider, supports_tools: has }) => provider !== id || (has ?? capabilities.tools) !== true));

describe('routing knows', () => {
  test('who is sent no logprobs', () => {
    expect(drops('logprobs')).toEqual(among(NO_LOGPROBS_PROVIDERS));
    expect(drops('top_logprobs')).toEqual(drops('logprobs'));
  });

  test('who is sent one choice', () => {
    expect(drops('n').filter((id) => CHOICES_PROVIDERS.has(id))).toEqual([]);
  });

  test('who is sent no tools', () => {
    expect(drops('tools').filter((id) => !isToolless(id))).toEqual([]);
    expect(drops('tools')).toEqual(hosts(({ quirks }) => quirks.alternates));
  });

  test('who cannot be made to call a tool', () => {
    const unforced = hosts(({ quirks }) => quirks.toolChoice === 'auto-only' || quirks.dropFields.includes('tool_choice'));
    expect(unforced.filter((id) => !AUTO_TOOL_CHOICE_PROVIDERS.has(id) && !isToolless(id))).toEqual([]);
  });

  test('who cannot be asked for one call at a time', () => {
    expect(drops('parallel_tool_calls').filter((id) => !isToolless(id))).toEqual(among(NO_SINGLE_CALLS_PROVIDERS));
  });

  test('who takes one stop sequence', () => {
    expect(hosts(({ quirks }) => quirks.stopMax === 1)).toEqual(among(ONE_STOP_PROVIDERS));
    expect(hosts(({ quirks }) => quirks.stopMax > 1 && quirks.stopMax < 4)).toEqual([]);
  });

  test.each(presets)('all that %s is not sent', (id, { quirks }) => {
    const known = new Set([...OPENAI_ALONE, ...KEPT_AWAY, ...(providers.find((provider) => provider.id === id)?.unsupported_params ?? [])]);
    expect(quirks.dropFields.filter((field) => !known.has(field))).toEqual([]);
  });
});
