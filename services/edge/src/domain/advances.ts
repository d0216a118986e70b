/**
 * Admits requests of busy accounts without asking quota about each (ADR 67). Where an account has no limits, or only cost caps
 * with much left, one hold is taken in advance for about a second's worth of its requests, and they are admitted from it
 * here. The part a request takes is its draw: it is sent along with everything quota is told about the request, and quota
 * then moves it from the advance to the request. What is left of an advance after a second is given back.
 */
import type { AdmitRequest, AdmitResponse__Output, Limits } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { CAP_NANO_USD_MAX } from '@signalbox/kernel/money';
import type { Admission, QuotaPort } from './ports.js';

/** How long an advance is drawn from. Its hold lasts 30 s, by when workers have told quota of every request served from it. */
const SERVES_MS = 1_000;
/** The next advance is requested once half of the present one is used, or half of its time is over. */
const RENEW_MS = SERVES_MS / 2;
/** Traffic is counted over the present span of this length and the one before it. */
const SPAN_MS = 500;
/** With fewer requests in the two spans, no advance is taken. */
const REQUESTS_MIN = 8;
/** One advance is at most 1/200 of what the tightest cap leaves. An account may have two at once, so 1/100 in all, at each edge. */
const ROOM_PARTS = 200n;
const DAY_MS = 86_400_000;

export interface AdvanceOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Length of a billing period where it is not a month. */
  readonly periodSeconds?: number | undefined;
  readonly makeId: () => string;
  /** Called for each request that was served from an advance. */
  readonly onServed?: (request: AdmitRequest, admission: Admission) => void;
  /** For simulations: the fewest requests a second for which an advance is taken; and the divisor of what the tightest cap leaves. */
  readonly requestsMin?: number;
  readonly roomParts?: bigint;
}

export interface Advances extends QuotaPort {
  /** Gives back what is left of all advances. */
  close(): void;
}

interface Advance {
  readonly id: string;
  readonly answer: AdmitResponse__Output;
  /** Monotonic milliseconds: quota admitted it between the two. */
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
  readonly reservedAtMs: number;
  leftNanoUsd: bigint;
  leftTokens: bigint;
}

/** Requests under the same limits on the same kind of credential. */
interface Stream {
  spanEndMs: number;
  /** Of the present span and the one before. */
  requests: [number, number];
  nanoUsd: [bigint, bigint];
  tokens: [bigint, bigint];
  serving: Advance | undefined;
  next: Advance | undefined;
  isAsking: boolean;
  /** No advance is requested before this moment, since the last one was refused. */
  notBeforeMs: number;
  /** The quota replica that answered last knows draws (older versions do not). */
  takesDraws: boolean;
  /** What the tightest cap left, as quota said last; 0 = it did not say, undefined = no cap. */
  roomNanoUsd: bigint | undefined;
}

/** True when the limits count only what a request may cost: no rates, no allotment of tokens, no trial credit. */
function isAmountOnly(limits: Limits): boolean {
  const { requestsPerMinute, burstPerSecond, keyRequestsPerMinute, includedTokens, trialCreditNanoUsd, byokTokens } = limits;
  return requestsPerMinute === undefined && burstPerSecond === undefined && keyRequestsPerMinute === undefined && includedTokens === undefined && trialCreditNanoUsd === undefined && byokTokens === undefined;
}

const amountOf = (value: AdmitRequest['amountNanoUsd']): bigint => BigInt(String(value ?? 0));
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Wraps the port to quota; `admit` answers from an advance where it can. */
export function createAdvances(quota: QuotaPort, { clock, periodSeconds, makeId, onServed = () => undefined, requestsMin = REQUESTS_MIN, roomParts = ROOM_PARTS }: AdvanceOptions): Advances {
  const streams = new WeakMap<Limits, { own: Stream | undefined; ours: Stream | undefined }>();
  const live = new Map<Advance, { readonly stream: Stream; readonly accountId: string }>(); // kept: by advance, which serves many requests.
  /** By account, nano-USD of all its advances, including those being requested: its keys share the bound. */
  const takenOf = new Map<string, bigint>(); // kept: by account with advances.
  const noteTaken = (accountId: string, nanoUsd: bigint): void => {
    const taken = (takenOf.get(accountId) ?? 0n) + nanoUsd;
    if (taken === 0n) takenOf.delete(accountId);
    else takenOf.set(accountId, taken);
  };

  const streamOf = ({ byok }: AdmitRequest, limits: Limits): Stream => {
    let both = streams.get(limits);
    if (both === undefined) streams.set(limits, (both = { own: undefined, ours: undefined }));
    const place = byok === true ? 'own' : 'ours';
    return (both[place] ??= { spanEndMs: 0, requests: [0, 0], nanoUsd: [0n, 0n], tokens: [0n, 0n], serving: undefined, next: undefined, isAsking: false, notBeforeMs: 0, takesDraws: false, roomNanoUsd: undefined });
  };
  const count = (stream: Stream, nanoUsd: bigint, tokens: bigint, nowMs: number): void => {
    if (nowMs >= stream.spanEndMs) {
      const isNext = nowMs < stream.spanEndMs + SPAN_MS;
      stream.requests = [0, isNext ? stream.requests[0] : 0];
      stream.nanoUsd = [0n, isNext ? stream.nanoUsd[0] : 0n];
      stream.tokens = [0n, isNext ? stream.tokens[0] : 0n];
      stream.spanEndMs = nowMs + SPAN_MS;
    }
    stream.requests[0] += 1;
    stream.nanoUsd[0] += nanoUsd;
    stream.tokens[0] += tokens;
  };

  /** Ends an advance; the next one replaces it. The rest is released as a draw under an id of its own, like that of a request that was never sent. */
  const retire = (advance: Advance): void => {
    const place = live.get(advance);
    if (place === undefined) return;
    live.delete(advance);
    const { stream, accountId } = place;
    noteTaken(accountId, -BigInt(advance.answer.heldNanoUsd));
    if (stream.next === advance) stream.next = undefined;
    else if (stream.serving === advance) {
      stream.serving = stream.next;
      stream.next = undefined;
    }
    if (advance.leftNanoUsd === 0n && advance.leftTokens === 0n) return;
    quota.release(accountId, `${advance.id}-rest`, { advanceId: advance.id, amountNanoUsd: String(advance.leftNanoUsd), tokens: String(advance.leftTokens) });
  };
  /** True while a request admitted now belongs to the same billing periods as the advance. */
  const isSamePeriod = ({ reservedAtMs, askedAtMs }: Advance, nowMs: number): boolean => {
    const atMs = reservedAtMs + (nowMs - askedAtMs);
    if (Math.floor(atMs / DAY_MS) !== Math.floor(reservedAtMs / DAY_MS)) return false;
    return periodSeconds === undefined || Math.floor(atMs / (periodSeconds * 1_000)) === Math.floor(reservedAtMs / (periodSeconds * 1_000));
  };

  /** Nano-USD of the next advance: at most 1/`roomParts` of the room, and twice that for the account in all. */
  const roomFor = (accountId: string, roomNanoUsd: bigint): bigint => {
    const [most, taken] = [roomNanoUsd / roomParts, takenOf.get(accountId) ?? 0n];
    return taken >= 2n * most ? 0n : smaller(most, 2n * most - taken);
  };
  const take = async (stream: Stream, request: AdmitRequest, nowMs: number): Promise<void> => {
    const [requests, nanoUsd, tokens] = [stream.requests[0] + stream.requests[1], stream.nanoUsd[0] + stream.nanoUsd[1], stream.tokens[0] + stream.tokens[1]];
    if (requests < requestsMin) return;
    const { accountId = '' } = request;
    const amount = smaller(stream.roomNanoUsd === undefined ? nanoUsd : smaller(nanoUsd, roomFor(accountId, stream.roomNanoUsd)), CAP_NANO_USD_MAX);
    // An advance for fewer than `requestsMin` requests is not worth a call.
    if (amount * BigInt(requests) < nanoUsd * BigInt(requestsMin)) return;
    const id = makeId();
    stream.isAsking = true;
    noteTaken(accountId, amount);
    let asked = amount;
    try {
      const answer = await quota.admit({ ...request, requestId: id, advance: true, amountNanoUsd: String(amount), minAmountNanoUsd: '0', tokens: String(smaller(tokens, CAP_NANO_USD_MAX)), minTokens: '0' });
      const reservedAtMs = Number(answer.periods?.reservedAtMs ?? 0);
      const isAdmitted = answer.decision === 'ADMITTED';
      if (isAdmitted) note(stream, request, answer);
      if (!isAdmitted || reservedAtMs === 0 || !answer.draws) {
        stream.notBeforeMs = clock.monotonicMs() + SERVES_MS;
        // A quota of an older version does not know draws, so the advance is given back.
        if (isAdmitted) quota.release(accountId, id);
        return;
      }
      const advance: Advance = { id, answer, askedAtMs: nowMs, answeredAtMs: clock.monotonicMs(), reservedAtMs, leftNanoUsd: BigInt(answer.heldNanoUsd), leftTokens: BigInt(answer.heldTokens) };
      live.set(advance, { stream, accountId });
      noteTaken(accountId, advance.leftNanoUsd - asked);
      asked = 0n;
      if (stream.serving === undefined) stream.serving = advance;
      else stream.next = advance;
      clock.setTimer(Math.max(0, nowMs + SERVES_MS - clock.monotonicMs()), () => retire(advance), { unref: true });
    } catch {
      // The failure concerns no request. The advance may have been stored all the same, so it is released.
      stream.notBeforeMs = clock.monotonicMs() + SERVES_MS;
      quota.release(accountId, id, { advanceId: id, amountNanoUsd: String(amount), tokens: String(smaller(tokens, CAP_NANO_USD_MAX)) });
    } finally {
      stream.isAsking = false;
      noteTaken(accountId, -asked);
    }
  };
  const note = (stream: Stream, { limits }: AdmitRequest, { roomNanoUsd, draws }: AdmitResponse__Output): void => {
    stream.takesDraws = draws;
    // Quota does not tell the room if the request costs nothing.
    if (roomNanoUsd === undefined) stream.roomNanoUsd = (limits?.caps?.length ?? 0) > 0 ? 0n : undefined;
    else stream.roomNanoUsd = BigInt(roomNanoUsd);
  };

  /** The advance with room for the request: the present one or the next. */
  const servingFor = (stream: Stream, nanoUsd: bigint, tokens: bigint, nowMs: number): Advance | undefined => {
    for (let advance = stream.serving; advance !== undefined; advance = stream.serving) {
      const isOver = nowMs - advance.askedAtMs >= SERVES_MS || !isSamePeriod(advance, nowMs);
      if (!isOver && advance.leftNanoUsd >= nanoUsd && advance.leftTokens >= tokens) return advance;
      // The rest is too small for this request, but may serve others.
      if (!isOver && stream.next === undefined) return undefined;
      retire(advance);
    }
    return undefined;
  };
  const isDue = ({ serving, next, isAsking, notBeforeMs, takesDraws }: Stream, nowMs: number): boolean => {
    if (!takesDraws || isAsking || next !== undefined || nowMs < notBeforeMs) return false;
    if (serving === undefined) return true;
    const { leftNanoUsd, leftTokens, answer, askedAtMs } = serving;
    return nowMs - askedAtMs >= RENEW_MS || 2n * leftNanoUsd < BigInt(answer.heldNanoUsd) || 2n * leftTokens < BigInt(answer.heldTokens);
  };

  const serve = (request: AdmitRequest, advance: Advance, nanoUsd: bigint, tokens: bigint, nowMs: number): Admission => {
    const { id, answer, answeredAtMs, reservedAtMs } = advance;
    // What was drawn before counts as spent.
    const used = BigInt(answer.heldNanoUsd) - advance.leftNanoUsd;
    advance.leftNanoUsd -= nanoUsd;
    advance.leftTokens -= tokens;
    const admission: Admission = {
      ...answer,
      periods: answer.periods === null ? null : { ...answer.periods, reservedAtMs: String(reservedAtMs + Math.floor(nowMs - answeredAtMs)) },
      heldNanoUsd: String(nanoUsd),
      heldTokens: String(tokens),
      draw: { advanceId: id, amountNanoUsd: String(nanoUsd), tokens: String(tokens) },
    };
    if (answer.roomNanoUsd !== undefined) admission.roomNanoUsd = String(BigInt(answer.roomNanoUsd) - used);
    onServed(request, admission);
    return admission;
  };

  /** A request of the account waits for room, so its advances are given back. */
  const giveBack = (accountId: string): void => {
    for (const [advance, place] of [...live]) if (place.accountId === accountId) retire(advance);
  };

  const ask = async (request: AdmitRequest): Promise<Admission> => {
    const answer = await quota.admit(request);
    if (answer.decision === 'BLOCKED_BY_LIVE') giveBack(request.accountId ?? '');
    return answer;
  };

  const admit = async (request: AdmitRequest): Promise<Admission> => {
    const { limits, counter = 'CHAT' } = request;
    if (limits === undefined || limits === null || counter !== 'CHAT' || !isAmountOnly(limits)) return ask(request);
    const nowMs = clock.monotonicMs();
    const stream = streamOf(request, limits);
    const [nanoUsd, tokens] = [amountOf(request.amountNanoUsd), amountOf(request.tokens)];
    count(stream, nanoUsd, tokens, nowMs);
    const advance = servingFor(stream, nanoUsd, tokens, nowMs);
    if (isDue(stream, nowMs)) void take(stream, request, nowMs);
    if (advance !== undefined) return serve(request, advance, nanoUsd, tokens, nowMs);
    const answer = await ask(request);
    if (answer.decision === 'ADMITTED') note(stream, request, answer);
    return answer;
  };

  return {
    admit,
    release: (accountId, requestId, draw) => quota.release(accountId, requestId, draw),
    extend: (accountId, requestId, toNanoUsd, toTokens, epoch, draw) => quota.extend(accountId, requestId, toNanoUsd, toTokens, epoch, draw),
    close: () => {
      for (const advance of [...live.keys()]) retire(advance);
    },
  };
}
