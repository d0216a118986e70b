/** Tries the attempts of a plan in order, and tells their workers what became of each. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import type { Fault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import { ATTEMPTS_MAX, type Admitted } from './admission.js';
import { answerTerms, type Granted, type HoldQuestion } from './amounts.js';
import type { AttemptReport, Estimate } from './answer.js';
import type { ChatRequest, ForwardedField } from './chat-request.js';
import { runAttempt, type Activity, type Reserve } from './dispatch.js';
import { healingTermsOf } from './healing.js';
import type { Neighbours } from './neighbours.js';
import { ownCredentialsOf } from './own-credentials.js';
import { attemptsLeft } from './present-lists.js';
import { tending, written, writtenAsGiven } from './tellings.js';
import type { Conducted, RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

const IDLE_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS_MAX = 60_000;
/** Output tokens assumed by the pre-flight estimate of a stream's cost. */
const ESTIMATED_OUTPUT_TOKENS = 256;

const NO_REPORTS: readonly AttemptReport[] = [];
const NOBODY_TOLD: readonly Promise<boolean>[] = [];

/** Tries the plan. While another answer is tried for one that is kept in reserve, its worker hears that edge lives: it would end the hold, and charge it, after 30 s. */
export async function dispatchPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start?: RoundStart): Promise<Conducted> {
  const { workers, clock } = neighbours;
  let stopTending: (() => void) | undefined;
  try {
    return await tryPlan(neighbours, turn, plan, admitted, start, (provider, attempt) => (stopTending = tending(clock, () => workers.tend(provider, turn.requestId, attempt))));
  } finally {
    stopTending?.();
  }
}

/** Tries the plan in order until one attempt answers. Nothing is tried again once content reached the client. `start`: of one round of several, whose answered attempts are told of by whoever conducts the rounds. `onReserve` hears of at most one attempt. */
async function tryPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start: RoundStart | undefined, onReserve: (provider: string, attempt: number) => void): Promise<Conducted> {
  const { routing, workers, quota, clock, heartbeatMs, checkSchema, retries } = neighbours;
  const { requestId, caller, answer, request } = turn;
  const accountId = caller.account.id;
  const reports: AttemptReport[] = [];
  /** Grows by those that are tried again, on another credential or at another replica of their worker. */
  const attempts = plan.attempts.slice(0, ATTEMPTS_MAX);
  /** Endpoints that a replica was lost with, or refused: which. */
  const lost = new Map<PlannedAttempt__Output, object>();
  const activity: Activity = { lastSentMs: turn.silentSinceMs ?? clock.monotonicMs() };
  const before = start?.before ?? NO_REPORTS;
  const first = before.length;
  let reserve: { readonly number: number; readonly report: AttemptReport; readonly give: Reserve } | undefined;
  // What failed after a round was answered leaves the hold to what answered.
  const tell = (provider: string, attempt: number, outcome: Outcome): Promise<boolean> => {
    const telling = workers.tellOutcome(provider, requestId, attempt, outcome, { isFollowed: first > 0 && outcome === 'DISCARDED', isReserve: attempt === reserve?.number });
    if (turn.keepClaim !== undefined) allTold.push(telling);
    return telling;
  };
  /** Of a request under an Idempotency-Key: what its workers were told. */
  const allTold: Promise<boolean>[] = [];
  const all = (): readonly AttemptReport[] => (first === 0 ? reports : [...before, ...reports]);
  // Failed attempts whose workers do not know what became of them. One counts as superseded only when a later one is
  // surely in a journal: it gives up its say over the hold, which else nobody would end.
  let untold: { readonly provider: string; readonly number: number; readonly isTraced: boolean }[] = [];
  const tellEarlier = (outcome: 'SUPERSEDED' | 'DISCARDED', kept?: number): readonly Promise<boolean>[] => {
    if (untold.length === 0) return NOBODY_TOLD;
    const telling = untold.filter(({ number }) => number !== kept);
    untold = untold.filter(({ number }) => number === kept);
    return telling.map(({ provider, number }) => tell(provider, number, outcome));
  };
  // True once an attempt is in a worker's journal: that worker then ends the hold when it learns the outcome.
  let isJournaled = false;
  const discard = (): Promise<boolean> => {
    const tellings = tellEarlier('DISCARDED');
    if (!isJournaled && first === 0) quota.release(accountId, requestId, admitted.admission.draw);
    return written(isJournaled ? tellings : [], clock);
  };
  // Whether an answer kept in reserve is superseded is known when a better one has been given.
  let isSuperseding = false;
  const supersede = (): void => {
    isSuperseding = true;
    void tellEarlier('SUPERSEDED', reserve?.number);
  };
  /** Nobody gave a better answer: it is what the client gets, or would have got, and pays. Their workers alone would conclude that it pays for the last. Undefined = none is kept. */
  const settleReserve = (): readonly Promise<boolean>[] | undefined => {
    if (reserve === undefined) return undefined;
    const told = tell(reserve.report.provider, reserve.number, 'DELIVERED');
    untold = untold.filter(({ isTraced }) => isTraced);
    reports[reserve.number - 1] = reserve.report;
    return [told, ...tellEarlier('SUPERSEDED', reserve.number)];
  };
  /**
   * Of a request that edge cut off: true once each of its workers has written down that its attempt is not charged, as edge
   * said of each, so that whatever they conclude or book, the same request may be run again. Not of a stream, whose client
   * is told to wait, of rounds, nor where an answer was kept in reserve.
   */
  const isUncharged = async (): Promise<boolean> => turn.keepClaim !== undefined && start === undefined && !request.stream && reserve === undefined && untold.length === 0 && (await written(allTold, clock));
  const terms = healingTermsOf(request);
  /** The last attempt may have reached its provider. */
  let wasSent = false;
  /** Why no more may be dispatched. */
  let barred: Fault | undefined;
  /** Others were left, and no retry was. */
  let isCutShort = false;

  retries.noteRequest(accountId, attempts[0]?.byok === true);
  for (const planned of attempts) {
    const number = first + reports.length + 1;
    // What its worker refused unsent met no provider: only what follows a call that did adds to the load. Who finds a
    // prompt too long is well, and is not asked again: the next is asked as often as if it had been the first.
    const isRetry = wasSent && reports.at(-1)?.failed?.class !== 'CONTEXT_LENGTH';
    if (isRetry && !retries.take(accountId, planned.byok)) {
      isCutShort = true;
      break;
    }
    if (turn.keepClaim !== undefined) {
      barred = await turn.keepClaim();
      if (barred !== undefined) break;
      // Meanwhile its client may have left, and nobody else has heard of it: its key is free.
      if (number === 1 && answer.isGone()) {
        await discard();
        return { attempts: reports, result: 'refused' };
      }
    }
    isSuperseding = false;
    const { provider, model, sunsetDate } = planned;
    const dropParams = plan.ignoredParams.length === 0 ? planned.dropParams : [...plan.ignoredParams, ...planned.dropParams];
    const result = await runAttempt({
      workers,
      clock,
      heartbeatMs,
      activity,
      answer,
      request: dispatchRequest(turn, plan, planned, admitted, number, start),
      isStream: request.stream,
      choices: request.choices,
      route: { provider, model, sunsetDate, dropParams, decisionId: plan.decisionId, attempts: start === undefined ? number : undefined, head: undefined, estimate: () => estimateOf(request, plan, planned) },
      earlier: all(),
      decisionId: plan.decisionId,
      besides: lost.get(planned),
      healing: terms === undefined ? undefined : { terms, checkSchema, mayFailOver: start === undefined && reserve === undefined && number < attempts.length && retries.hasRoom(accountId, attempts[number]?.byok === true) && (neighbours.unhealedAnswers?.waitMs(accountId) ?? 0) === 0 },
      // Said at once: should this edge and the worker die before the end, the log tells whether this one or the other was given.
      onCommitted: reserve === undefined ? undefined : () => void tellEarlier('SUPERSEDED'),
      onJournaled: () => {
        supersede();
        // Should this edge die now, the round is concluded as soon as those before, which end the hold that it draws on.
        if (start !== undefined) workers.tend(provider, requestId, number);
      },
    });
    const report: AttemptReport = { provider, model, failed: result.kind === 'failed' ? result.failed : undefined, byok: planned.byok, round: start?.round };
    if (result.kind === 'failed' || result.kind === 'cut') routing.doubt(planned.endpointId);
    switch (result.kind) {
      case 'complete':
      case 'cut':
        void tellEarlier('SUPERSEDED');
        if (start === undefined) void tell(provider, number, 'DELIVERED');
        if (reserve !== undefined) neighbours.unhealedAnswers?.note(accountId);
        reports.push(report);
        return { attempts: all(), result: result.kind === 'cut' ? 'cut' : 'answered' };
      case 'gone':
        // The worker concludes the same from the cancel, unless its last event had already left. Unless it is known to
        // be in a journal, earlier attempts are left to their workers, which conclude by themselves.
        if (result.wasSent) {
          // Who was cut off before a word was given nothing, whatever had been generated, was on its way or was held back to be healed, which is all that its worker knows.
          if (result.isOwed) void tell(provider, number, 'DELIVERED');
          else if (start === undefined) void tell(provider, number, 'DISCARDED');
          if (isSuperseding) void tellEarlier('SUPERSEDED');
        } else if (settleReserve() === undefined) void discard();
        if (start === undefined || result.wasSent) reports.push(report);
        return { attempts: all(), result: 'gone', isCutOff: !result.isOwed, isUncharged: !result.isOwed && (await isUncharged()) };
      case 'failed':
        reports.push(report);
        untold.push({ provider, number, isTraced: result.trace !== 'none' });
        wasSent = result.trace !== 'none';
        if (wasSent) isJournaled = true;
        // Once for each: it comes next, and the last of the plan gives way.
        if (result.failed.otherCredential === true && attempts.indexOf(planned) === reports.length - 1) {
          attempts.splice(reports.length, 0, planned);
          attempts.splice(ATTEMPTS_MAX);
        }
        // Once for each: a fault of ours says nothing of the endpoint. Last: the workers of the others are not known to fall.
        if (result.lostAt !== undefined && !lost.has(planned)) {
          lost.set(planned, result.lostAt);
          if (attempts.length < ATTEMPTS_MAX) attempts.push(planned);
        }
        if (result.reserve !== undefined) {
          reserve = { number, report: { provider, model, failed: undefined, byok: planned.byok }, give: result.reserve };
          onReserve(provider, number);
        }
        break;
    }
    if (!(report.failed?.retryable ?? false)) break;
    const next = attempts.splice(reports.length);
    attempts.push(...attemptsLeft(neighbours, turn, next).attempts);
  }
  const settling = settleReserve();
  if (settling !== undefined) {
    await writtenAsGiven(answer, settling, clock);
    if (answer.isGone()) return { attempts: reports, result: 'gone' };
    reserve?.give(reports);
    return { attempts: reports, result: 'answered' };
  }
  await discard();
  answer.refuse(barred === undefined ? { kind: 'attempts', attempts: all(), isCutShort } : { kind: 'fault', fault: barred });
  return { attempts: all(), result: 'refused' };
}

/** At the cards for the estimated prompt, which grows in rounds. */
function estimateOf(request: ChatRequest, plan: DecideResponse__Output, planned: PlannedAttempt__Output): Estimate {
  const card = cardFor(planned.steps, request.promptTokens) ?? planned.card;
  const referenceCard = cardFor(plan.referenceSteps, request.promptTokens) ?? plan.referenceCard;
  assert(card !== null, 'A planned attempt carries its price card.');
  const tokens = { ...NO_TOKENS, inputUncached: request.promptTokens, outputText: Math.min(request.maxTokens ?? ESTIMATED_OUTPUT_TOKENS, ESTIMATED_OUTPUT_TOKENS) };
  const cost = costOf(tokens, priceCardOf(card));
  const reference = referenceCard !== null && referenceCard.id !== '' ? costOf(tokens, priceCardOf(referenceCard)) : cost;
  return { costNanoUsd: cost, savingsNanoUsd: asNanoUsd(reference > cost ? reference - cost : 0n) };
}

/** The request's fields as this endpoint is to get them. */
function fieldsFor({ dropParams, reasoningEffort }: PlannedAttempt__Output, { fields }: ChatRequest): ForwardedField[] {
  if (dropParams.length === 0) return [...fields];
  const sent = fields.filter(({ name }) => !dropParams.includes(name));
  return reasoningEffort === '' ? sent : sent.map((field) => (field.name === 'reasoning_effort' ? { name: field.name, value: Buffer.from(JSON.stringify(reasoningEffort)) } : field));
}

/** What is charged where no provider says: never more than was held for the prompt. Of a file nothing bounds the tokens, so that it is not held for either. */
function promptEstimate({ promptTokens, hasUnboundedParts }: ChatRequest, { promptTokensMax }: HoldQuestion): number {
  return hasUnboundedParts ? promptTokens : Math.min(promptTokens, promptTokensMax);
}

function dispatchRequest({ requestId, caller, request, tools }: Turn, plan: DecideResponse__Output, planned: PlannedAttempt__Output, admitted: Admitted, attempt: number, start: RoundStart | undefined): DispatchRequest {
  assert(planned.card !== null, 'A planned attempt carries its price card.');
  const { admission, hold, question } = admitted;
  const dispatched: DispatchRequest = {
    requestId,
    attempt,
    retryOf: Array.from({ length: attempt - 1 - (start?.before.length ?? 0) }, (_, index) => (start?.before.length ?? 0) + index + 1),
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
    firstByteTimeoutMs: planned.firstByteTimeoutMs,
    // A model that is slow to begin may be slow in between, too.
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
  if (planned.wholeTimeoutMs > 0) dispatched.wholeTimeoutMs = planned.wholeTimeoutMs;
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
    // After a loss of quota's store its worker tells it: a limit that is set by then counts it.
    dispatched.unwatchedTokens = admission.heldTokens;
    return dispatched;
  }
  const terms = answerTerms(planned, question, hold.isTranched, grantedBy(admission));
  dispatched.maxTokens = terms.maxTokens;
  dispatched.shortened = terms.isShortened;
  dispatched.gather = hold.isTranched && !request.stream;
  // The hold is one for all rounds: it holds what those before are charged. After a loss of quota's store the worker tells it.
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

function grantedBy({ heldNanoUsd, heldTokens, roomNanoUsd, roomTokens }: AdmitResponse__Output): Granted {
  return {
    heldNanoUsd: asNanoUsd(heldNanoUsd),
    heldTokens: Number(heldTokens),
    roomNanoUsd: roomNanoUsd === undefined ? undefined : asNanoUsd(roomNanoUsd),
    roomTokens: roomTokens === undefined ? undefined : Number(roomTokens),
  };
}
