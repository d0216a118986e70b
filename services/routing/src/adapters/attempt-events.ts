/** Receives attempts from the bus and feeds them to the statistics, and answers of `auto` to the budget of exploration. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { AttemptObserved__Output, AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Log } from '@signalbox/runtime/log';
import type { ExplorationBudget } from '../domain/exploration-budget.js';
import type { LiveStats } from '../domain/live-stats.js';

const PREFIX = 'attempts.v1.';
const SUBJECT = `${PREFIX}>`;
/** Failures caused by the request, which say nothing about the endpoint's health. */
const REQUEST_FAULTS: ReadonlySet<string> = new Set(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);
/** Failures for which the wait applies to all credentials for the endpoint's model. */
const OF_CREDENTIALS: ReadonlySet<string> = new Set(['RATE_LIMITED', 'CREDENTIAL', 'NO_CREDENTIAL']);

function observe(live: LiveStats, attempt: AttemptObserved__Output, provider: string, pool: number): void {
  live.observe({
    endpointId: attempt.endpointId,
    isSuccess: attempt.ok || REQUEST_FAULTS.has(attempt.failure),
    isStreaming: attempt.stream,
    firstTokenMs: attempt.ok ? attempt.ttftMs : 0,
    totalMs: attempt.ok ? attempt.totalMs : 0,
    outputTokens: attempt.ok ? attempt.outputTokens : 0,
    retryAfterMs: OF_CREDENTIALS.has(attempt.failure) ? attempt.retryAfterMs : 0,
    benchedMs: attempt.benchedMs,
    isRateLimit: attempt.failure === 'RATE_LIMITED',
    cutMs: attempt.cut ? attempt.totalMs : undefined,
    provider,
    pool,
  });
}

export interface AttemptListeners {
  readonly live: LiveStats;
  /** Undefined = `auto` never explores. */
  readonly exploration: Pick<ExplorationBudget, 'hearAnswer'> | undefined;
}

/** Listens until stopped. Messages that cannot be read are skipped: statistics are best effort. */
export function listenToAttempts(bus: Bus, { live, exploration }: AttemptListeners, log: Log): Promise<Subscription> {
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  return bus.listen(SUBJECT, ({ subject, payload }) => {
    let message: AttemptsObserved__Output;
    try {
      message = codec.decode(payload);
    } catch (error) {
      log.warn('A message about attempts could not be read.', { error: error instanceof Error ? error.name : 'unknown' });
      return;
    }
    const provider = subject.slice(PREFIX.length);
    live.hearPool(provider, message.pool);
    for (const attempt of message.attempts) {
      observe(live, attempt, provider, message.pool);
      if (attempt.autoDecisionId !== '') exploration?.hearAnswer(attempt.autoDecisionId);
    }
    if (message.freeProvider !== '') live.hearFree(message.freeProvider, message.pool);
    for (const endpointId of message.probedEndpointIds) live.hearProbe(endpointId, 'sent');
    for (const endpointId of message.begunEndpointIds) live.hearProbe(endpointId, 'begun');
    for (const endpointId of message.voidEndpointIds) live.hearProbe(endpointId, 'void');
  });
}
