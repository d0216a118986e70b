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
/** One advance is at most this part of what the tightest cap leaves; an account may have two at once, a hundredth in all (BILLING, section 6). For each edge. */
const ROOM_PARTS = 200n;
const DAY_MS = 86_400_000;

export interface AdvanceOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Length of a billing period where it is not a month. */
  readonly periodSeconds?: number | undefined;
  readonly makeId: () => string;
  /** Told of each request that was served from an advance, and by what. */
  readonly onServed?: (request: AdmitRequest, admission: Admission) => void;
  /** For simulations: from how many requests on, within a second, one is taken; and its greatest part of what the tightest cap leaves. */
  readonly requestsMin?: number;
  readonly roomParts?: bigint;
}

export interface Advances extends QuotaPort {
  /** Gives back what is left. */
  close(): void;
}

interface Advance {
  readonly id: string;
  readonly answer: AdmitResponse__Output;
  /** Monotonic: quota admitted it between the two. */
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
  /** Not before, since the last one was refused. */
  notBeforeMs: number;
  /** Quota takes draws: it answered the last admission, and is no older version. */
  takesDraws: boolean;
  /** What the tightest cap left, as last told; 0 where nothing was told of it, undefined = no cap. */
  roomNanoUsd: bigint | undefined;
}

/** Nothing is counted of a request but what it may cost: no rate, no allotment of tokens, no credit that is used up. */
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
  /** By account, nano-USD of its advances that serve, are to serve, or are asked for: its keys share what may be taken. */
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

  /** It serves no more, the next one does, and what is left of it goes back under an id of its own, as if a request had been served with it and never sent. */
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
  /** It would still be admitted into the periods that it was admitted into. */
  const isSamePeriod = ({ reservedAtMs, askedAtMs }: Advance, nowMs: number): boolean => {
    const atMs = reservedAtMs + (nowMs - askedAtMs);
    if (Math.floor(atMs / DAY_MS) !== Math.floor(reservedAtMs / DAY_MS)) return false;
    return periodSeconds === undefined || Math.floor(atMs / (periodSeconds * 1_000)) === Math.floor(reservedAtMs / (periodSeconds * 1_000));
  };

  /** Two of the largest are at once. */
  const roomFor = (accountId: string, roomNanoUsd: bigint): bigint => {
    const [most, taken] = [roomNanoUsd / roomParts, takenOf.get(accountId) ?? 0n];
    return taken >= 2n * most ? 0n : smaller(most, 2n * most - taken);
  };
  const take = async (stream: Stream, request: AdmitRequest, nowMs: number): Promise<void> => {
    const [requests, nanoUsd, tokens] = [stream.requests[0] + stream.requests[1], stream.nanoUsd[0] + stream.nanoUsd[1], stream.tokens[0] + stream.tokens[1]];
    if (requests < requestsMin) return;
    const { accountId = '' } = request;
    const amount = smaller(stream.roomNanoUsd === undefined ? nanoUsd : smaller(nanoUsd, roomFor(accountId, stream.roomNanoUsd)), CAP_NANO_USD_MAX);
    // Room for less than a few requests is not worth its own question.
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
        // A quota of an older version beside newer ones, or none at all: what is drawn would not be known there.
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
      // Whoever asks for itself is told. It may have been written down all the same.
      stream.notBeforeMs = clock.monotonicMs() + SERVES_MS;
      quota.release(accountId, id, { advanceId: id, amountNanoUsd: String(amount), tokens: String(smaller(tokens, CAP_NANO_USD_MAX)) });
    } finally {
      stream.isAsking = false;
      noteTaken(accountId, -asked);
    }
  };
  const note = (stream: Stream, { limits }: AdmitRequest, { roomNanoUsd, draws }: AdmitResponse__Output): void => {
    stream.takesDraws = draws;
    // What costs nothing meets no cap: the answer then says nothing of it.
    if (roomNanoUsd === undefined) stream.roomNanoUsd = (limits?.caps?.length ?? 0) > 0 ? 0n : undefined;
    else stream.roomNanoUsd = BigInt(roomNanoUsd);
  };

  /** The advance that has room for it, the one that serves or the next. */
  const servingFor = (stream: Stream, nanoUsd: bigint, tokens: bigint, nowMs: number): Advance | undefined => {
    for (let advance = stream.serving; advance !== undefined; advance = stream.serving) {
      const isOver = nowMs - advance.askedAtMs >= SERVES_MS || !isSamePeriod(advance, nowMs);
      if (!isOver && advance.leftNanoUsd >= nanoUsd && advance.leftTokens >= tokens) return advance;
      // One request may be too large for what is left: that still serves others.
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
    // What was served before is spent, as far as this edge knows.
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

  /** Somebody waits for room of the account: quota grants it no advance now, and what there is goes back. */
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
