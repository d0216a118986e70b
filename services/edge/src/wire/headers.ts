/** Response headers of answers (contract, sections 5 and 6). */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { formatUsd } from '@signalbox/kernel/money';

/** Names and values in turn, the form that node:http writes out without looking anything up. */
export type HeaderList = string[];

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
  readonly model: string;
  /** `YYYY-MM-DD`: from that day on the endpoint that answers serves no more; empty = none is known. */
  readonly sunsetDate?: string | undefined;
}

function formatSavings(savingsNanoUsd: bigint): string {
  return formatUsd(savingsNanoUsd > 0n ? savingsNanoUsd : 0n);
}

/** Adds the X-Router-* headers of a success. */
export function addRouterHeaders(headers: HeaderList, figures: RouterHeaderFigures): void {
  const { attempts, decisionId = '', healed, ignoredParams } = figures;
  headers.push('X-Router-Provider', figures.provider, 'X-Router-Cost', formatUsd(figures.costNanoUsd), 'X-Router-Savings', formatSavings(figures.savingsNanoUsd), 'X-Router-Cost-Basis', figures.basis);
  if (attempts !== undefined) headers.push('X-Router-Attempts', String(attempts));
  if (decisionId !== '') headers.push('X-Router-Decision-Id', decisionId);
  if (healed !== undefined) headers.push('X-Router-Healed', formatHealed(healed));
  if (figures.sunsetDate) addDeprecation(headers, figures.model, figures.sunsetDate);
  if (ignoredParams === undefined || ignoredParams.length === 0) return;
  const ignored = formatIgnoredParams(ignoredParams);
  if (ignored !== '') headers.push('X-Router-Ignored-Params', ignored);
}

/** Models are announced as deprecated this long before their end (contract, section 14). */
const NOTICE_SECONDS = 30 * 86_400;

/** `Deprecation` as of RFC 9745, `Sunset` as of RFC 8594. */
function addDeprecation(headers: HeaderList, model: string, sunsetDate: string): void {
  const sunsetMs = Date.parse(sunsetDate);
  if (Number.isNaN(sunsetMs)) return;
  headers.push('Deprecation', `@${String(Math.floor(sunsetMs / 1_000) - NOTICE_SECONDS)}`, 'Sunset', new Date(sunsetMs).toUTCString(), 'Link', `</v1/models/${encodeURI(model)}?detail=full>; rel="deprecation"`);
}

function formatHealed(healed: readonly string[]): string {
  return healed.length === 0 ? 'none' : healed.join(',');
}

export interface RouterTrailerFigures {
  readonly provider: string;
  /** Absent, as the savings are, where it is not known. */
  readonly costNanoUsd?: bigint;
  readonly savingsNanoUsd?: bigint;
  /** Undefined = the headers told them, and which provider answers. */
  readonly attempts?: number | undefined;
  readonly healed?: readonly string[] | undefined;
}

/** Trailers of a stream: the exact figures, under the names of the headers. */
export function routerTrailers({ provider, costNanoUsd, savingsNanoUsd, attempts, healed }: RouterTrailerFigures): Record<string, string> {
  return {
    ...(costNanoUsd === undefined || savingsNanoUsd === undefined ? {} : { 'X-Router-Cost': formatUsd(costNanoUsd), 'X-Router-Savings': formatSavings(savingsNanoUsd) }),
    ...(attempts === undefined ? {} : { 'X-Router-Provider': provider, 'X-Router-Attempts': String(attempts) }),
    ...(healed === undefined ? {} : { 'X-Router-Healed': formatHealed(healed) }),
  };
}

/** Fixed headers of every stream. */
export const STREAM_HEADERS: readonly string[] = ['Content-Type', 'text/event-stream; charset=utf-8', 'Cache-Control', 'no-cache, no-transform', 'X-Accel-Buffering', 'no'];

/** Of streams over HTTP/1.1: announces the trailers, with what is known at the end alone. */
export function trailerHeader({ attempts, healed }: { readonly attempts: boolean; readonly healed: boolean }): readonly string[] {
  return ['Trailer', `X-Router-Cost, X-Router-Savings${attempts ? ', X-Router-Provider, X-Router-Attempts' : ''}${healed ? ', X-Router-Healed' : ''}`];
}

const IGNORED_NAME = /^[A-Za-z0-9_.[\]-]{1,64}$/;
const IGNORED_MAX = 20;

/** A comma list of at most 20 names; names that could not stand in a header are left out. Empty when there are none. */
export function formatIgnoredParams(names: readonly string[]): string {
  const told: string[] = [];
  for (const name of names) {
    if (told.length === IGNORED_MAX) break;
    if (IGNORED_NAME.test(name)) told.push(name);
  }
  return told.join(',');
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

/** Adds the x-ratelimit-* trios of an admission; a trio is absent where there is no such limit. */
export function addRateLimitHeaders(headers: HeaderList, admission: AdmitResponse__Output): void {
  const { limitRequests, limitTokens } = admission;
  if (limitRequests !== undefined) {
    headers.push('x-ratelimit-limit-requests', String(limitRequests), 'x-ratelimit-remaining-requests', String(admission.remainingRequests ?? 0), 'x-ratelimit-reset-requests', formatReset(admission.resetRequestsMs ?? 0));
  }
  if (limitTokens !== undefined) {
    headers.push('x-ratelimit-limit-tokens', limitTokens, 'x-ratelimit-remaining-tokens', admission.remainingTokens ?? '0', 'x-ratelimit-reset-tokens', formatReset(Number(admission.resetTokensMs ?? 0)));
  }
}
