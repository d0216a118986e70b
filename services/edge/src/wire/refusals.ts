/** Errors for the client from refusals by quota, routing and workers. */
import type { AdmitResponse__Output, Limits } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Failed__Output } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import { formatUsd } from '@signalbox/kernel/money';
import type { Variant } from '@signalbox/kernel/tiers';
import type { PeriodKind } from '@signalbox/ledger-core/periods';
import type { CallerState, Least } from '../domain/answer.js';
import { kindOf, toBigint } from '../domain/counted.js';
import { API_ERRORS, apiError, retryHeaders, type ApiError } from './errors.js';
import type { JsonValue } from './json-text.js';
import { modelNotFound, shownModel } from './model-names.js';

/** Retry-After if no provider named one. */
const ALL_FAILED_RETRY_AFTER_MS = 5_000;
const NOTHING: Least = { nanoUsd: 0n, tokens: 0n };

/** Completions and all other calls are counted separately. */
type RateKind = 'chat' | 'control';
const OF_KIND: Readonly<Record<RateKind, string>> = { chat: '', control: ', completions not counted' };

/** Added only if the shortest request would fit into what is left. */
const mayFit = (left: bigint, least: bigint): string => (left < least ? '' : ' A shorter prompt or a smaller max_tokens may fit.');

function capMetadata(admission: AdmitResponse__Output): { readonly [key: string]: JsonValue } {
  return {
    limit_source: admission.limitSource,
    limit_usd: BigInt(admission.limitNanoUsd),
    spend_usd: BigInt(admission.spendNanoUsd),
    reserved_usd: BigInt(admission.reservedNanoUsd),
    resets_at: resetsAtSeconds(admission),
  };
}

const SPANS: Readonly<Record<PeriodKind, string>> = { day: ' a day', week: ' a week', month: ' a month', plan: '', total: ' in all' };

/** Words for the period of the cap that refused: one of several. Empty if caps of that amount have different periods. */
function spanOf({ limitSource, limitNanoUsd }: AdmitResponse__Output, { caps = [] }: Limits): string {
  const amount = BigInt(limitNanoUsd);
  const kinds = new Set(caps.filter((cap) => (cap.scope === 'account') !== (limitSource === 'key') && toBigint(cap.capNanoUsd) === amount).map((cap) => kindOf(cap.period)));
  const [kind] = kinds;
  return kind === undefined || kinds.size > 1 ? '' : SPANS[kind];
}

/** What running requests hold of a limit, between what is spent and what is left; '' = nothing. */
const heldOf = (held: string, isAny: boolean): string => (isAny ? `, ${held} held for running requests` : '');

/** Gives the figures of the cap, since it may refuse a request before it is used up, and its period, since it may be one of several. */
function capMessage(admission: AdmitResponse__Output, least: bigint, limits: Limits): string {
  const { limitSource, limitNanoUsd, spendNanoUsd, reservedNanoUsd } = admission;
  const [limit, spent, held] = [BigInt(limitNanoUsd), BigInt(spendNanoUsd), BigInt(reservedNanoUsd)];
  const figures = `The cost cap of this ${limitSource === 'key' ? 'key' : 'account'} is $${shortUsd(limit)}${spanOf(admission, limits)}; $${shortUsd(spent)} is spent`;
  if (spent >= limit) return `${figures}.`;
  return `${figures}${heldOf(`$${shortUsd(held)} is`, held > 0n)}, and what is left is less than this request may cost.${mayFit(limit - spent - held, least)}`;
}

/** As above, for the trial credit. */
function trialMessage({ limitNanoUsd, spendNanoUsd, reservedNanoUsd }: AdmitResponse__Output, least: bigint): string {
  const [limit, spent, held] = [BigInt(limitNanoUsd), BigInt(spendNanoUsd), BigInt(reservedNanoUsd)];
  if (spent >= limit) return API_ERRORS.trial_credit_exhausted.message;
  return `Of the trial credit of $${shortUsd(limit)}, $${shortUsd(spent)} is spent${heldOf(`$${shortUsd(held)} is`, held > 0n)}, and what is left is less than this request may cost.${mayFit(limit - spent - held, least)}`;
}

const allotmentName = ({ ofOwnCredentials }: AdmitResponse__Output): string => (ofOwnCredentials ? 'allotment of tokens over your own credentials' : 'token allotment');

/** As above, for an allotment, whose amounts are tokens. */
function allotmentMessage(admission: AdmitResponse__Output, least: bigint): string {
  const [limit, used, held] = [BigInt(admission.limitNanoUsd), BigInt(admission.spendNanoUsd), BigInt(admission.reservedNanoUsd)];
  if (used >= limit) return `The ${allotmentName(admission)} of this period is used up.`;
  return `The ${allotmentName(admission)} of this period is ${limit}; ${used} are used${heldOf(`${held} are`, held > 0n)}, and what is left is less than this request may use.${mayFit(limit - used - held, least)}`;
}

/** At least two decimals, without further trailing zeros. */
function shortUsd(nanoUsd: bigint): string {
  return formatUsd(nanoUsd).replace(/(\.\d\d\d*?)0+$/, '$1');
}

function resetsAtSeconds(admission: AdmitResponse__Output): number | null {
  return admission.resetsAtMs === undefined ? null : Math.ceil(Number(admission.resetsAtMs) / 1_000);
}

const requests = (count: number): string => `${count} request${count === 1 ? '' : 's'}`;

/** Names the key or account whose rate is reached. If both rates are equal, it is the account's, which is reached whenever the key's is. */
function rateMessage({ limitRequests }: AdmitResponse__Output, { requestsPerMinute, keyRequestsPerMinute }: Limits, kind: RateKind): string {
  const isOfKey = keyRequestsPerMinute !== undefined && limitRequests === keyRequestsPerMinute && limitRequests !== requestsPerMinute;
  return `Rate limit reached: this ${isOfKey ? 'key' : 'account'} may make ${requests(limitRequests ?? requestsPerMinute ?? 0)} a minute${OF_KIND[kind]}.`;
}

/** When quota decided, by its own clock, which also sets `resetsAtMs`; the clock here may differ. */
function decidedAtMs({ periods }: AdmitResponse__Output, nowMs: number): number {
  return Number(periods?.reservedAtMs ?? 0) || nowMs;
}

const CALLER_ERRORS = { expired: 'api_key_expired', revoked: 'api_key_revoked', disabled: 'invalid_api_key', suspended: 'account_suspended', unknown: 'invalid_api_key', 'session-over': 'invalid_session' } as const;

/** The error for a key or session that may not be used. */
export function callerToApiError(state: CallerState): ApiError {
  return apiError(CALLER_ERRORS[state], state === 'disabled' ? { message: 'The API key is disabled.' } : {});
}

export interface AdmissionAsked {
  /** What the shortest request would need of the limit. */
  readonly least?: Least | undefined;
  /** The limits of the admission. */
  readonly limits?: Limits;
  readonly kind?: RateKind;
}

/** The error of an admission that was refused; `nowMs` is the wall clock. Asserts that it was refused. */
export function admissionToApiError(admission: AdmitResponse__Output, nowMs: number, { least = NOTHING, limits = {}, kind = 'chat' }: AdmissionAsked = {}): ApiError {
  const resetMs = admission.resetsAtMs === undefined ? undefined : Math.max(1, Number(admission.resetsAtMs) - decidedAtMs(admission, nowMs));
  switch (admission.decision) {
    case 'RATE_LIMITED':
      return apiError('requests_rate_limited', { message: rateMessage(admission, limits, kind), retryAfterMs: admission.retryAfterMs, metadata: { limit_source: 'requests_per_minute', retryable: true } });
    case 'BURST_LIMITED':
      return apiError('requests_rate_limited', { message: `Rate limit reached: this account may make ${requests(limits.burstPerSecond ?? 0)} a second${OF_KIND[kind]}.`, retryAfterMs: admission.retryAfterMs, metadata: { limit_source: 'burst', retryable: true } });
    case 'COST_CAPPED':
      return apiError('cost_cap_exceeded', { message: capMessage(admission, least.nanoUsd, limits), metadata: capMetadata(admission), ...(resetMs === undefined ? {} : { resetMs }) });
    case 'TRIAL_EXHAUSTED':
      return apiError('trial_credit_exhausted', { message: trialMessage(admission, least.nanoUsd), metadata: { ...capMetadata(admission), limit_source: 'account' } });
    case 'BLOCKED_BY_LIVE':
      return blockedToApiError(admission);
    case 'ALLOTMENT_EXHAUSTED': {
      const waitMs = resetMs ?? (admission.retryAfterMs > 0 ? admission.retryAfterMs : undefined);
      return apiError('insufficient_quota', {
        message: allotmentMessage(admission, least.tokens),
        metadata: { limit_source: 'account', resets_at: resetsAtSeconds(admission) },
        ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
      });
    }
    case 'ADMITTED':
    case 'DECISION_UNSPECIFIED':
      assert(false, 'Only a refused admission becomes an error.');
  }
}

/** Only the holds of running requests leave no room: status and code are those of the limit, but with a short Retry-After. */
function blockedToApiError(admission: AdmitResponse__Output): ApiError {
  const retryAfterMs = Math.min(5_000, Math.max(1_000, admission.retryAfterMs));
  const message = (what: string): string => `Requests that are still running hold the rest of ${what}. Retry shortly.`;
  switch (admission.blockedAs) {
    case 'ALLOTMENT_EXHAUSTED':
      return { ...apiError('insufficient_quota', { message: message(`the ${allotmentName(admission)}`), metadata: { limit_source: 'in_flight', resets_at: resetsAtSeconds(admission) } }), headers: retryHeaders(retryAfterMs) };
    case 'TRIAL_EXHAUSTED':
      return apiError('trial_credit_exhausted', { message: message('the trial credit'), retryAfterMs, metadata: { ...capMetadata(admission), limit_source: 'in_flight' } });
    default:
      return apiError('cost_cap_exceeded', { message: message('a cost cap'), retryAfterMs, metadata: { ...capMetadata(admission), limit_source: 'in_flight' } });
  }
}

/** Sentences, each with a leading blank, about what in the request excludes providers; '' = not known. */
function inTheWay({ excludedBy, ignoredParams, untakenParams, unsetProviders, absentProviders }: DecideResponse__Output): string {
  const names = ignoredParams.filter((name) => name.startsWith('provider.'));
  const listed = excludedBy.includes('allow_list') ? " 'allow_list' is the account's policy (GET /api/policy) and this key's allowed_models; GET /v1/models lists what both let it use." : '';
  const untaken = untakenParams.length === 0 ? '' : ` Not taken as they are by each of its endpoints: ${untakenParams.join(', ')}.`;
  const unset = unsetProviders.length === 0 ? '' : ` Asked for, and not set up here: ${unsetProviders.join(', ')}.`;
  const absent = absentProviders.length === 0 ? '' : ` Asked for, and not serving any of it here: ${absentProviders.join(', ')}.`;
  return `${listed}${untaken}${unset}${absent}${names.length === 0 ? '' : ` Of no provider that is known here: ${names.join(', ')}.`}`;
}

/** The error for a model that is no longer served. `fallbackModels`: served models that this key may use. */
export function modelDeprecated(model: string, fallbackModels: readonly string[]): ApiError {
  return apiError('model_deprecated', { param: 'model', message: `The model '${shownModel(model)}' is no longer served.`, metadata: { fallback_models: fallbackModels } });
}

/** The error for a decision without a plan; `model`: the id that the client sent. Asserts that it was refused. */
export function refusalToApiError(decision: DecideResponse__Output, model: string, variant: Variant): ApiError {
  switch (decision.refusal) {
    case 'MODEL_NOT_FOUND':
      return apiError('model_not_found', { param: 'model', message: modelNotFound(model, decision, variant) });
    case 'MODEL_DEPRECATED':
      return modelDeprecated(model, decision.fallbackModels);
    case 'NO_ELIGIBLE_PROVIDER':
      return apiError('no_eligible_provider', { param: 'model', ...(decision.excludedBy.length === 0 ? {} : { message: `No provider of this model meets the requirements of the request; left out by: ${decision.excludedBy.join(', ')}.${inTheWay(decision)}` }), metadata: { excluded_by: decision.excludedBy } });
    case 'CONTEXT_LENGTH_EXCEEDED':
      if (decision.answerLimit !== undefined) return apiError('invalid_value', { param: 'max_tokens', message: `Invalid value for 'max_tokens' (or 'max_completion_tokens'): expected at most ${decision.answerLimit}, which is the longest answer that can be had to this request.` });
      return apiError('context_length_exceeded', {
        param: 'messages',
        ...(decision.contextLimit === 0 ? {} : { message: `The conversation is longer than the model can read (${decision.contextLimit} tokens, the answer included).` }),
      });
    case 'ALL_UNHEALTHY':
      return allAttemptsFailed([], decision.retryAfterMs);
    case 'REFUSAL_UNSPECIFIED':
      assert(false, 'Only a refused decision becomes an error.');
  }
}

export interface FailedAttempt {
  readonly provider: string;
  /** Undefined for an attempt that did not fail; it is skipped. */
  readonly failed: Failed__Output | undefined;
  /** It ran on the account's own credential. */
  readonly byok: boolean;
}

/**
 * The error when no attempt answered: 400 when the last one blames the request; 503 of ours when quota was away, or accounts,
 * which keeps own credentials; else 503 with the shortest wait that a provider named, or 5 s. The wait of one credential
 * while another was free (`hintMs`) can only shorten that, since the other may not have to wait. An empty list means that
 * every breaker was open, the first of them for another `retryAfterMs`; 0 = unknown. Beside attempts it is the wait of an
 * endpoint with more room. `isCutShort`: planned attempts were not made, so the request is not blamed. Nor is it for its
 * length where a provider that did not judge it has failed, or is to be waited for.
 */
export function allAttemptsFailed(attempts: readonly FailedAttempt[], retryAfterMs = 0, isCutShort = false): ApiError {
  const failures = attempts.flatMap(({ provider, failed, byok }) => (failed === undefined ? [] : [{ provider, failed, byok }]));
  const metadata = { previous_errors: failures.map(({ provider, failed }) => ({ provider, status: failed.status === 0 ? null : failed.status, code: failed.class.toLowerCase() })) };
  const last = failures.at(-1)?.failed;
  const name = last === undefined || isCutShort || mayFitElsewhere(failures, retryAfterMs > 0) ? undefined : clientErrorName(last);
  if (last !== undefined && name !== undefined) return requestFault(name, last, metadata);
  const isHint = (ms: number): boolean => ms > 0;
  const hints = [...failures.map(({ failed }) => failed.retryAfterMs), retryAfterMs].filter(isHint);
  const waitMs = Math.min(...(hints.length === 0 ? [ALL_FAILED_RETRY_AFTER_MS] : hints), ...failures.map(({ failed }) => failed.hintMs ?? 0).filter(isHint));
  if (last?.class === 'QUOTA_AWAY') return apiError('quota_unavailable', { retryAfterMs: last.retryAfterMs > 0 ? last.retryAfterMs : ALL_FAILED_RETRY_AFTER_MS, metadata: { ...metadata, retryable: true } });
  const [first] = failures;
  if (first !== undefined && failures.every(({ failed }) => failed.class === 'ACCOUNTS_AWAY')) {
    return apiError('accounts_unavailable', { message: `Your own credential at ${first.provider} cannot be read here right now, which is no fault of yours or of the credential. Please retry.`, retryAfterMs: waitMs, metadata: { ...metadata, retryable: true } });
  }
  const ownMessage = failures.length > 0 && failures.every(({ byok }) => byok) ? ownFailureMessage(failures) : undefined;
  const message = ownMessage === undefined ? {} : { message: ownMessage };
  return apiError('all_models_unavailable', { ...message, retryAfterMs: waitMs, metadata: { ...metadata, retryable: true } });
}

/** Failures that pass, as far as is known. */
const PASSING: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['RATE_LIMITED', 'PROVIDER_ERROR', 'TIMEOUT_FIRST_BYTE', 'TIMEOUT_IDLE', 'CONNECT', 'DISCONNECTED', 'EMPTY', 'GARBAGE']);

/** True for a prompt that was too long for the last provider, while another, whose window may be larger, could not be asked. */
function mayFitElsewhere(failures: readonly { readonly provider: string; readonly failed: Failed__Output }[], isOtherDown: boolean): boolean {
  if (failures.at(-1)?.failed.class !== 'CONTEXT_LENGTH') return false;
  const judges = new Set(failures.filter(({ failed }) => failed.class === 'CONTEXT_LENGTH').map(({ provider }) => provider));
  return isOtherDown || failures.some(({ provider, failed }) => PASSING.has(failed.class) && !judges.has(provider));
}

const OF_CREDENTIAL: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['CREDENTIAL', 'NO_CREDENTIAL', 'ACCOUNTS_AWAY']);

/** The message for a request on the account's own credentials only, which explains why no other was used. Undefined if credentials caused only some of the failures. */
function ownFailureMessage(failures: readonly { readonly provider: string; readonly failed: Failed__Output }[]): string | undefined {
  const providers = [...new Set(failures.map(({ provider }) => provider))].join(', ');
  const isAll = (isOne: (failed: Failed__Output) => boolean): boolean => failures.every(({ failed }) => isOne(failed));
  if (isAll((failed) => failed.class === 'CREDENTIAL' || failed.class === 'NO_CREDENTIAL')) {
    const [{ provider } = { provider: '' }] = failures;
    return `Your own credential at ${provider} was refused there, or cannot be used now. Check it, and set it anew with PUT /api/providers/${provider}.`;
  }
  if (!isAll((failed) => !OF_CREDENTIAL.has(failed.class))) return undefined;
  const what = isAll((failed) => failed.class === 'RATE_LIMITED') ? `is rate-limited at ${providers} right now` : `could not be served by ${providers} right now`;
  return `This request, which runs on your own credential, ${what}. The credentials of this gateway are not asked in its place.`;
}

type RequestFaultName = 'invalid_value' | 'context_length_exceeded' | 'content_policy_violation';

function requestFault(name: RequestFaultName, { publicMessage, publicParam }: Failed__Output, metadata: NonNullable<ApiError['metadata']>): ApiError {
  return apiError(name, {
    metadata,
    ...(publicMessage === '' ? {} : { message: publicMessage }),
    ...(publicParam === '' ? (name === 'context_length_exceeded' ? { param: 'messages' } : {}) : { param: publicParam }),
  });
}

function clientErrorName(failed: Failed__Output): RequestFaultName | undefined {
  if (failed.class === 'BAD_REQUEST') return 'invalid_value';
  if (failed.class === 'CONTEXT_LENGTH') return 'context_length_exceeded';
  return failed.class === 'CONTENT_POLICY' ? 'content_policy_violation' : undefined;
}

/** For a stream that had begun when the service was stopped. A retry is charged again. */
export const STOPPED: ApiError = apiError('overloaded', { message: 'The service is being stopped or replaced. What was delivered is charged; if the request is sent again, that is charged as well.', metadata: { retryable: true, charged: true } });

/** The error inside the last chunk of a stream that broke after content. Its status is not sent, since the headers have been. */
export function cutToApiError(failed: Failed__Output): ApiError {
  if (failed.class === 'STOPPED') return STOPPED;
  if (failed.class === 'QUOTA_AWAY') return apiError('quota_unavailable', { metadata: { retryable: true } });
  const name = clientErrorName(failed);
  // A retry would end in the same way and be charged again.
  if (name !== undefined) return requestFault(name, failed, { retryable: false });
  const timedOut = failed.class === 'TIMEOUT_IDLE' || failed.class === 'TIMEOUT_FIRST_BYTE';
  const closed = failed.class === 'DISCONNECTED' || failed.class === 'CONNECT';
  return {
    status: 503,
    type: 'server_error',
    code: timedOut ? 'provider_timeout' : closed ? 'provider_disconnected' : 'provider_error',
    param: null,
    message: timedOut ? 'The provider stopped sending before finishing.' : closed ? 'The provider closed the stream before finishing.' : 'The provider failed before finishing.',
    metadata: { retryable: true },
  };
}
