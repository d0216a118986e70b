/** Tries the attempts of a plan in order, and tells their workers what became of each. */
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { Fault } from '@signalbox/kernel/fault';
import type { Admitted } from './admission.js';
import type { AttemptReport } from './answer.js';
import { AttemptOutcomes } from './attempt-outcomes.js';
import { AttemptQueue } from './attempt-queue.js';
import { runAttempt, type Activity, type AttemptResult, type Healing } from './dispatch.js';
import { dispatchRequest, estimateOf } from './dispatch-request.js';
import { healingTermsOf } from './healing.js';
import type { Neighbours } from './neighbours.js';
import { ownCredentialsOf } from './own-credentials.js';
import { attemptsLeft } from './present-lists.js';
import { tending, writtenAsGiven } from './tellings.js';
import type { Conducted, RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

/**
 * Tries the plan until one attempt answers; never again once content reached the client. The answer or error goes to
 * `turn.answer`. `start`: for one round of several; the outcomes of its answered attempts are then told by tool-rounds.ts.
 */
export async function dispatchPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start?: RoundStart): Promise<Conducted> {
  const { workers, clock } = neighbours;
  let stopTending: (() => void) | undefined;
  // While another attempt is made, the worker of the answer in reserve is told that edge is alive: after 30 s without it, the worker would end the hold and charge the answer.
  const onReserve = (provider: string, attempt: number): void => {
    stopTending = tending(clock, () => workers.tend(provider, turn.requestId, attempt));
  };
  try {
    return await tryPlan(neighbours, turn, plan, admitted, start, onReserve);
  } finally {
    stopTending?.();
  }
}

/** `onReserve` is called at most once. */
async function tryPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start: RoundStart | undefined, onReserve: (provider: string, attempt: number) => void): Promise<Conducted> {
  const { routing, workers, clock, heartbeatMs, retries, unhealedAnswers } = neighbours;
  const { requestId, caller: { account: { id: accountId } }, answer, request } = turn;
  const queue = new AttemptQueue(plan.attempts);
  const outcomes = new AttemptOutcomes(neighbours, turn, admitted, start);
  const activity: Activity = start?.activity ?? { lastSentMs: turn.silentSinceMs ?? clock.monotonicMs() };
  /** The last attempt may have reached its provider. */
  let wasSent = false;
  /** Why no further attempt may be made. */
  let barred: Fault | undefined;
  /** Attempts were left, but the retry budget was used up. */
  let isCutShort = false;

  retries.noteRequest(accountId, queue.peek()?.byok === true);
  for (let planned = queue.take(); planned !== undefined; planned = queue.take()) {
    // Only an attempt after one that reached a provider counts as a retry, since only that adds load. One after
    // CONTEXT_LENGTH does not: that provider is healthy and is not asked again.
    const isRetry = wasSent && outcomes.reports.at(-1)?.failed?.class !== 'CONTEXT_LENGTH';
    if (isRetry && !retries.take(accountId, planned.byok)) {
      isCutShort = true;
      break;
    }
    const number = outcomes.nextNumber();
    if (turn.keepClaim !== undefined) {
      barred = await turn.keepClaim();
      if (barred !== undefined) break;
      // The client may have left meanwhile. No worker knows of the request yet, so its Idempotency-Key is free.
      if (number === 1 && answer.isGone()) {
        await outcomes.discard();
        return { attempts: outcomes.reports, result: 'refused' };
      }
    }
    const { provider, model, sunsetDate, byok, endpointId } = planned;
    const dropParams = plan.ignoredParams.length === 0 ? planned.dropParams : [...plan.ignoredParams, ...planned.dropParams];
    const attempted = planned;
    const mayAskAnother = (): boolean => !outcomes.hasReserve() && hasRoomFor(neighbours, turn, queue.peek());
    const healing = healingOf(neighbours, turn, start === undefined && mayAskAnother);
    /**
     * Once, since a model that has nothing to say says it each time, and not at the price of another for an answer on the
     * account's own credential. A round's answer cannot be kept: only the last round ends the hold.
     */
    const ifNothingSaid = (): 'keep' | 'drop' | undefined => {
      const wouldPay = byok && queue.peek()?.byok !== true;
      if ((start === undefined && healing !== undefined) || wouldPay || outcomes.reports.some(({ failed }) => failed?.class === 'EMPTY') || !mayAskAnother()) return undefined;
      return start === undefined ? 'keep' : 'drop';
    };
    let isJournaled = false;
    const result = await runAttempt({
      workers,
      clock,
      heartbeatMs,
      activity,
      answer,
      request: dispatchRequest(turn, plan, planned, admitted, number, start),
      isStream: request.stream,
      choices: request.choices,
      route: { provider, model, sunsetDate, dropParams, decisionId: plan.decisionId, attempts: start === undefined ? number : undefined, head: undefined, estimate: () => estimateOf(request, plan, attempted) },
      earlier: outcomes.all(),
      decisionId: plan.decisionId,
      besides: queue.replicaToAvoid(planned),
      healing,
      ifNothingSaid,
      // The account decides how large an answer from its own address is, and how long it lies here unread. Others are paid for.
      takeRoom: byok && ownCredentialsOf(turn.caller).ownAddressProviders.includes(provider) ? turn.takeRoom : undefined,
      // Told at once: if this edge and the worker crash before the end, the log shows which of the two answers was given.
      onCommitted: outcomes.hasReserve() ? () => outcomes.supersedeAll() : undefined,
      onJournaled: () => {
        isJournaled = true;
        outcomes.supersedeFailed();
        // If this edge crashes now, this round's worker must conclude as soon as those of the earlier rounds, which end the common hold.
        if (start !== undefined) workers.tend(provider, requestId, number);
      },
    });
    const report: AttemptReport = { provider, model, failed: result.kind === 'failed' ? result.failed : undefined, byok, round: start?.round };
    if (result.kind === 'failed' || result.kind === 'cut') routing.doubt(endpointId);
    switch (result.kind) {
      case 'complete':
      case 'cut':
        outcomes.supersedeAll();
        if (start === undefined) void outcomes.tell(provider, number, 'DELIVERED');
        if (outcomes.hasReserve()) unhealedAnswers?.note(accountId);
        outcomes.reports.push(report);
        return { attempts: outcomes.all(), result: result.kind === 'cut' ? 'cut' : 'answered' };
      case 'gone':
        return await clientGone(outcomes, report, number, result, { isRound: start !== undefined, isJournaled, isStream: request.stream });
      case 'failed':
        wasSent = result.trace !== 'none';
        outcomes.noteFailed(number, report, wasSent);
        if (result.failed.otherCredential === true || result.failed.staleConnection === true) queue.retryNext();
        if (result.lostAt !== undefined) queue.retryAtOtherReplica(result.lostAt);
        if (result.reserve !== undefined) {
          outcomes.keepInReserve(number, { provider, model, failed: undefined, byok }, result.reserve);
          onReserve(provider, number);
        }
        break;
    }
    if (!(report.failed?.retryable ?? false)) break;
    queue.narrow((upcoming) => attemptsLeft(neighbours, turn, upcoming).attempts);
  }
  const settled = outcomes.settleReserve();
  if (settled !== undefined) {
    await writtenAsGiven(answer, settled.told, clock);
    if (answer.isGone()) return { attempts: outcomes.reports, result: 'gone' };
    settled.give();
    return { attempts: outcomes.reports, result: 'answered' };
  }
  await outcomes.discard();
  answer.refuse(barred === undefined ? { kind: 'attempts', attempts: outcomes.all(), retryAfterMs: plan.retryAfterMs, isCutShort } : { kind: 'fault', fault: barred });
  return { attempts: outcomes.all(), result: 'refused' };
}

/** Whether `next` may be asked for a better answer than one that cannot be healed or holds nothing. */
function hasRoomFor({ retries, unhealedAnswers }: Neighbours, { caller: { account } }: Turn, next: PlannedAttempt__Output | undefined): boolean {
  return next !== undefined && retries.hasRoom(account.id, next.byok) && (unhealedAnswers?.waitMs(account.id) ?? 0) === 0;
}

/** `mayFailOver`: an answer that cannot be healed may. */
function healingOf({ checkSchema }: Neighbours, { request }: Turn, mayFailOver: false | (() => boolean)): Healing | undefined {
  const terms = healingTermsOf(request);
  return terms === undefined ? undefined : { terms, checkSchema, mayFailOver: mayFailOver !== false && mayFailOver() };
}

/**
 * The client has left during the attempt number `number`. Its worker is told the outcome, since it concludes the same from
 * the cancel only if its last event had not been sent before. Earlier attempts are superseded only if this one is known to
 * be in a journal; else their workers conclude by themselves.
 */
async function clientGone(outcomes: AttemptOutcomes, report: AttemptReport, number: number, { wasSent, isOwed }: AttemptResult & { readonly kind: 'gone' }, { isRound, isJournaled, isStream }: { readonly isRound: boolean; readonly isJournaled: boolean; readonly isStream: boolean }): Promise<Conducted> {
  if (wasSent) {
    // A client that was cut off before any content got nothing, even if the worker had generated text that was on its way or held back to be healed.
    // A whole answer is fetched to its end although its client has left.
    if (isOwed) void outcomes.tell(report.provider, number, 'DELIVERED', !isStream);
    else if (!isRound) void outcomes.tell(report.provider, number, 'DISCARDED');
    if (isJournaled) outcomes.supersedeAll();
  } else if (outcomes.settleReserve() === undefined) void outcomes.discard();
  if (!isRound || wasSent) outcomes.reports.push(report);
  return { attempts: outcomes.all(), result: 'gone', isCutOff: !isOwed, isUncharged: !isOwed && (await outcomes.isUncharged()) };
}
