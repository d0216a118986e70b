/**
 * What a worker records about each attempt before it acts: the only record of what the attempt costs, from which the ledger
 * is written. `wal.ts` implements it on local disk; dispatch only calls it.
 */
import type { Draw__Output, PeriodSet__Output, PriceCard__Output } from '@signalbox/contracts/common';
import type { FailureClass__Output, Outcome__Output, UsageSource__Output } from '@signalbox/contracts/worker';
import type { NanoUsd } from '@signalbox/kernel/money';
import type { TokenCounts } from '@signalbox/kernel/tokens';

export type ToldOutcome = Exclude<Outcome__Output, 'OUTCOME_UNSPECIFIED'>;

/** What the earlier rounds of a request are charged. */
export interface EarlierRounds {
  readonly earlierNanoUsd: bigint;
  readonly earlierTokens: bigint;
}

export interface AttemptStart {
  readonly requestId: string;
  /** From 1. The same request and attempt are never started twice. */
  readonly attempt: number;
  readonly retryOf: number[];
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly endpointId: string;
  /** As received, for the estimated prompt; the ledger computes from the same card. */
  readonly card: PriceCard__Output;
  readonly referenceCard: PriceCard__Output | null;
  readonly periods: PeriodSet__Output;
  readonly byok: boolean;
  readonly routedFrom: string;
  readonly decisionId: string;
  readonly startedAtMs: number;
  /** W3C traceparent for the span of the booking; absent = the request is not traced. */
  readonly traceparent?: string | undefined;
  /** For a request asked in rounds: what the earlier rounds are charged. The hold ends with the sum of all. */
  readonly rounds?: EarlierRounds | undefined;
  /** Estimate; charged if something was delivered and the process dies before the provider reports usage. */
  readonly promptTokens: number;
  /** What quota holds for the request, as decimal text; absent = unknown. */
  readonly held?: { readonly amountNanoUsd: string; readonly tokens: string };
  /** Epoch of quota's store in which the hold exists. If that epoch is over, the start is refused with a Fault `quota_unavailable`. Absent or empty = no limit watches the hold, so it does not matter. */
  readonly holdEpoch?: string;
  /** The part of an advance that served the request: quota may not know the request itself yet. */
  readonly draw?: Draw__Output | null;
}

export interface AttemptEnd {
  readonly tokens: TokenCounts;
  readonly costNanoUsd: NanoUsd;
  /** What the provider says it charges, if it does: the operator's cost, which does not affect what the account is charged. */
  readonly toldNanoUsd?: NanoUsd | undefined;
  /** Signed: reference cost minus cost. */
  readonly savingsNanoUsd: NanoUsd;
  /** The cards that cost and savings are computed from, if the prompt reported by the provider has other cards than the estimate at the start. */
  readonly cards?: { readonly card: PriceCard__Output; readonly referenceCard: PriceCard__Output | null } | undefined;
  readonly source: Exclude<UsageSource__Output, 'USAGE_SOURCE_UNSPECIFIED'>;
  readonly flags: string[];
  /** HTTP status of the provider, 0 = none. */
  readonly status: number;
  readonly failure: FailureClass__Output;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly finishReason: string;
  /** A round that ended in, or broke off within, tool calls and showed the client nothing else: nobody saw it unless a later round answered. */
  readonly callsOnly?: boolean;
  /** The answer could not be handed over, so nobody saw it. */
  readonly undelivered?: boolean;
  /** Edge said that the client hung up. The client then owes what is booked here, even if no process survives to tell the outcome. */
  readonly clientLeft?: boolean;
  readonly endedAtMs: number;
}

/** What edge adds to an outcome. */
export interface OutcomeTerms {
  /** A later round of the request will end its hold. */
  readonly isFollowed?: boolean;
  /** The answer was kept in reserve while another attempt was made: only edge knows whether it was given to the client. */
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
  /** Resolves when the operating system has the record, so that it survives a kill of this process. Only then may a byte go to the provider. */
  start(record: AttemptStart): Promise<void>;
  /** What has been delivered so far; called every second or 256 tokens. */
  checkpoint(requestId: string, attempt: number, tokens: TokenCounts): void;
  /** Resolves when written: only then may the last byte go to edge. */
  end(requestId: string, attempt: number, end: AttemptEnd): Promise<void>;
  /** What became of an ended attempt. The first outcome counts, except that edge's replaces one that the worker concluded; unknown attempts are ignored. An outcome that arrives before `end` is kept until then. Resolves when it is in the log; undefined if a kill now would lose nothing. Rejects with a Fault when it cannot be written. */
  outcome(requestId: string, attempt: number, outcome: Exclude<Outcome__Output, 'OUTCOME_UNSPECIFIED'>, toldByEdge: boolean, terms?: OutcomeTerms): Promise<void> | undefined;
  /** Edge is alive and will tell the outcome of the attempt. Without another sign of it, the outcome is concluded after 30 s. Unknown attempts are ignored. */
  tend(requestId: string, attempt: number): void;
  state(): JournalState;
}
