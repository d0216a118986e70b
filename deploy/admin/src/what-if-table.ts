/** Formats a comparison of decisions as a table. */
import { aligned } from './aligned.js';

interface Side {
  readonly expected_cost_usd: number;
  /** Null if nothing was compared. */
  readonly predicted_quality: number | null;
  readonly expected_savings_usd: number;
  readonly models: readonly { readonly model: string; readonly requests: number }[];
}

export interface WhatIf {
  readonly decisions: number;
  readonly compared: number;
  readonly moved: number;
  readonly refused: number;
  readonly skipped: number;
  readonly recorded: Side;
  readonly changed: Side;
}

const MODELS_MAX = 10;

const usd = (amount: number): string => amount.toFixed(6);
const percent = (before: number, after: number): string => (before === 0 ? '' : `${after >= before ? '+' : ''}${((after / before - 1) * 100).toFixed(1)} %`);
const points = (before: number, after: number): string => `${after >= before ? '+' : ''}${((after - before) * 100).toFixed(2)} points`;

/** Expected cost, predicted quality and savings of both sides, then the models that are chosen first most often. */
export function whatIfTable({ decisions, compared, moved, refused, skipped, recorded, changed }: WhatIf): string {
  const heading = `${String(decisions)} decisions read: ${String(compared)} compared, ${String(moved)} of them moved, ${String(refused)} would be refused, ${String(skipped)} skipped (pinned models, refusals of then).`;
  if (recorded.predicted_quality === null || changed.predicted_quality === null) return `${heading}\n`;
  const counts = new Map(recorded.models.map(({ model, requests }) => [model, [requests, 0] as [number, number]]));
  for (const { model, requests } of changed.models) counts.set(model, [counts.get(model)?.[0] ?? 0, requests]);
  const models = [...counts].sort(([, left], [, right]) => Math.max(...right) - Math.max(...left)).slice(0, MODELS_MAX);
  const table = aligned([
    ['', 'recorded', 'changed', 'difference'],
    ['expected cost, USD', usd(recorded.expected_cost_usd), usd(changed.expected_cost_usd), percent(recorded.expected_cost_usd, changed.expected_cost_usd)],
    ['predicted quality', recorded.predicted_quality.toFixed(4), changed.predicted_quality.toFixed(4), points(recorded.predicted_quality, changed.predicted_quality)],
    ['expected savings, USD', usd(recorded.expected_savings_usd), usd(changed.expected_savings_usd), percent(recorded.expected_savings_usd, changed.expected_savings_usd)],
    ...models.map(([model, [before, after]]) => [`requests to ${model}`, String(before), String(after), '']),
  ]);
  return `${heading}\n\n${table}\n`;
}
