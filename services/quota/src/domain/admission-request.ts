/** Translates between admissions of the contract and commands of the state machine. */
import type { AdmitRequest__Output, AdmitResponse, Decision__Output } from '@signalbox/contracts/quota';
import type { Wall } from '@signalbox/ledger-core/account-state';
import { checkAmount, type AdmitCommand, type AdmitDecision, type AdmitVerdict } from '@signalbox/ledger-core/admission';
import { periodEndMs, type PeriodKind } from '@signalbox/ledger-core/periods';
import { Fault } from '@signalbox/kernel/fault';

interface NamedWall {
  readonly wall: Wall;
  readonly refusal: Decision__Output;
}

export interface Admission {
  readonly command: AdmitCommand;
  readonly walls: readonly NamedWall[];
  /** Token allotments that the request counts towards. */
  readonly includedTokens: bigint | undefined;
  readonly byokTokens: bigint | undefined;
}

const DECISIONS: Readonly<Record<Exclude<AdmitDecision, 'wall'>, Decision__Output>> = { admitted: 'ADMITTED', rate: 'RATE_LIMITED', burst: 'BURST_LIMITED', blocked: 'BLOCKED_BY_LIVE' };

/** Most caps in one request. */
const CAPS_MAX = 64;
const CAP_PERIODS: Readonly<Record<string, PeriodKind>> = { DAY: 'day', WEEK: 'week', MONTH: 'month', TOTAL: 'total' };

const amount = (text: string): bigint => checkAmount(BigInt(text));

/** Reads a request into a command. Throws a Fault `bad_message` if an id is missing or an amount is out of bounds. */
export function readAdmission(request: AdmitRequest__Output, periodSeconds: number | undefined): Admission {
  const { requestId, accountId, keyId, limits } = request;
  if (requestId === '' || accountId === '') throw new Fault('bad_message', 'an admission needs a request id and an account id');
  const caps = limits?.caps ?? [];
  if (caps.length > CAPS_MAX) throw new Fault('bad_message', 'too many caps');
  const isChat = request.counter !== 'CONTROL';
  const walls: NamedWall[] = [];
  if (isChat) {
    for (const cap of caps) {
      const period = CAP_PERIODS[cap.period];
      if (period === undefined) throw new Fault('bad_message', 'a cap needs a period');
      const limit = amount(cap.capNanoUsd);
      if (cap.scope !== 'account' && cap.scope !== keyId) continue;
      walls.push({ wall: { scope: cap.scope === 'account' ? 'account' : 'key', period, meter: 'charge', limit }, refusal: 'COST_CAPPED' });
    }
    if (limits?.trialCreditNanoUsd !== undefined && !request.byok) walls.push({ wall: { scope: 'account', period: 'total', meter: 'charge', limit: amount(limits.trialCreditNanoUsd) }, refusal: 'TRIAL_EXHAUSTED' });
    if (limits?.byokTokens !== undefined && request.byok) walls.push({ wall: { scope: 'account', period: 'plan', meter: 'byok', limit: amount(limits.byokTokens) }, refusal: 'ALLOTMENT_EXHAUSTED' });
    if (limits?.includedTokens !== undefined && limits.hardCap) walls.push({ wall: { scope: 'account', period: 'plan', meter: 'routed', limit: amount(limits.includedTokens) }, refusal: 'ALLOTMENT_EXHAUSTED' });
  }
  const command: AdmitCommand = {
    requestId,
    keyId,
    counter: isChat ? 'chat' : 'control',
    amount: isChat && !request.byok ? amount(request.amountNanoUsd) : 0n,
    minAmount: amount(request.minAmountNanoUsd),
    tokens: isChat ? amount(request.tokens) : 0n,
    minTokens: amount(request.minTokens),
    byok: request.byok,
    requestsPerMinute: limits?.requestsPerMinute,
    burstPerSecond: limits?.burstPerSecond,
    keyRequestsPerMinute: limits?.keyRequestsPerMinute,
    walls: walls.map(({ wall }) => wall),
    anchorDay: Math.min(limits?.billingAnchorDay ?? 0, 28),
    periodSeconds,
    needsTotals: walls.length > 0,
    isAdvance: request.advance,
  };
  return {
    command,
    walls,
    includedTokens: limits?.includedTokens === undefined ? undefined : amount(limits.includedTokens),
    byokTokens: limits?.byokTokens === undefined || !request.byok || !isChat ? undefined : amount(limits.byokTokens),
  };
}

const leftOf = (limit: bigint, used: bigint): bigint => (limit > used ? limit - used : 0n);

/** The allotment with the least left, of those that a request counts towards; undefined = none. */
function tightestAllotment({ includedTokens, byokTokens }: Admission, { planTokens, planByokTokens }: AdmitVerdict): { readonly limit: bigint; readonly left: bigint } | undefined {
  const plan = includedTokens === undefined ? undefined : { limit: includedTokens, left: leftOf(includedTokens, planTokens) };
  const own = byokTokens === undefined ? undefined : { limit: byokTokens, left: leftOf(byokTokens, planByokTokens) };
  return plan === undefined || (own !== undefined && own.left < plan.left) ? own : plan;
}

/** Writes a verdict as an answer of the contract. */
export function writeVerdict(admission: Admission, verdict: AdmitVerdict): AdmitResponse {
  const { command, walls } = admission;
  const { day, week, month, plan, reservedAtMs: nowMs } = verdict.periods;
  const rules = { anchorDay: command.anchorDay, periodSeconds: command.periodSeconds };
  const named = verdict.wall === undefined ? undefined : walls[verdict.wall.index];
  const decision = verdict.decision === 'wall' ? (named?.refusal ?? 'COST_CAPPED') : DECISIONS[verdict.decision];
  const response: AdmitResponse = {
    decision,
    retryAfterMs: verdict.retryAfterMs,
    heldNanoUsd: String(verdict.held),
    heldTokens: String(verdict.heldTokens),
    periods: { day, week, month, plan, reservedAtMs: String(nowMs) },
  };
  if (verdict.room.charge !== undefined) response.roomNanoUsd = String(verdict.room.charge);
  if (verdict.room.tokens !== undefined) response.roomTokens = String(verdict.room.tokens);
  if (verdict.rate !== undefined) {
    response.limitRequests = verdict.rate.limit;
    response.remainingRequests = verdict.rate.remaining;
    response.resetRequestsMs = verdict.rate.resetMs;
  }
  const allotment = tightestAllotment(admission, verdict);
  if (allotment !== undefined) {
    response.limitTokens = String(allotment.limit);
    response.remainingTokens = String(allotment.left);
    response.resetTokensMs = String((periodEndMs('plan', nowMs, rules) ?? nowMs) - nowMs);
  }
  if (named !== undefined && verdict.wall !== undefined) {
    response.limitSource = named.wall.scope;
    response.spendNanoUsd = String(verdict.wall.spend);
    response.reservedNanoUsd = String(verdict.wall.reserved);
    response.limitNanoUsd = String(named.wall.limit);
    const endMs = periodEndMs(named.wall.period, nowMs, rules);
    if (endMs !== undefined) response.resetsAtMs = String(endMs);
    if (named.wall.meter === 'byok') response.ofOwnCredentials = true;
    if (decision === 'BLOCKED_BY_LIVE') response.blockedAs = named.refusal;
    if (decision === 'ALLOTMENT_EXHAUSTED' && endMs !== undefined) response.retryAfterMs = Math.min(endMs - nowMs, 2 ** 32 - 1);
  }
  return response;
}
