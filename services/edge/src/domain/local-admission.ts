/** Admission by edge itself while quota or its store is away: only for requests that no cap, credit or hard allotment counts, within this edge's share of the rates. */
import type { AdmitRequest, AdmitResponse__Output, Limits } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { periodsAt } from '@signalbox/ledger-core/periods';
import { isHard, isLimited } from './limits.js';

export interface LocalAdmission {
  /** An answer that admits, or undefined if the request may not be served: its money or tokens have a limit, or this edge's share of a rate is used up. */
  admit(request: AdmitRequest): AdmitResponse__Output | undefined;
}

export interface LocalAdmissionOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  /** Number of edges among which each account's rates are divided. */
  readonly replicas: number;
  readonly periodSeconds?: number | undefined;
  /** Called for each decision. */
  readonly onDecided?: (isAdmitted: boolean) => void;
}

/** Tokens a minute that an account with an allotment of BYOK tokens gets from each edge. */
const BYOK_TOKENS_PER_MINUTE = 1_000n;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;
/** Most counters. When full, requests that need a new one are not admitted. */
const COUNTERS_MAX = 50_000;

/** What is used of a limit in a window that begins with its first use. */
interface Spent {
  readonly endMs: number;
  amount: bigint;
}

interface Take {
  readonly name: string;
  readonly windowMs: number;
  readonly limit: bigint;
  readonly amount: bigint;
  /** The least that is accepted instead of `amount`; 0 = only the whole amount. */
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
  /** Takes from all counters and returns each amount, or takes nothing and returns undefined if one has too little. */
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
    // The account's own credentials cost it nothing here: only its allotments of tokens count them.
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
      // No room beyond the hold: it cannot grow while quota is away.
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
