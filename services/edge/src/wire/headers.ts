/** Response headers and trailers of answers (docs/api.md). */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { formatUsd } from '@signalbox/kernel/money';

/** Names and values in alternation, the form that node:http writes fastest. */
export type HeaderList = string[];

export interface RouterHeaderFigures {
  readonly provider: string;
  /** Nano-USD. */
  readonly costNanoUsd: bigint;
  /** Nano-USD; negative savings are shown as 0. */
  readonly savingsNanoUsd: bigint;
  /** `estimate` for streams, whose headers are sent before the cost is known. */
  readonly basis: 'estimate' | 'final';
  readonly attempts?: number | undefined;
  readonly decisionId?: string | undefined;
  /** Names of the repairs; undefined = healing did not apply. */
  readonly healed?: readonly string[] | undefined;
  readonly ignoredParams?: readonly string[] | undefined;
  readonly model: string;
  /** `YYYY-MM-DD`: from that day on the endpoint no longer serves; empty = none is known. */
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

/** The date in `Deprecation` is 30 days before the endpoint's end. */
const NOTICE_SECONDS = 30 * 86_400;

/** `Deprecation` as in RFC 9745, `Sunset` as in RFC 8594. */
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
  /** Absent, like the savings, if not known. */
  readonly costNanoUsd?: bigint;
  readonly savingsNanoUsd?: bigint;
  /** Undefined = the headers already had this number, and the provider. */
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

/** For streams over HTTP/1.1: announces the trailers. */
export function trailerHeader({ attempts, healed }: { readonly attempts: boolean; readonly healed: boolean }): readonly string[] {
  return ['Trailer', `X-Router-Cost, X-Router-Savings${attempts ? ', X-Router-Provider, X-Router-Attempts' : ''}${healed ? ', X-Router-Healed' : ''}`];
}

const IGNORED_NAME = /^[A-Za-z0-9_.[\]-]{1,64}$/;
const IGNORED_MAX = 20;

/** A comma-separated list of at most 20 names, without names that a header cannot contain; '' = none. */
export function formatIgnoredParams(names: readonly string[]): string {
  const told: string[] = [];
  for (const name of names) {
    if (told.length === IGNORED_MAX) break;
    if (IGNORED_NAME.test(name)) told.push(name);
  }
  return told.join(',');
}

/** A duration as in OpenAI's rate-limit headers: `1s`, `6m0s`, `2h0m5s`; rounded up to seconds. */
export function formatReset(ms: number): string {
  const total = Math.max(0, Math.ceil(ms / 1_000));
  const hours = Math.floor(total / 3_600);
  const minutes = Math.floor((total % 3_600) / 60);
  const seconds = total % 60;
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

/** Adds the x-ratelimit-* headers of an admission: three for each limit that exists. */
export function addRateLimitHeaders(headers: HeaderList, admission: AdmitResponse__Output): void {
  const { limitRequests, limitTokens } = admission;
  if (limitRequests !== undefined) {
    headers.push('x-ratelimit-limit-requests', String(limitRequests), 'x-ratelimit-remaining-requests', String(admission.remainingRequests ?? 0), 'x-ratelimit-reset-requests', formatReset(admission.resetRequestsMs ?? 0));
  }
  if (limitTokens !== undefined) {
    headers.push('x-ratelimit-limit-tokens', limitTokens, 'x-ratelimit-remaining-tokens', admission.remainingTokens ?? '0', 'x-ratelimit-reset-tokens', formatReset(Number(admission.resetTokensMs ?? 0)));
  }
}
