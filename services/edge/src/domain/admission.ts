/** Admission of a request: one atomic hold for the most that it may cost, which grows with its rounds (docs/caps.md). */
import type { AdmitRequest, Limits } from '@signalbox/contracts/quota';
import type { DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { toFault } from '@signalbox/kernel/fault';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import { holdFor, promptTokensMax, type Hold, type HoldQuestion } from './amounts.js';
import type { Least, Refusal } from './answer.js';
import { callerNow } from './caller-now.js';
import { isHard, isLimited, limitsOf } from './limits.js';
import type { Neighbours } from './neighbours.js';
import type { Admission, Caller, QuotaPort } from './ports.js';
import { overheadTokensMax } from './prompt-overheads.js';
import type { RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

/** Attempts at one request, retries included. */
export const ATTEMPTS_MAX = 3;
/** If only the holds of running requests leave no room, a request waits this long for them before it is refused. */
const LIVE_HOLDS_WAIT_MS = 2_000;
/** Refusals whose amounts are money. */
const OF_MONEY: ReadonlySet<string | undefined> = new Set(['COST_CAPPED', 'TRIAL_EXHAUSTED']);

export interface Admitted {
  readonly admission: Admission;
  /** `attempts`: those that may be made, fewer than planned if limits do not pay for all. */
  readonly question: HoldQuestion;
  readonly hold: Hold;
}

/** Whether a plan runs on the account's own credentials. All its attempts do or none, so that a failover never changes who pays. */
export function isOwn(plan: DecideResponse__Output): boolean {
  return plan.attempts[0]?.byok ?? false;
}

/** True when any limit counts what the request uses. On the account's own credential only allotments of tokens do. */
function isWatched(caller: Caller, byok: boolean): boolean {
  const limits = limitsOf(caller);
  return byok ? limits.byokTokens !== undefined || isHard(limits) : isLimited(limits);
}

/** A request with parts whose tokens cannot be bounded (files) is refused under a limit, since the limit could not be kept. */
export function partsAreBounded({ caller, request, answer }: Turn, byok: boolean): boolean {
  if (!request.hasUnboundedParts || !isWatched(caller, byok)) return true;
  answer.refuse({ kind: 'unbounded-parts' });
  return false;
}

/** One atomic admission; undefined when the answer has been given. */
export async function admit(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output): Promise<Admitted | undefined> {
  const { requestId, caller, request, answer } = turn;
  let limits = limitsOf(caller);
  const byok = isOwn(plan);
  const holding = (attempts: readonly PlannedAttempt__Output[]): HoldQuestion => ({
    attempts,
    promptTokensMax: promptTokensMax(request.promptBytes - request.inlineImageBytes - request.inlineSoundBytes, request.messageCount) + request.soundTokensMax + overheadTokensMax(attempts, request),
    maxTokens: request.maxTokens,
    choices: request.choices,
    isLimited: isWatched(caller, byok),
    isFree: byok,
  });
  const questionFor = ({ amountNanoUsd, minAmountNanoUsd, tokens, minTokens }: Hold): AdmitRequest => ({
    requestId,
    accountId: caller.account.id,
    keyId: caller.key.id,
    counter: 'CHAT',
    limits,
    amountNanoUsd: amountNanoUsd.toString(),
    minAmountNanoUsd: minAmountNanoUsd.toString(),
    tokens: tokens.toString(),
    minTokens: minTokens.toString(),
    byok,
  });
  let hasWaited = false;
  /** Asks quota. Where only live holds leave no room, it is asked again as they end, but a request waits once. */
  const ask = async (hold: Hold): Promise<Admission | undefined> => {
    const question = questionFor(hold);
    const admission = await neighbours.quota.admit(question);
    if (admission.decision !== 'BLOCKED_BY_LIVE' || hasWaited) return admission;
    hasWaited = true;
    const waited = await admitOnceFree(neighbours, turn, question, admission);
    if ('refusal' in waited) {
      answer.refuse(waited.refusal);
      return undefined;
    }
    limits = waited.limits;
    return waited.admission;
  };
  let asked = holding(plan.attempts.slice(0, ATTEMPTS_MAX));
  let hold = holdFor(asked);
  let admission = await ask(hold);
  if (admission === undefined) return undefined;
  const affordable = affordableAttempts(asked, holding, admission, isAutoModelId(request.model));
  if (affordable.length > 0 && !answer.isGone()) {
    asked = holding(affordable);
    hold = holdFor(asked);
    admission = await ask(hold);
    if (admission === undefined) return undefined;
  }
  answer.admitted(admission);
  if (admission.decision !== 'ADMITTED') {
    answer.refuse({ kind: 'admission', admission, least: leastFor(asked) });
    return undefined;
  }
  // After admission, since a refusal by limits is the caller's and comes first.
  if (plan.attempts.length === 0 || answer.isGone()) {
    neighbours.quota.release(caller.account.id, requestId, admission.draw);
    if (!answer.isGone()) answer.refuse({ kind: 'attempts', attempts: [], retryAfterMs: plan.retryAfterMs });
    return undefined;
  }
  return { admission, question: asked, hold };
}

/**
 * The attempts of a plan that the remaining money pays for: no request is refused because a fallback is too expensive. Empty
 * if that changes nothing, or if the first attempt's model, which the client named, would be left out altogether.
 */
function affordableAttempts({ attempts }: HoldQuestion, holding: (attempts: readonly PlannedAttempt__Output[]) => HoldQuestion, admission: Admission, isAuto: boolean): readonly PlannedAttempt__Output[] {
  const isBlocked = admission.decision === 'BLOCKED_BY_LIVE';
  if (!OF_MONEY.has(isBlocked ? admission.blockedAs : admission.decision)) return [];
  const room = BigInt(admission.limitNanoUsd) - BigInt(admission.spendNanoUsd) - (isBlocked ? BigInt(admission.reservedNanoUsd) : 0n);
  const fitting = attempts.filter((attempt) => {
    const { amountNanoUsd, minAmountNanoUsd } = holdFor(holding([attempt]));
    return (isBlocked ? amountNanoUsd : minAmountNanoUsd) <= room;
  });
  const isSame = fitting.length === attempts.length || !(isAuto || fitting.some(({ model }) => model === attempts[0]?.model));
  return isSame ? [] : fitting;
}

/** What a prompt of one byte and an answer of one token need on the same plan. */
function leastFor(asked: HoldQuestion): Least {
  const { minAmountNanoUsd, minTokens } = holdFor({ ...asked, promptTokensMax: promptTokensMax(1, 1), maxTokens: 1, choices: 1, isLimited: true });
  return { nanoUsd: minAmountNanoUsd, tokens: minTokens };
}

/** `limits`: as they were when quota was asked last. */
type Waited = { readonly admission: Admission; readonly limits: Limits } | { readonly refusal: Refusal };

/** If only live holds leave no room, quota is asked again as they end, for up to two seconds. Each time the caller is checked again, and the limits are those in force by then. */
function admitOnceFree({ quota, clock, waitingRoom }: Neighbours, turn: Turn, question: AdmitRequest, blocked: Admission): Promise<Waited> {
  const { caller, answer } = turn;
  return new Promise((resolve, reject) => {
    let isOver = false;
    let isTimeUp = false;
    /** One question at a time: a second one could create a hold that nobody releases. */
    let isAsking = false;
    let latest: Exclude<Waited, { readonly refusal: Refusal }> = { admission: blocked, limits: limitsOf(caller) };
    const over = (waited: Waited): boolean => {
      isOver = true;
      giveUp.cancel();
      resolve(waited);
      return true;
    };
    const ask = async (): Promise<boolean> => {
      if (isOver || answer.isGone()) return isOver || over(latest);
      if (isAsking) return false;
      isAsking = true;
      try {
        const now = await callerNow(turn);
        if (now.refusal !== undefined) return over(now);
        const limits = limitsOf(now.caller);
        latest = { admission: await quota.admit({ ...question, limits }), limits };
        return latest.admission.decision !== 'BLOCKED_BY_LIVE' || isTimeUp ? over(latest) : isOver;
      } catch (error) {
        isOver = true;
        giveUp.cancel();
        reject(toFault(error));
        return true;
      } finally {
        isAsking = false;
      }
    };
    const leave = waitingRoom.enter(question.accountId ?? '', ask);
    const giveUp = clock.setTimer(LIVE_HOLDS_WAIT_MS, () => {
      // Asked once more, since room may just have been freed.
      isTimeUp = true;
      leave();
      void ask();
    });
  });
}

/** Extends the hold to cover the earlier rounds and the next one; undefined when the account's limits leave no room. */
export async function growHold(quota: QuotaPort, { requestId, caller }: Turn, { attempts }: DecideResponse__Output, { admission, question }: Admitted, start: RoundStart): Promise<Admitted | undefined> {
  const asked: HoldQuestion = { ...question, attempts: attempts.slice(0, ATTEMPTS_MAX), promptTokensMax: question.promptTokensMax + promptTokensMax(start.addedBytes, start.addedMessages) };
  const hold = holdFor(asked);
  if (!question.isLimited) return { admission, question: asked, hold };
  const left = (room: string | undefined, used: bigint): bigint | undefined => (room === undefined ? undefined : BigInt(room) > used ? BigInt(room) - used : 0n);
  const roomNanoUsd = left(admission.roomNanoUsd, start.earlierNanoUsd);
  const roomTokens = left(admission.roomTokens, BigInt(start.earlierTokens));
  const within = (wanted: bigint, room: bigint | undefined): bigint => (room !== undefined && room < wanted ? room : wanted);
  const wanted = { nanoUsd: within(hold.amountNanoUsd, roomNanoUsd), tokens: within(hold.tokens, roomTokens) };
  const least = { nanoUsd: hold.minAmountNanoUsd > 0n ? hold.minAmountNanoUsd : hold.amountNanoUsd, tokens: hold.minTokens > 0n ? hold.minTokens : hold.tokens };
  if (wanted.nanoUsd < least.nanoUsd || wanted.tokens < least.tokens) return undefined;
  for (const { nanoUsd, tokens } of [wanted, least]) {
    if (!(await quota.extend(caller.account.id, requestId, start.earlierNanoUsd + nanoUsd, BigInt(start.earlierTokens) + tokens, admission.epoch, admission.draw))) continue;
    const held: Admission = { ...admission, heldNanoUsd: String(nanoUsd), heldTokens: String(tokens) };
    if (roomNanoUsd !== undefined) held.roomNanoUsd = String(roomNanoUsd);
    if (roomTokens !== undefined) held.roomTokens = String(roomTokens);
    return { admission: held, question: asked, hold };
  }
  return undefined;
}
