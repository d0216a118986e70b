/** Dispatch: one attempt, journaled before it starts and before its last event leaves. */
import type { Secret } from '@signalbox/runtime/secret';
import type { DispatchEvent, DispatchRequest__Output, Failed } from '@signalbox/contracts/worker';
import type { PeriodSet__Output, PriceCard__Output } from '@signalbox/contracts/common';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { completionTokens, type PriceCard } from '@signalbox/kernel/tokens';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import { failure, type Failure } from '@signalbox/wires/canonical';
import type { Attempt, Ending } from './attempt.js';
import { BYTES_PER_TOKEN, chargeOf, outputTokensMax, type Charge, type Seen } from './charge.js';
import { Conversation, type Drains } from './conversation.js';
import type { Credential, CredentialPool } from './credentials.js';
import type { Journal } from './journal.js';
import type { WorkerMetrics } from './metrics.js';
import type { Observations } from './observations.js';
import type { ProviderAdapter } from './provider.js';
import type { Upstream } from './upstream.js';

const DRAINS_MAX = 64;

export interface DispatchOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly credentials: CredentialPool;
  readonly journal: Journal;
  readonly observations: Observations;
  readonly metrics: WorkerMetrics;
  readonly clock: Clock;
  readonly log: Log;
  /** Secret of the account's own key at this provider. Without it BYOK attempts fail with NO_CREDENTIAL: never on the operator's key. */
  readonly byokSecret?: (accountId: string, provider: string) => Promise<Secret | undefined>;
}

export interface Dispatcher {
  /** Emits the events of the attempt; settles once the attempt is journaled, which may be after the caller left. Faults: `bad_message`, those of the journal. */
  dispatch(request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>): Promise<void>;
  inFlight(): number;
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>;
}

/** What every attempt needs of its request, checked. */
interface Terms {
  readonly card: PriceCard;
  readonly reference: PriceCard | undefined;
  readonly cardMessage: PriceCard__Output;
  readonly referenceMessage: PriceCard__Output | null;
  readonly periods: PeriodSet__Output;
}

function readTerms(request: DispatchRequest__Output): Terms {
  const { card, referenceCard, periods } = request;
  if (card === null || periods === null || request.requestId === '' || request.attempt < 1) throw new Fault('bad_message', 'dispatch without id, attempt, card or periods');
  const referenceMessage = referenceCard === null || referenceCard.id === '' ? null : referenceCard;
  try {
    return { card: priceCardOf(card), reference: referenceMessage === null ? undefined : priceCardOf(referenceMessage), cardMessage: card, referenceMessage, periods };
  } catch (cause) {
    throw new Fault('bad_message', 'price card', { cause });
  }
}

function failedMessage(reason: Failure): Failed {
  return { class: reason.class, status: reason.status, retryAfterMs: reason.retryAfterMs, publicMessage: reason.publicMessage, publicParam: reason.publicParam, retryable: reason.retryable };
}

function isFailed(ending: Ending): ending is Ending & { readonly kind: 'failed' } {
  return ending.kind === 'failed';
}

function seenOf(ending: Ending, attempt: Attempt, promptTokens: number): Seen {
  const summary = attempt.summary();
  switch (ending.kind) {
    case 'answer':
      return { usage: ending.answer.usage, usageUnreadable: ending.answer.usageUnreadable, outputBytes: ending.answer.outputBytes, isAnswered: true, promptTokens };
    case 'failed':
      return { usage: ending.usage, usageUnreadable: false, outputBytes: 0, isAnswered: false, promptTokens };
    case 'stream':
    case 'abandoned':
      return {
        usage: summary?.usage,
        usageUnreadable: summary?.usageUnreadable ?? false,
        outputBytes: summary?.outputBytes ?? 0,
        isAnswered: ending.kind === 'stream' || (attempt.status >= 200 && attempt.status < 300),
        promptTokens,
      };
  }
}

function finishReasonOf(ending: Ending, attempt: Attempt): string {
  if (ending.kind === 'answer') return ending.answer.finishReason;
  if (ending.kind === 'stream' && ending.cut === undefined) return attempt.summary()?.finishReason ?? '';
  return 'error';
}

export function createDispatcher(options: DispatchOptions): Dispatcher {
  const { adapter, upstream, credentials, journal, observations, metrics, clock } = options;
  let inFlight = 0;
  let draining = 0;
  const idleWaiters = new Set<() => void>();
  const drains: Drains = {
    take: () => {
      if (draining >= DRAINS_MAX) return false;
      draining += 1;
      metrics.draining(draining);
      return true;
    },
    give: () => {
      draining -= 1;
      metrics.draining(draining);
    },
  };

  const noCredential = (request: DispatchRequest__Output, emit: Emitter<DispatchEvent>, isResting: boolean, retryAfterMs: number): void => {
    const reason = { ...failure(isResting ? 'RATE_LIMITED' : 'NO_CREDENTIAL'), retryAfterMs };
    metrics.attempt(reason.class, 0, 0);
    observations.observe({ endpointId: request.endpointId, ok: false, failure: reason.class, stream: request.stream, retryAfterMs, atMs: clock.nowMs() });
    emit.write({ failed: failedMessage(reason) });
  };

  const learn = (ending: Ending, credential: Credential | undefined, model: string): void => {
    if (credential === undefined) return;
    if (ending.kind === 'answer' || ending.kind === 'stream') credentials.succeeded(credential);
    if (!isFailed(ending)) return;
    if (ending.failure.class === 'CREDENTIAL') {
      credentials.refused(credential);
      options.log.warn('The provider refused a credential; it is benched.', { provider: adapter.provider, status: ending.failure.status });
    } else if (ending.failure.class === 'RATE_LIMITED') credentials.rest(credential, model, ending.failure.retryAfterMs);
  };

  const lastEvents = (ending: Ending, charge: Charge, finishReason: string, usageKnown: { readonly cachedKnown: boolean; readonly reasoningKnown: boolean } | undefined): readonly DispatchEvent[] => {
    if (ending.kind === 'failed') return [{ failed: failedMessage(ending.failure) }];
    const end: DispatchEvent = {
      end: {
        tokens: charge.tokens,
        costNanoUsd: charge.costNanoUsd.toString(),
        savingsNanoUsd: charge.savingsNanoUsd.toString(),
        source: charge.source,
        flags: charge.flags,
        finishReason,
        ...(ending.kind === 'stream' && ending.cut !== undefined ? { cut: failedMessage(ending.cut) } : {}),
        cachedKnown: usageKnown?.cachedKnown ?? false,
        reasoningKnown: usageKnown?.reasoningKnown ?? false,
        stoppedBy: '',
      },
    };
    if (ending.kind !== 'answer') return [end];
    const { choices, systemFingerprint, serviceTier } = ending.answer;
    return [{ body: { choices, systemFingerprint, serviceTier } }, end];
  };

  const run = async (request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>): Promise<void> => {
    const terms = readTerms(request);
    let credential: Credential | undefined;
    let secret: Secret | undefined;
    if (request.byok) {
      secret = await options.byokSecret?.(request.accountId, adapter.provider);
      if (secret === undefined) {
        noCredential(request, emit, false, 0);
        return;
      }
    } else {
      const taken = credentials.take(request.providerModelId);
      if (!taken.ok) {
        noCredential(request, emit, taken.isResting, taken.retryAfterMs);
        return;
      }
      credential = taken.credential;
      secret = credential.secret;
    }
    const composing = adapter.compose(request, secret);
    const upstreamRequest = composing instanceof Promise ? await composing : composing;
    if ('class' in upstreamRequest) {
      // It says nothing about the endpoint, so it is not observed.
      metrics.attempt(upstreamRequest.class, 0, 0);
      emit.write({ failed: failedMessage(upstreamRequest) });
      return;
    }
    const startedAt = clock.monotonicMs();
    await journal.start({
      requestId: request.requestId,
      attempt: request.attempt,
      retryOf: request.retryOf,
      accountId: request.accountId,
      keyId: request.keyId,
      model: request.model,
      provider: adapter.provider,
      endpointId: request.endpointId,
      card: terms.cardMessage,
      referenceCard: terms.referenceMessage,
      periods: terms.periods,
      byok: request.byok,
      routedFrom: request.routedFrom,
      decisionId: request.decisionId,
      startedAtMs: clock.nowMs(),
      promptTokens: request.promptTokens,
    });
    const conversation = new Conversation({ adapter, upstream, journal, clock, drains, request, upstreamRequest, call, emit });
    const ending = await conversation.hold();
    const { attempt } = conversation;
    learn(ending, credential, request.providerModelId);
    const seen = seenOf(ending, attempt, request.promptTokens);
    const charge = chargeOf(seen, terms.card, terms.reference, outputTokensMax(request));
    const reason = ending.kind === 'failed' ? ending.failure : ending.kind === 'stream' ? ending.cut : undefined;
    const failureClass = reason?.class ?? 'FAILURE_CLASS_UNSPECIFIED';
    const totalMs = Math.round(clock.monotonicMs() - startedAt);
    const finishReason = finishReasonOf(ending, attempt);
    await journal.end(request.requestId, request.attempt, {
      tokens: charge.tokens,
      costNanoUsd: charge.costNanoUsd,
      savingsNanoUsd: charge.savingsNanoUsd,
      source: charge.source,
      flags: charge.flags,
      status: attempt.status,
      failure: failureClass,
      ttftMs: attempt.ttftMs,
      totalMs,
      finishReason,
      endedAtMs: clock.nowMs(),
    });
    // When the link broke, edge lives or not: its word is waited for, and the journal concludes without it later.
    if (conversation.isCancelled) journal.outcome(request.requestId, request.attempt, 'DELIVERED', false);
    metrics.attempt(ending.kind === 'abandoned' ? 'abandoned' : (reason?.class ?? 'ok'), attempt.ttftMs, totalMs);
    metrics.tokens(charge.tokens, charge.source);
    if (charge.flags.includes('suspect')) {
      metrics.suspect();
      options.log.warn('Usage figures are hard to believe.', { provider: adapter.provider, request_id: request.requestId, told_output: completionTokens(charge.tokens), own_output: Math.ceil(seen.outputBytes / BYTES_PER_TOKEN) });
    }
    // An attempt that the caller gave up says nothing about the endpoint.
    if (ending.kind !== 'abandoned') {
      observations.observe({
        endpointId: request.endpointId,
        ok: reason === undefined,
        failure: failureClass,
        stream: request.stream,
        ttftMs: attempt.ttftMs,
        totalMs,
        outputTokens: completionTokens(charge.tokens),
        retryAfterMs: reason?.retryAfterMs ?? 0,
        atMs: clock.nowMs(),
      });
    }
    if (conversation.isGone || ending.kind === 'abandoned') return;
    for (const event of lastEvents(ending, charge, finishReason, seen.usage)) emit.write(event);
  };

  return {
    dispatch: async (request, call, emit) => {
      inFlight += 1;
      metrics.inFlight(inFlight);
      try {
        await run(request, call, emit);
      } finally {
        inFlight -= 1;
        metrics.inFlight(inFlight);
        if (inFlight === 0) {
          for (const wake of idleWaiters) wake();
          idleWaiters.clear();
        }
      }
    },
    inFlight: () => inFlight,
    idle: () =>
      inFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idleWaiters.add(resolve);
          }),
  };
}
