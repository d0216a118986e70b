/**
 * What one request is charged, from the facts known about its attempts: a pure function whose result does not depend on the
 * order or duplication of the facts.
 */
import { asNanoUsd, ZERO_NANO_USD, type NanoUsd } from '@signalbox/kernel/money';

/** An attempt that ended. `attempt` counts from 1 (0: see STAND_IN_ATTEMPT); facts of one attempt are equal wherever they come from. */
export interface AttemptFact {
  readonly attempt: number;
  /** Attempts that this one supersedes. */
  readonly retryOf: readonly number[];
  /** What it cost at its price card, ≥ 0. */
  readonly costNanoUsd: NanoUsd;
  /** Total of all buckets, ≥ 0. */
  readonly tokens: number;
  /** Paid by the account's own key at the provider: the account is charged 0. */
  readonly byok: boolean;
  /** A round that only called tools and gave its client nothing: answered by a later one, or by none. Absent = no. */
  readonly restsOnCalls?: boolean;
}

export type ToldOutcome = 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED';

export interface OutcomeFact {
  readonly attempt: number;
  readonly outcome: ToldOutcome;
  /** False when the worker concluded it by itself; edge's word counts more. */
  readonly toldByEdge: boolean;
  /** A later round of the request was answered. Kept by rows about a charge alone. */
  readonly isFollowed?: boolean;
}

/** Everything known of one request; lists are sorted by attempt and hold each attempt once. */
export interface RequestFacts {
  readonly attempts: readonly AttemptFact[];
  readonly outcomes: readonly OutcomeFact[];
}

export interface Charge {
  readonly chargeNanoUsd: NanoUsd;
  /** Tokens that count for the plan. */
  readonly tokens: number;
  /** Tokens that count for the allowance over own keys. */
  readonly byokTokens: number;
  /** Attempts that the charge consists of, ascending; empty when nothing is charged. */
  readonly chargedAttempts: readonly number[];
}

export const NO_FACTS: RequestFacts = { attempts: [], outcomes: [] };

/**
 * Number of what stands in for the attempts of a log that is lost. It counts only while nothing else is charged: should the
 * log be found, its own facts take its place.
 */
export const STAND_IN_ATTEMPT = 0;

/** Higher counts more when two outcomes of one attempt disagree: edge's word first, then what is kindest to the client. */
const WEIGHT: Record<ToldOutcome, number> = { DELIVERED: 0, DISCARDED: 1, SUPERSEDED: 2 };

function weight(fact: OutcomeFact): number {
  return WEIGHT[fact.outcome] + (fact.toldByEdge ? 3 : 0);
}

/** Facts with one more attempt; the same facts object when it is known already (the first one counts). */
export function addAttempt(facts: RequestFacts, fact: AttemptFact): RequestFacts {
  if (facts.attempts.length === 0) return { attempts: [fact], outcomes: facts.outcomes };
  if (facts.attempts.some((known) => known.attempt === fact.attempt)) return facts;
  return { attempts: [...facts.attempts, fact].sort((a, b) => a.attempt - b.attempt), outcomes: facts.outcomes };
}

/** Facts with one more outcome; the same facts object when it says nothing new. */
export function addOutcome(facts: RequestFacts, fact: OutcomeFact): RequestFacts {
  if (facts.outcomes.length === 0) return { attempts: facts.attempts, outcomes: [fact] };
  const known = facts.outcomes.find((other) => other.attempt === fact.attempt);
  if (known !== undefined && weight(known) >= weight(fact)) return facts;
  const others = facts.outcomes.filter((other) => other.attempt !== fact.attempt);
  return { attempts: facts.attempts, outcomes: [...others, fact].sort((a, b) => a.attempt - b.attempt) };
}

function toldOf({ outcomes }: RequestFacts, attempt: number): OutcomeFact | undefined {
  for (const told of outcomes) if (told.attempt === attempt) return told;
  return undefined;
}

function outcomeOf(facts: RequestFacts, attempt: number): ToldOutcome | undefined {
  return toldOf(facts, attempt)?.outcome;
}

/** Of a request with one attempt, as nearly all have: no other supersedes it. */
function foldOnly({ attempt, costNanoUsd, tokens, byok }: AttemptFact, told: ToldOutcome | undefined): Charge | undefined {
  if (told === undefined || told === 'SUPERSEDED') return undefined;
  if (told === 'DISCARDED') return { chargeNanoUsd: ZERO_NANO_USD, tokens: 0, byokTokens: 0, chargedAttempts: [] };
  return { chargeNanoUsd: byok ? ZERO_NANO_USD : costNanoUsd, tokens: byok ? 0 : tokens, byokTokens: byok ? tokens : 0, chargedAttempts: [attempt] };
}

/** Its worker discards it since its log knows of no later round: where another log has one that is charged, this one is, too. */
function awaitsLater({ restsOnCalls }: AttemptFact, { outcome, toldByEdge }: OutcomeFact): boolean {
  return restsOnCalls === true && outcome === 'DISCARDED' && !toldByEdge;
}

/** Edge said itself that the client got it: a later attempt that gave nothing better, as edge or its worker says, does not take its place. */
function isGiven({ outcomes }: RequestFacts, attempt: number): boolean {
  for (const told of outcomes) if (told.attempt === attempt) return told.toldByEdge && told.outcome === 'DELIVERED';
  return false;
}

/**
 * The earliest attempt that edge itself said is not charged. It says so once none is left to try, of a round once all of the
 * request is given up: none after it was given, whatever a worker that it could not tell takes for delivered.
 */
function givenUpFrom({ outcomes }: RequestFacts): number {
  for (const { attempt, outcome, toldByEdge } of outcomes) if (toldByEdge && outcome === 'DISCARDED') return attempt;
  return Infinity;
}

/** The latest attempt that edge itself said was given; 0 = it said so of none. */
function latestGiven({ outcomes }: RequestFacts): number {
  let latest = 0;
  for (const { attempt, outcome, toldByEdge } of outcomes) if (toldByEdge && outcome === 'DELIVERED') latest = attempt;
  return latest;
}

/**
 * Nobody told what became of the attempt, and a later one was given, as edge says. Edge goes on to another round only once the one before is
 * answered, and an attempt names all of its own round before it: where the next one is known, this one ended a round that
 * was followed, or is superseded, whenever its worker hears so.
 */
function isSurelyPassed(facts: RequestFacts, attempt: number, given: number): boolean {
  return attempt > STAND_IN_ATTEMPT && attempt < given && isKnown(facts, attempt + 1);
}

/**
 * The charge as far as it is known, or undefined while no ended attempt has a last word (delivered or discarded).
 * Attempts that were delivered and that nothing supersedes add up: rounds of one request are charged together, whatever logs
 * they stand in.
 */
export function fold(facts: RequestFacts): Charge | undefined {
  const [only] = facts.attempts;
  if (only !== undefined && facts.attempts.length === 1) return foldOnly(only, outcomeOf(facts, only.attempt));
  const superseded = new Set<number>();
  for (const { attempt, retryOf } of facts.attempts) {
    for (const earlier of retryOf) {
      if (earlier === attempt) continue;
      const isReserve = isGiven(facts, earlier) && !isGiven(facts, attempt);
      superseded.add(isReserve ? attempt : earlier);
    }
  }
  const givenUp = givenUpFrom(facts);
  const given = latestGiven(facts);
  let isDecided = false;
  let charged: AttemptFact[] = [];
  for (const attempt of facts.attempts.toReversed()) {
    const told = facts.outcomes.find((known) => known.attempt === attempt.attempt);
    if (told === undefined ? !isSurelyPassed(facts, attempt.attempt, given) : told.outcome === 'SUPERSEDED') continue;
    isDecided = true;
    if (attempt.attempt > givenUp && told?.toldByEdge !== true) continue;
    const isGiven = told === undefined || told.outcome === 'DELIVERED' || (charged.length > 0 && awaitsLater(attempt, told));
    if (isGiven && !superseded.has(attempt.attempt)) charged.push(attempt);
  }
  if (!isDecided) return undefined;
  charged.reverse();
  if (charged.length > 1) charged = charged.filter(({ attempt }) => attempt !== STAND_IN_ATTEMPT);
  let charge = ZERO_NANO_USD;
  let tokens = 0;
  let byokTokens = 0;
  for (const attempt of charged) {
    if (attempt.byok) byokTokens += attempt.tokens;
    else {
      charge = asNanoUsd(charge + attempt.costNanoUsd);
      tokens += attempt.tokens;
    }
  }
  return { chargeNanoUsd: charge, tokens, byokTokens, chargedAttempts: charged.map(({ attempt }) => attempt) };
}

/** Told as superseded by one that is not known yet. Where an answer was given from reserve, those that were tried after it are told so, too. */
function awaitsSuperseding(facts: RequestFacts, { attempt, retryOf }: AttemptFact): boolean {
  return outcomeOf(facts, attempt) === 'SUPERSEDED' && !retryOf.some((earlier) => isGiven(facts, earlier));
}

function isKnown({ attempts }: RequestFacts, attempt: number): boolean {
  for (const known of attempts) if (known.attempt === attempt) return true;
  return false;
}

/** A later attempt supersedes it. */
function isNamed({ attempts }: RequestFacts, attempt: number): boolean {
  for (const { retryOf } of attempts) if (retryOf.includes(attempt)) return true;
  return false;
}

/**
 * True when each attempt that the facts speak of has an outcome, is superseded or was followed by one that edge gave, none below
 * the latest missing: one names all of its own round before it.
 */
export function isComplete(facts: RequestFacts): boolean {
  const latest = facts.attempts.at(-1);
  if (latest === undefined) return false;
  // A log is lost: nobody will tell the rest.
  if (facts.attempts[0]?.attempt === STAND_IN_ATTEMPT) return true;
  if (awaitsSuperseding(facts, latest)) return false;
  const given = latestGiven(facts);
  for (let attempt = 1; attempt <= latest.attempt; attempt += 1) {
    if (isNamed(facts, attempt)) continue;
    if ((outcomeOf(facts, attempt) === undefined && !isSurelyPassed(facts, attempt, given)) || !isKnown(facts, attempt)) return false;
  }
  return true;
}

/** No round of the request is still to be told of: the facts are complete, and none follows the latest attempt, as told or as may be. */
export function isWhole(facts: RequestFacts): boolean {
  const latest = facts.attempts.at(-1);
  const told = latest === undefined ? undefined : toldOf(facts, latest.attempt);
  if (latest !== undefined && told !== undefined && (told.isFollowed === true || awaitsLater(latest, told))) return false;
  return isComplete(facts);
}

/** What has to be booked to get from what is booked to what is right; undefined when nothing is. Amounts may be negative. */
export interface Correction {
  readonly kind: 'charge' | 'adjustment';
  readonly amountNanoUsd: NanoUsd;
  readonly tokens: number;
  readonly byokTokens: number;
}

export interface Booked {
  readonly chargeNanoUsd: NanoUsd;
  readonly tokens: number;
  readonly byokTokens: number;
}

/**
 * The next row of a request: its one charge row (0 included) when none is booked, else an adjustment by the
 * difference. A charge plus its adjustments is never below 0, since it always equals a fold.
 */
export function correctionOf(booked: Booked | undefined, right: Charge | undefined): Correction | undefined {
  if (booked === undefined) return right === undefined ? undefined : { kind: 'charge', amountNanoUsd: right.chargeNanoUsd, tokens: right.tokens, byokTokens: right.byokTokens };
  // A last word that was taken back (concluded as delivered, then told as superseded) leaves nothing to charge.
  const amountNanoUsd = asNanoUsd((right?.chargeNanoUsd ?? 0n) - booked.chargeNanoUsd);
  const tokens = (right?.tokens ?? 0) - booked.tokens;
  const byokTokens = (right?.byokTokens ?? 0) - booked.byokTokens;
  if (amountNanoUsd === 0n && tokens === 0 && byokTokens === 0) return undefined;
  return { kind: 'adjustment', amountNanoUsd, tokens, byokTokens };
}
