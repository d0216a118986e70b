/** The message that asks a worker for one attempt, and the estimated cost of that attempt. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { DispatchRequest } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import { asNanoUsd } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import type { Admitted } from './admission.js';
import { answerTerms, type Granted, type HoldQuestion } from './amounts.js';
import type { Estimate } from './answer.js';
import type { ChatRequest, ForwardedField } from './chat-request.js';
import { ownCredentialsOf } from './own-credentials.js';
import type { RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

/** Silence in the middle of an answer after which an attempt has failed: 30 s, or as long as the first byte may take where that is longer, up to 60 s. */
const IDLE_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS_MAX = 60_000;
/** A provider reads the whole prompt before it says anything. The model's own time to begin includes reading so many tokens; beyond, two thousand a second are waited for (ADR 93). */
const TOKENS_READ_AT_ONCE = 10_000;
const READ_MS_PER_TOKEN = 0.5;
/** For files, whose tokens nobody can tell: as long as a model that has to be loaded takes. */
const READ_FILES_MS = 60_000;
/** No wait for a provider to begin is extended beyond this: it is the longest that routing allows any model. */
const BEGIN_MS_MAX = 600_000;
/** Output tokens assumed by the pre-flight estimate of a stream's cost. */
const ESTIMATED_OUTPUT_TOKENS = 256;

/**
 * The message to the worker of `planned`. `attempt`: its number, from 1 over all rounds. Amounts are decimal strings in
 * nano-USD. `start`: for one round of several, whose hold also covers the charges of the earlier rounds.
 */
export function dispatchRequest({ requestId, caller, request, tools }: Turn, plan: DecideResponse__Output, planned: PlannedAttempt__Output, admitted: Admitted, attempt: number, start: RoundStart | undefined): DispatchRequest {
  assert(planned.card !== null, 'A planned attempt carries its price card.');
  const { admission, hold, question } = admitted;
  const earlierAttempts = start?.before.length ?? 0;
  const dispatched: DispatchRequest = {
    requestId,
    attempt,
    retryOf: Array.from({ length: attempt - 1 - earlierAttempts }, (_, index) => earlierAttempts + index + 1),
    accountId: caller.account.id,
    keyId: caller.key.id,
    endpointId: planned.endpointId,
    model: planned.model,
    provider: planned.provider,
    providerModelId: planned.providerModelId,
    wireProtocol: planned.wireProtocol,
    card: planned.card,
    referenceCard: plan.referenceCard,
    periods: admission.periods,
    heldNanoUsd: admission.heldNanoUsd,
    byok: planned.byok,
    byokHandle: planned.byok ? (ownCredentialsOf(caller).handles.get(planned.provider) ?? '') : '',
    stream: request.stream || hold.isTranched,
    maxTokensParam: planned.maxTokensParam,
    temperatureMax: planned.temperatureMax,
    fields: fieldsFor(planned, request),
    promptTokens: promptEstimate(request, question),
    firstByteTimeoutMs: withReading(planned.firstByteTimeoutMs, request),
    // A model that is slow to begin may also be slow in the middle.
    idleTimeoutMs: Math.min(IDLE_TIMEOUT_MS_MAX, Math.max(IDLE_TIMEOUT_MS, planned.firstByteTimeoutMs)),
    responseFormat: request.needs.responseFormat ?? '',
    routedFrom: request.model,
    decisionId: plan.decisionId,
    clientStream: request.stream,
    maxOutputTokens: planned.maxOutputTokens,
    contextWindow: planned.contextWindow,
    holdEpoch: admission.epoch,
  };
  if (request.mediaTokens > 0) dispatched.mediaTokens = request.mediaTokens;
  if (admission.draw !== undefined) dispatched.draw = admission.draw;
  if (planned.wholeTimeoutMs > 0) dispatched.wholeTimeoutMs = withReading(planned.wholeTimeoutMs, request);
  if (planned.steps.length > 0) dispatched.steps = planned.steps;
  if (plan.referenceSteps.length > 0) dispatched.referenceSteps = plan.referenceSteps;
  if (start !== undefined) {
    dispatched.rounds = true;
    dispatched.tended = true;
    dispatched.toolNames = [...(tools?.names ?? [])];
    dispatched.earlierNanoUsd = String(start.earlierNanoUsd);
    dispatched.earlierTokens = start.earlierTokens;
  }
  if (!question.isLimited) {
    if (request.maxTokens !== undefined) dispatched.maxTokens = request.maxTokens;
    // If quota loses its store, the worker reports these tokens, so that a limit set meanwhile counts them.
    dispatched.unwatchedTokens = admission.heldTokens;
    return dispatched;
  }
  const terms = answerTerms(planned, question, hold.isTranched, grantedBy(admission));
  dispatched.maxTokens = terms.maxTokens;
  dispatched.shortened = terms.isShortened;
  dispatched.gather = hold.isTranched && !request.stream;
  // One hold serves all rounds, and so includes the charges of earlier rounds. If quota loses its store, the worker reports it.
  const earlier = start?.earlierNanoUsd ?? 0n;
  dispatched.heldNanoUsd = String(BigInt(admission.heldNanoUsd) + earlier);
  if (admission.heldTokens !== '0') dispatched.heldTokens = String(BigInt(admission.heldTokens) + BigInt(start?.earlierTokens ?? 0));
  if (terms.heldOutputTokens > 0) {
    dispatched.heldOutputTokens = terms.heldOutputTokens;
    dispatched.wholeNanoUsd = String(terms.wholeNanoUsd + earlier);
    dispatched.outputPriceMax = terms.outputPriceMax.toString();
  }
  return dispatched;
}

/** The time within which a provider must begin, for a prompt of this length. */
function withReading(timeoutMs: number, { promptTokens, hasUnboundedParts }: Pick<ChatRequest, 'promptTokens' | 'hasUnboundedParts'>): number {
  const readingMs = Math.ceil(Math.max(0, promptTokens - TOKENS_READ_AT_ONCE) * READ_MS_PER_TOKEN) + (hasUnboundedParts ? READ_FILES_MS : 0);
  return Math.max(timeoutMs, Math.min(BEGIN_MS_MAX, timeoutMs + readingMs));
}

/** Estimated cost and savings of one attempt, in nano-USD: for the estimated prompt at its price step and at most 256 tokens of output. Savings are never negative. */
export function estimateOf(request: ChatRequest, plan: DecideResponse__Output, planned: PlannedAttempt__Output): Estimate {
  const card = cardFor(planned.steps, request.promptTokens) ?? planned.card;
  const referenceCard = cardFor(plan.referenceSteps, request.promptTokens) ?? plan.referenceCard;
  assert(card !== null, 'A planned attempt carries its price card.');
  const tokens = { ...NO_TOKENS, inputUncached: request.promptTokens, outputText: Math.min(request.maxTokens ?? ESTIMATED_OUTPUT_TOKENS, ESTIMATED_OUTPUT_TOKENS) };
  const cost = costOf(tokens, priceCardOf(card));
  const reference = referenceCard !== null && referenceCard.id !== '' ? costOf(tokens, priceCardOf(referenceCard)) : cost;
  return { costNanoUsd: cost, savingsNanoUsd: asNanoUsd(reference > cost ? reference - cost : 0n) };
}

/** The request's fields as they are sent to this endpoint. */
function fieldsFor({ dropParams, reasoningEffort }: PlannedAttempt__Output, { fields }: ChatRequest): ForwardedField[] {
  if (dropParams.length === 0) return [...fields];
  const sent = fields.filter(({ name }) => !dropParams.includes(name));
  return reasoningEffort === '' ? sent : sent.map((field) => (field.name === 'reasoning_effort' ? { name: field.name, value: Buffer.from(JSON.stringify(reasoningEffort)) } : field));
}

/** Prompt tokens to charge if the provider reports none: never more than were held for, except for files, whose tokens are unbounded and not held for. */
function promptEstimate({ promptTokens, hasUnboundedParts }: ChatRequest, { promptTokensMax }: HoldQuestion): number {
  return hasUnboundedParts ? promptTokens : Math.min(promptTokens, promptTokensMax);
}

function grantedBy({ heldNanoUsd, heldTokens, roomNanoUsd, roomTokens }: AdmitResponse__Output): Granted {
  return {
    heldNanoUsd: asNanoUsd(heldNanoUsd),
    heldTokens: Number(heldTokens),
    roomNanoUsd: roomNanoUsd === undefined ? undefined : asNanoUsd(roomNanoUsd),
    roomTokens: roomTokens === undefined ? undefined : Number(roomTokens),
  };
}
