/** The parts of events that billing reads. */
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';

/** An ended attempt; 64-bit integers are decimal text, as in decoded messages. */
export interface AttemptMessage {
  readonly requestId: string;
  readonly attempt: number;
  readonly retryOf: readonly number[];
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly endpointId: string;
  readonly card: Readonly<Record<'id' | 'inputUncached' | 'cacheRead' | 'cacheWrite' | 'outputText' | 'outputReasoning' | 'audio' | 'image' | 'requestNanoUsd', string>> | null;
  readonly tokens: TokenCounts | null;
  readonly costNanoUsd: string;
  readonly savingsNanoUsd: string;
  readonly toldNanoUsd?: string | undefined;
  readonly source: string;
  readonly flags: readonly string[];
  readonly byok: boolean;
  readonly periods: ChargePeriods | null;
  readonly status: number;
  readonly failure: string;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly finishReason: string;
  readonly routedFrom: string;
  readonly decisionId: string;
  readonly startedAtMs: string;
  readonly endedAtMs: string;
  readonly deliveredUnknown: boolean;
  readonly callsOnly?: boolean;
  readonly undelivered?: boolean;
  readonly clientLeft?: boolean;
}

export interface OutcomeMessage {
  readonly requestId: string;
  readonly attempt: number;
  readonly accountId: string;
  readonly outcome: string;
  readonly toldByEdge: boolean;
  readonly followed?: boolean;
}
