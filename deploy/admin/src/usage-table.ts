/** Sums of usage as a table for people. */
import { aligned } from './aligned.js';
import { harmlessText } from './readable.js';

interface Sums {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_usd: number;
  readonly charge_usd: number;
  readonly savings_usd: number;
}

const GROUPS = ['account', 'day', 'model', 'provider', 'key'] as const;

type Row = Sums & { readonly name?: string | null; readonly latency_ms_p50: number | null; readonly latency_ms_p95: number | null } & Readonly<Partial<Record<(typeof GROUPS)[number], string>>>;

export interface Usage {
  readonly rows: readonly Row[];
  readonly total: Sums;
  readonly has_more: boolean;
}

/** To the nano-dollar, so that a column adds up to its sum. */
const usd = (amount: number): string => amount.toFixed(9);
const ms = (value: number | null): string => (value === null ? '-' : String(Math.round(value)));
const sums = (row: Sums): readonly string[] => [String(row.requests), String(row.prompt_tokens), String(row.completion_tokens), usd(row.cost_usd), usd(row.charge_usd), usd(row.savings_usd)];

/** One row per group, and one for their sum. */
export function usageTable({ rows, total, has_more: hasMore }: Usage): string {
  const group = GROUPS.find((name) => rows[0]?.[name] !== undefined);
  if (group === undefined) return 'Nothing was used.\n';
  const label = (row: Row): string => harmlessText(group === 'account' && row.name ? `${row.account} ${row.name}` : row[group]);
  const table = aligned([
    [group, 'requests', 'prompt tokens', 'completion tokens', 'cost USD', 'charge USD', 'savings USD', 'ms p50', 'p95'],
    ...rows.map((row) => [label(row), ...sums(row), ms(row.latency_ms_p50), ms(row.latency_ms_p95)]),
    [hasMore ? 'sum of these' : 'sum', ...sums(total), '', ''],
  ]);
  return `${table}\n${hasMore ? 'There are more: --limit N shows up to 1000.\n' : ''}`;
}
