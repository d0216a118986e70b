/** What the journal and the caller are told of a dispatched attempt. Pure functions. */
import type { DispatchEvent, DispatchRequest__Output, Failed } from '@signalbox/contracts/worker';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import { failure, type Failure } from '@signalbox/wires/canonical';
import type { Ending } from './attempt.js';
import type { Charge } from './charge.js';
import type { Conversation } from './conversation.js';
import { withoutSecret, type Credential, type CredentialPool, type TakenCredential } from './credentials.js';
import { wholeHold, type SentCards, type Terms } from './dispatch-terms.js';
import { finishReasonOf, isNothingSaid, isUnseen } from './endings.js';
import type { AttemptEnd, AttemptStart } from './journal.js';
import type { OwnCredential } from './own-credentials.js';
import type { PoolState } from './pool-state.js';
import type { ProviderAdapter } from './provider.js';

/** A request, and the credential and adapter that it is sent with. */
export interface Asking {
  readonly request: DispatchRequest__Output;
  readonly call: CallInfo;
  readonly emit: Emitter<DispatchEvent>;
  readonly terms: Terms;
  /** The account's own credential; undefined for a request on the operator's credentials. */
  readonly own: OwnCredential | undefined;
  readonly credentials: CredentialPool;
  readonly adapter: ProviderAdapter;
  readonly credential: TakenCredential;
}

/** Why the attempt failed or its stream broke off; undefined if it did neither. */
export function failureOf(ending: Ending): Failure | undefined {
  return ending.kind === 'failed' ? ending.failure : ending.kind === 'stream' ? ending.cut : undefined;
}

/** The journal's start record; `quoted` are the cards for the estimated prompt. */
export function startRecord({ request, call, terms, adapter }: Asking, quoted: SentCards, startedAtMs: number): AttemptStart {
  return {
    requestId: request.requestId,
    attempt: request.attempt,
    retryOf: request.retryOf,
    accountId: request.accountId,
    keyId: request.keyId,
    model: request.model,
    provider: adapter.provider,
    endpointId: request.endpointId,
    card: quoted.cardMessage,
    referenceCard: quoted.referenceMessage,
    periods: terms.periods,
    byok: request.byok,
    routedFrom: request.routedFrom,
    decisionId: request.decisionId,
    startedAtMs,
    promptTokens: request.promptTokens,
    held: wholeHold(request),
    holdEpoch: request.holdEpoch,
    draw: request.draw,
    traceparent: call.span?.traceparent ?? '',
    rounds: request.rounds ? { earlierNanoUsd: BigInt(request.earlierNanoUsd), earlierTokens: BigInt(request.earlierTokens) } : undefined,
  };
}

/** The journal's end record; `quoted` are the cards of the start record. */
export function endRecord({ request, own }: Asking, conversation: Conversation, ending: Ending, charge: Charge<SentCards>, quoted: SentCards, totalMs: number, endedAtMs: number): AttemptEnd {
  const { attempt } = conversation;
  const { cards } = charge;
  const finishReason = finishReasonOf(ending, attempt);
  return {
    tokens: charge.tokens,
    costNanoUsd: charge.costNanoUsd,
    savingsNanoUsd: charge.savingsNanoUsd,
    // A cost reported for an account's own credential is not the operator's.
    toldNanoUsd: own === undefined ? charge.toldNanoUsd : undefined,
    cards: cards === quoted ? undefined : { card: cards.cardMessage, referenceCard: cards.referenceMessage },
    source: charge.source,
    flags: charge.flags,
    status: attempt.status,
    failure: failureOf(ending)?.class ?? 'FAILURE_CLASS_UNSPECIFIED',
    ttftMs: attempt.ttftMs,
    totalMs,
    finishReason,
    callsOnly: conversation.isCallsOnly(ending, finishReason),
    undelivered: isUnseen(ending, conversation, request),
    clientLeft: conversation.isClientGone,
    endedAtMs,
  };
}

/** A failure as the caller is told; its public message never contains `credential`. */
export function failedMessage(reason: Failure, credential?: Credential): Failed {
  const publicMessage = credential === undefined ? reason.publicMessage : withoutSecret(reason.publicMessage, credential);
  return { class: reason.class, status: reason.status, retryAfterMs: reason.retryAfterMs, publicMessage, publicParam: reason.publicParam, retryable: reason.retryable };
}

/** The last events of an attempt: its failure, or its end and before that, for a whole or gathered answer, its body. */
export function lastEvents({ request, credential }: Asking, conversation: Conversation, ending: Ending, charge: Charge, usageKnown: { readonly cachedKnown: boolean; readonly reasoningKnown: boolean } | undefined, pool: PoolState | undefined): readonly DispatchEvent[] {
  if (ending.kind === 'failed') return [{ failed: { ...failedMessage(ending.failure, credential), ...pool, ...(ending.isStale === true ? { staleConnection: true } : {}) } }];
  const finishReason = finishReasonOf(ending, conversation.attempt);
  const end: DispatchEvent = {
    end: {
      tokens: charge.tokens,
      costNanoUsd: charge.costNanoUsd.toString(),
      savingsNanoUsd: charge.savingsNanoUsd.toString(),
      source: charge.source,
      flags: charge.flags,
      finishReason,
      ...(ending.kind === 'stream' && ending.cut !== undefined ? { cut: failedMessage(ending.cut, credential) } : {}),
      ...(ending.kind === 'abandoned' ? { cut: failedMessage(failure('STOPPED')) } : {}),
      cachedKnown: usageKnown?.cachedKnown ?? false,
      reasoningKnown: usageKnown?.reasoningKnown ?? false,
      stoppedBy: conversation.attempt.isStoppedByHold || (request.shortened && finishReason === 'length') ? 'cost_cap' : '',
      ...(isNothingSaid(ending, conversation.attempt) ? { nothingSaid: true } : {}),
      cardId: charge.cards.card.id === request.card?.id ? '' : charge.cards.card.id,
    },
  };
  if (ending.kind === 'answer') {
    const { choices, systemFingerprint, serviceTier } = ending.answer;
    return [{ body: { choices, systemFingerprint, serviceTier } }, end];
  }
  const choices = ending.kind === 'stream' && ending.cut === undefined ? conversation.gathered() : undefined;
  if (choices === undefined) return [end];
  const summary = conversation.attempt.summary();
  return [{ body: { choices, systemFingerprint: summary?.systemFingerprint ?? '', serviceTier: summary?.serviceTier ?? '' } }, end];
}
