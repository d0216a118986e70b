/** Response headers of answers (contract, sections 5 and 6). */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { formatUsd } from '@signalbox/kernel/money';

export interface RouterHeaderFigures {
  readonly provider: string;
  /** Nano-USD. */
  readonly costNanoUsd: bigint;
  /** Nano-USD; negative savings are shown as 0. */
  readonly savingsNanoUsd: bigint;
  /** `estimate` on streams, whose headers leave before the cost is known. */
  readonly basis: 'estimate' | 'final';
  readonly attempts?: number | undefined;
  readonly decisionId?: string | undefined;
  /** Names of the repairs; undefined = healing did not apply. */
  readonly healed?: readonly string[] | undefined;
  readonly ignoredParams?: readonly string[] | undefined;
}

/** X-Router-* headers of a success. */
export function routerHeaders(figures: RouterHeaderFigures): Record<string, string> {
  const savings = figures.savingsNanoUsd > 0n ? figures.savingsNanoUsd : 0n;
  const headers: Record<string, string> = {
    'X-Router-Provider': figures.provider,
    'X-Router-Cost': formatUsd(figures.costNanoUsd),
    'X-Router-Savings': formatUsd(savings),
    'X-Router-Cost-Basis': figures.basis,
  };
  if (figures.attempts !== undefined) headers['X-Router-Attempts'] = String(figures.attempts);
  if (figures.decisionId !== undefined && figures.decisionId !== '') headers['X-Router-Decision-Id'] = figures.decisionId;
  if (figures.healed !== undefined) headers['X-Router-Healed'] = figures.healed.length === 0 ? 'none' : figures.healed.join(',');
  const ignored = formatIgnoredParams(figures.ignoredParams ?? []);
  if (ignored !== '') headers['X-Router-Ignored-Params'] = ignored;
  return headers;
}

/** Trailers of a stream: the exact figures, under the names of the headers. */
export function routerTrailers(costNanoUsd: bigint, savingsNanoUsd: bigint): Record<string, string> {
  return { 'X-Router-Cost': formatUsd(costNanoUsd), 'X-Router-Savings': formatUsd(savingsNanoUsd > 0n ? savingsNanoUsd : 0n) };
}

/** Fixed headers of every stream. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
};

/** Of streams over HTTP/1.1: announces the trailers. */
export const TRAILER_HEADERS: Readonly<Record<string, string>> = { Trailer: 'X-Router-Cost, X-Router-Savings' };

const IGNORED_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const IGNORED_MAX = 20;

/** A comma list of at most 20 names; names that could not stand in a header are left out. Empty when there are none. */
export function formatIgnoredParams(names: readonly string[]): string {
  return names.filter((name) => IGNORED_NAME.test(name)).slice(0, IGNORED_MAX).join(',');
}

/** A duration in the form of the common format's rate-limit headers: `1s`, `6m0s`, `2h0m5s`; rounded up to seconds. */
export function formatReset(ms: number): string {
  const total = Math.max(0, Math.ceil(ms / 1_000));
  const hours = Math.floor(total / 3_600);
  const minutes = Math.floor((total % 3_600) / 60);
  const seconds = total % 60;
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

/** The x-ratelimit-* trios of the latest admission; a trio is absent where there is no such limit. */
export function rateLimitHeaders(admission: AdmitResponse__Output): Record<string, string> {
  const headers: Record<string, string> = {};
  if (admission.limitRequests !== undefined) {
    headers['x-ratelimit-limit-requests'] = String(admission.limitRequests);
    headers['x-ratelimit-remaining-requests'] = String(admission.remainingRequests ?? 0);
    headers['x-ratelimit-reset-requests'] = formatReset(admission.resetRequestsMs ?? 0);
  }
  if (admission.limitTokens !== undefined) {
    headers['x-ratelimit-limit-tokens'] = admission.limitTokens;
    headers['x-ratelimit-remaining-tokens'] = admission.remainingTokens ?? '0';
    headers['x-ratelimit-reset-tokens'] = formatReset(Number(admission.resetTokensMs ?? 0));
  }
  return headers;
}
