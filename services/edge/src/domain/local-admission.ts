/** What edge decides by itself while quota or its store is away (BILLING, section 6). */
import type { AdmitRequest, AdmitResponse__Output, Limits } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { periodsAt } from '@signalbox/ledger-core/periods';
import { isHard, isLimited } from './limits.js';

export interface LocalAdmission {
  /** An answer that admits, or undefined where nobody may be served: money or tokens have a limit, or the local share of a rate is spent. */
  admit(request: AdmitRequest): AdmitResponse__Output | undefined;
}

export interface LocalAdmissionOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  /** Edges that share each account's rate; each gives away its part. */
  readonly replicas: number;
  readonly periodSeconds?: number | undefined;
  /** Told of each decision. */
  readonly onDecided?: (isAdmitted: boolean) => void;
}

/** Tokens a minute that an account with an allotment of BYOK tokens gets from each edge: they cost nobody here anything. */
const BYOK_TOKENS_PER_MINUTE = 1_000n;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;
/** Counters remembered; beyond that nobody new is admitted, since nothing would bound them. */
const COUNTERS_MAX = 50_000;

/** Spent of a limit in a window that begins with its first use. */
interface Spent {
  readonly endMs: number;
  amount: bigint;
}

interface Take {
  readonly name: string;
  readonly windowMs: number;
  readonly limit: bigint;
  readonly amount: bigint;
  /** Less than `amount` will do; 0 = it will not. */
  readonly least: bigint;
}

export function createLocalAdmission({ clock, replicas, periodSeconds, onDecided = () => undefined }: LocalAdmissionOptions): LocalAdmission {
  const counters = new Map<string, Spent>(); // kept: by key, while quota is away.

  const forgetEnded = (nowMs: number): void => {
    for (const [name, { endMs }] of counters) if (endMs <= nowMs) counters.delete(name);
  };
  const counterOf = ({ name, windowMs }: Take, nowMs: number): Spent | undefined => {
    const known = counters.get(name);
    if (known !== undefined && known.endMs > nowMs) return known;
    if (known === undefined && counters.size >= COUNTERS_MAX) forgetEnded(nowMs);
    if (known === undefined && counters.size >= COUNTERS_MAX) return undefined;
    const fresh = { endMs: nowMs + windowMs, amount: 0n };
    counters.set(name, fresh);
    return fresh;
  };
  /** What each of them gives, or undefined and nothing taken when one of them has too little. */
  const takeAll = (takes: readonly Take[]): readonly bigint[] | undefined => {
    const nowMs = clock.monotonicMs();
    const given: { readonly counter: Spent; readonly amount: bigint }[] = [];
    for (const take of takes) {
      const counter = counterOf(take, nowMs);
      const left = counter === undefined ? 0n : take.limit - counter.amount;
      const amount = take.amount <= left ? take.amount : take.least > 0n && take.least <= left ? left : undefined;
      if (counter === undefined || amount === undefined) return undefined;
      given.push({ counter, amount });
    }
    for (const { counter, amount } of given) counter.amount += amount;
    return given.map(({ amount }) => amount);
  };
  const share = (limit: number): bigint => BigInt(Math.max(1, Math.floor(limit / replicas)));

  const decide = (request: AdmitRequest): AdmitResponse__Output | undefined => {
    const { accountId = '', keyId = '', counter = 'CHAT', limits, byok = false } = request;
    const known: Limits = limits ?? {};
    const isChat = counter === 'CHAT';
    // Own credentials cost the account nothing here: only its allotments of tokens watch them.
    if (isChat && (byok ? isHard(known) : isLimited(known))) return undefined;
    const takes: Take[] = [];
    const once = (name: string, windowMs: number, limit: number | undefined): void => {
      if (limit !== undefined) takes.push({ name: `${counter} ${name}`, windowMs, limit: share(limit), amount: 1n, least: 0n });
    };
    const isBounded = isChat && byok && known.byokTokens !== undefined;
    if (isBounded) takes.push({ name: `tokens ${accountId}`, windowMs: MINUTE_MS, limit: BYOK_TOKENS_PER_MINUTE, amount: BigInt(String(request.tokens ?? 0)), least: BigInt(String(request.minTokens ?? 0)) });
    once(`minute ${accountId}`, MINUTE_MS, known.requestsPerMinute);
    once(`second ${accountId}`, SECOND_MS, known.burstPerSecond);
    once(`minute ${keyId}`, MINUTE_MS, known.keyRequestsPerMinute);
    const given = takeAll(takes);
    if (given === undefined) return undefined;
    const heldTokens = String(isBounded ? given[0] : (request.tokens ?? 0));
    const periods = periodsAt(clock.nowMs(), { anchorDay: known.billingAnchorDay ?? 0, periodSeconds });
    return {
      decision: 'ADMITTED',
      retryAfterMs: 0,
      limitSource: '',
      limitNanoUsd: '0',
      spendNanoUsd: '0',
      reservedNanoUsd: '0',
      periods: { ...periods, reservedAtMs: String(periods.reservedAtMs) },
      heldNanoUsd: String(request.amountNanoUsd ?? 0),
      heldTokens,
      // The hold cannot grow: nobody could say whether there is room.
      ...(isBounded ? { roomTokens: heldTokens } : {}),
      epoch: '',
      draws: false,
      ofOwnCredentials: false,
    };
  };

  return {
    admit: (request) => {
      const answer = decide(request);
      onDecided(answer !== undefined);
      return answer;
    },
  };
}
