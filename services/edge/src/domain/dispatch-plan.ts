/** Tries the attempts of a plan in order, and tells their workers what became of each. */
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Fault } from '@signalbox/kernel/fault';
import type { Admitted } from './admission.js';
import type { AttemptReport } from './answer.js';
import { AttemptOutcomes } from './attempt-outcomes.js';
import { AttemptQueue } from './attempt-queue.js';
import { runAttempt, type Activity, type AttemptResult, type Healing } from './dispatch.js';
import { dispatchRequest, estimateOf } from './dispatch-request.js';
import { healingTermsOf } from './healing.js';
import type { Neighbours } from './neighbours.js';
import { attemptsLeft } from './present-lists.js';
import { tending, writtenAsGiven } from './tellings.js';
import type { Conducted, RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

/**
 * Tries the plan until one attempt answers; nothing is tried again once content reached the client. What the client is to
 * hear is told to `turn.answer`. `start`: of one round of several, whose answered attempts are told of by whoever conducts
 * the rounds.
 */
export async function dispatchPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start?: RoundStart): Promise<Conducted> {
  const { workers, clock } = neighbours;
  let stopTending: (() => void) | undefined;
  // While another answer is tried for one that is kept in reserve, its worker hears that edge lives: it would end the hold, and charge it, after 30 s.
  const onReserve = (provider: string, attempt: number): void => {
    stopTending = tending(clock, () => workers.tend(provider, turn.requestId, attempt));
  };
  try {
    return await tryPlan(neighbours, turn, plan, admitted, start, onReserve);
  } finally {
    stopTending?.();
  }
}

/** `onReserve` hears of at most one attempt. */
async function tryPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start: RoundStart | undefined, onReserve: (provider: string, attempt: number) => void): Promise<Conducted> {
  const { routing, workers, clock, heartbeatMs, retries, unhealedAnswers } = neighbours;
  const { requestId, caller: { account: { id: accountId } }, answer, request } = turn;
  const queue = new AttemptQueue(plan.attempts);
  const outcomes = new AttemptOutcomes(neighbours, turn, admitted, start);
  const activity: Activity = { lastSentMs: turn.silentSinceMs ?? clock.monotonicMs() };
  /** The last attempt may have reached its provider. */
  let wasSent = false;
  /** Why no more may be dispatched. */
  let barred: Fault | undefined;
  /** Others were left, and no retry was. */
  let isCutShort = false;

  retries.noteRequest(accountId, queue.peek()?.byok === true);
  for (let planned = queue.take(); planned !== undefined; planned = queue.take()) {
    // What its worker refused unsent met no provider: only what follows a call that did adds to the load. Who finds a
    // prompt too long is well, and is not asked again: the next is asked as often as if it had been the first.
    const isRetry = wasSent && outcomes.reports.at(-1)?.failed?.class !== 'CONTEXT_LENGTH';
    if (isRetry && !retries.take(accountId, planned.byok)) {
      isCutShort = true;
      break;
    }
    const number = outcomes.nextNumber();
    if (turn.keepClaim !== undefined) {
      barred = await turn.keepClaim();
      if (barred !== undefined) break;
      // Meanwhile its client may have left, and nobody else has heard of it: its key is free.
      if (number === 1 && answer.isGone()) {
        await outcomes.discard();
        return { attempts: outcomes.reports, result: 'refused' };
      }
    }
    const { provider, model, sunsetDate, byok, endpointId } = planned;
    const dropParams = plan.ignoredParams.length === 0 ? planned.dropParams : [...plan.ignoredParams, ...planned.dropParams];
    const attempted = planned;
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
      healing: healingOf(neighbours, turn, start === undefined && !outcomes.hasReserve() ? queue : undefined),
      // Said at once: should this edge and the worker die before the end, the log tells whether this one or the other was given.
      onCommitted: outcomes.hasReserve() ? () => outcomes.supersedeAll() : undefined,
      onJournaled: () => {
        isJournaled = true;
        outcomes.supersedeFailed();
        // Should this edge die now, the round is concluded as soon as those before, which end the hold that it draws on.
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
        return await clientGone(outcomes, report, number, result, start !== undefined, isJournaled);
      case 'failed':
        wasSent = result.trace !== 'none';
        outcomes.noteFailed(number, report, wasSent);
        if (result.failed.otherCredential === true) queue.retryOnOtherCredential();
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
  answer.refuse(barred === undefined ? { kind: 'attempts', attempts: outcomes.all(), isCutShort } : { kind: 'fault', fault: barred });
  return { attempts: outcomes.all(), result: 'refused' };
}

/** `next`: the attempts that an answer which cannot be healed may fail over to; undefined where it must not. */
function healingOf({ checkSchema, retries, unhealedAnswers }: Neighbours, { caller: { account }, request }: Turn, next: AttemptQueue | undefined): Healing | undefined {
  const terms = healingTermsOf(request);
  if (terms === undefined) return undefined;
  const other = next?.peek();
  const mayFailOver = other !== undefined && retries.hasRoom(account.id, other.byok) && (unhealedAnswers?.waitMs(account.id) ?? 0) === 0;
  return { terms, checkSchema, mayFailOver };
}

/**
 * Nobody waits for the attempt number `number` any more. Its worker concludes the same from the cancel, unless its last event
 * had already left. Unless it is known to be in a journal, earlier attempts are left to their workers, which conclude by
 * themselves.
 */
async function clientGone(outcomes: AttemptOutcomes, report: AttemptReport, number: number, { wasSent, isOwed }: AttemptResult & { readonly kind: 'gone' }, isRound: boolean, isJournaled: boolean): Promise<Conducted> {
  if (wasSent) {
    // Who was cut off before a word was given nothing, whatever had been generated, was on its way or was held back to be healed, which is all that its worker knows.
    if (isOwed) void outcomes.tell(report.provider, number, 'DELIVERED');
    else if (!isRound) void outcomes.tell(report.provider, number, 'DISCARDED');
    if (isJournaled) outcomes.supersedeAll();
  } else if (outcomes.settleReserve() === undefined) void outcomes.discard();
  if (!isRound || wasSent) outcomes.reports.push(report);
  return { attempts: outcomes.all(), result: 'gone', isCutOff: !isOwed, isUncharged: !isOwed && (await outcomes.isUncharged()) };
}
