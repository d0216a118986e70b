import { expect, test } from '@jest/globals';
import { providersTable } from './providers-table.js';

const endpoint = (id: string, over = {}): { readonly endpoint_id: string; readonly breaker: string; readonly samples: number; readonly latency_ms_p75: number | null; readonly throughput_tps_p50: number | null; readonly ejected_for: string | null } => ({
  endpoint_id: id, breaker: 'closed', samples: 0, latency_ms_p75: null, throughput_tps_p50: null, ejected_for: null, ...over,
});
const absent = (provider: string): { readonly provider: string; readonly available: boolean; readonly endpoints: [] } => ({ provider, available: false, endpoints: [] });
const simulator = { provider: 'simulator', available: true, endpoints: [endpoint('simulator:simulator/fast', { samples: 3, latency_ms_p75: 39, throughput_tps_p50: 7416.79 })] };

test('a line for each endpoint, with whose credential it is reached by; then the providers for which the operator has none', () => {
  const openai = { provider: 'openai', available: true, endpoints: [endpoint('openai:gpt', { breaker: 'open', ejected_for: 'latency' })] };
  const groq = { provider: 'groq', available: false, endpoints: [endpoint('groq:llama\u001b[2J')] };
  expect(providersTable({ providers: [openai, groq, absent('xai'), absent('simulator')] })).toBe(
    [
      'endpoint             credential of  breaker  samples  ms p75  tokens/s p50  ejected for',
      'openai:gpt                operator     open        0       -             -      latency',
      'groq:llama\\u001b[2J       accounts   closed        0       -             -            -',
      '',
      'Without a credential of the operator: groq, xai.',
      '',
    ].join('\n'),
  );
});

test('where only the simulator answers it says so, and how real models come', () => {
  const text = providersTable({ providers: [absent('openai'), simulator] });
  expect(text).toMatch(/^simulator:simulator\/fast +operator +closed +3 +39 +7417 +-$/m);
  expect(text).toMatch(/^Without a credential of the operator: openai\.\nOnly the simulator answers\. .*OPENAI_API_KEY.*`byok set`/m);
});

test('nothing is said of the simulator where a provider is served, and where there is none', () => {
  const openai = { provider: 'openai', available: true, endpoints: [endpoint('openai:gpt')] };
  expect(providersTable({ providers: [openai, simulator] })).not.toMatch(/Only|Without/);
  expect(providersTable({ providers: [absent('openai')] })).toMatch(/^No endpoint is served\.\n\nWithout a credential of the operator: openai\.\nFor real models start /);
});
