/**
 * What a worker writes down about each attempt, before it does it: the one record of money facts
 * (BILLING, sections 2 and 3). `wal.ts` implements it on local disk; dispatch only calls it.
 */
import type { Draw__Output, PeriodSet__Output, PriceCard__Output } from '@signalbox/contracts/common';
import type { FailureClass__Output, Outcome__Output, UsageSource__Output } from '@signalbox/contracts/worker';
import type { NanoUsd } from '@signalbox/kernel/money';
import type { TokenCounts } from '@signalbox/kernel/tokens';

export type ToldOutcome = Exclude<Outcome__Output, 'OUTCOME_UNSPECIFIED'>;

/** What the rounds of a request before this one are charged. */
export interface EarlierRounds {
  readonly earlierNanoUsd: bigint;
  readonly earlierTokens: bigint;
}

export interface AttemptStart {
  readonly requestId: string;
  /** From 1; a pair of request and attempt is never started twice. */
  readonly attempt: number;
  readonly retryOf: number[];
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly endpointId: string;
  /** As it came, for the estimated prompt: the ledger computes from the same card. */
  readonly card: PriceCard__Output;
  readonly referenceCard: PriceCard__Output | null;
  readonly periods: PeriodSet__Output;
  readonly byok: boolean;
  readonly routedFrom: string;
  readonly decisionId: string;
  readonly startedAtMs: number;
  /** W3C traceparent under which the ledger books it; absent = the request is not traced. */
  readonly traceparent?: string | undefined;
  /** Of a request that is asked in rounds: what those before are charged. The hold ends with all of it together. */
  readonly rounds?: EarlierRounds | undefined;
  /** Estimate, charged when the process dies before the provider told usage and something was delivered. */
  readonly promptTokens: number;
  /** What quota holds for the request, as decimal text; absent = nothing is known of it. */
  readonly held?: { readonly amountNanoUsd: string; readonly tokens: string };
  /** Life of quota's store in which that is held: a start is refused with a Fault `quota_unavailable` when it is over. Absent or empty = it does not matter. */
  readonly holdEpoch?: string;
  /** What it was served with out of an advance: quota may not know the request itself yet. */
  readonly draw?: Draw__Output | null;
}

export interface AttemptEnd {
  readonly tokens: TokenCounts;
  readonly costNanoUsd: NanoUsd;
  /** What the provider says it takes itself, where it says so: the operator's cost, and nothing of what the account is charged. */
  readonly toldNanoUsd?: NanoUsd | undefined;
  /** Signed: reference cost minus cost. */
  readonly savingsNanoUsd: NanoUsd;
  /** What both are computed from, where the prompt that the provider told has other cards than the estimate at the start. */
  readonly cards?: { readonly card: PriceCard__Output; readonly referenceCard: PriceCard__Output | null } | undefined;
  readonly source: Exclude<UsageSource__Output, 'USAGE_SOURCE_UNSPECIFIED'>;
  readonly flags: string[];
  /** HTTP status of the provider, 0 = none. */
  readonly status: number;
  readonly failure: FailureClass__Output;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly finishReason: string;
  /** A round that ended in calls, or broke off within them, and gave its client nothing else: nobody saw it unless a later one answered. */
  readonly callsOnly?: boolean;
  /** The caller was lost before anything of it could be handed over: nobody saw it. */
  readonly undelivered?: boolean;
  /** The client had hung up by itself, as edge said: it owes what is booked here, should nobody live to tell so. */
  readonly clientLeft?: boolean;
  readonly endedAtMs: number;
}

/** What edge says with an outcome. */
export interface OutcomeTerms {
  /** A later round of the request ends its hold. */
  readonly isFollowed?: boolean;
  /** Another attempt was to take its place: that it was given is known from edge alone. */
  readonly isReserve?: boolean;
}

export interface JournalState {
  readonly writer: string;
  /** Newest sequence written. */
  readonly lastSeq: number;
  readonly shippedSeq: number;
  /** Newest sequence that the ledger has committed. */
  readonly ledgerSeq: number;
}

export interface Journal {
  /** Resolves when the record is with the operating system (it survives a kill of this process): only then may a byte go to the provider. */
  start(record: AttemptStart): Promise<void>;
  /** What has been delivered so far; each second or 256 tokens. */
  checkpoint(requestId: string, attempt: number, tokens: TokenCounts): void;
  /** Resolves when written: only then may the last byte go to edge. */
  end(requestId: string, attempt: number, end: AttemptEnd): Promise<void>;
  /** What became of an ended attempt. The first one counts; unknown attempts are ignored. An outcome that arrives before `end` is kept until then. Resolves when it is in the log; undefined: a kill now would lose nothing. Rejects with a Fault when it cannot be written. */
  outcome(requestId: string, attempt: number, outcome: Exclude<Outcome__Output, 'OUTCOME_UNSPECIFIED'>, toldByEdge: boolean, terms?: OutcomeTerms): Promise<void> | undefined;
  /** Edge lives and will tell the outcome of an ended attempt: without another word it is concluded in 30 s. Unknown attempts are ignored. */
  tend(requestId: string, attempt: number): void;
  state(): JournalState;
}
