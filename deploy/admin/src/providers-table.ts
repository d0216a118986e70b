/** Providers and the health of their endpoints as a table for people. */
import { aligned } from './aligned.js';
import { harmlessText } from './readable.js';

interface Endpoint {
  readonly endpoint_id: string;
  readonly breaker: string;
  readonly samples: number;
  readonly latency_ms_p75: number | null;
  readonly throughput_tps_p50: number | null;
  readonly ejected_for: string | null;
}

export interface Providers {
  readonly providers: readonly { readonly provider: string; readonly available: boolean; readonly endpoints: readonly Endpoint[] }[];
}

/** Needs no credential: it is there for trying the gateway out. */
const SIMULATOR = 'simulator';

const rounded = (value: number | null): string => (value === null ? '-' : String(Math.round(value)));

/** One row per endpoint, then the providers without a credential of the operator's, with what to do about it. */
export function providersTable({ providers }: Providers): string {
  const rows = providers.flatMap(({ available, endpoints }) => endpoints.map((one) => [
    harmlessText(one.endpoint_id), available ? 'operator' : 'accounts', harmlessText(one.breaker), String(one.samples), rounded(one.latency_ms_p75), rounded(one.throughput_tps_p50), harmlessText(one.ejected_for ?? '-'),
  ]));
  const table = rows.length === 0 ? 'No endpoint is served.' : aligned([['endpoint', 'credential of', 'breaker', 'samples', 'ms p75', 'tokens/s p50', 'ejected for'], ...rows]);
  const ofOperator = providers.filter(({ available }) => available).map(({ provider }) => provider);
  const without = providers.filter(({ provider, available }) => !available && provider !== SIMULATOR).map(({ provider }) => harmlessText(provider));
  return [
    table,
    ...(without.length === 0 ? [] : ['', `Without a credential of the operator: ${without.join(', ')}.`]),
    ...(ofOperator.every((provider) => provider === SIMULATOR) ? [`${ofOperator.length === 0 ? '' : 'Only the simulator answers. '}For real models start the gateway with a credential, such as OPENAI_API_KEY (docs/configuration.md), or give an account its own: \`byok set\` (docs/byok.md).`] : []),
    '',
  ].join('\n');
}
