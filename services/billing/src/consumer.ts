/** Consumes usage events: checks them, commits ledger rows and announces totals. Acknowledges only after the commit. */
import type { BusMessage, Verdict } from '@signalbox/bus/bus';
import type { AttemptEnded, AttemptEnded__Output, OutcomeTold, OutcomeTold__Output, TotalsPublished, TotalsPublished__Output, UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import type { Span, Tracer } from '@signalbox/runtime/span';
import { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome } from './domain/check.js';
import { JsonTexts } from './domain/json-text.js';
import type { AccountTotals, CheckedRange, CommittedBatch, DeadEvent, LedgerStore } from './domain/ports.js';
import type { BillingMetrics } from './metrics.js';

const usageCodec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const attemptCodec = messageCodec<AttemptEnded, AttemptEnded__Output>('signalbox.events.v1.AttemptEnded');
const outcomeCodec = messageCodec<OutcomeTold, OutcomeTold__Output>('signalbox.events.v1.OutcomeTold');
const totalsCodec = messageCodec<TotalsPublished, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');

/** Deliveries of a message with a fact that cannot be booked, since a newer replica may be able to book it. Then the fact is kept as a dead event. */
export const DELIVERIES_MAX = 5;

export interface ConsumerOptions {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: BillingMetrics;
  /** Delivered at most once. A receiver notices a missed announcement by the previous sequence in the next one, and asks. */
  announce(subject: string, payload: Uint8Array): void;
  /** Records a span for the booking of each attempt whose request is traced. Absent: no spans. */
  readonly tracer?: Tracer | undefined;
  /** Gives others a turn of the event loop between two messages of a batch. Absent: a batch is read in one go. */
  readonly nextTurn?: (() => Promise<void>) | undefined;
}

export function totalsMessage(totals: AccountTotals): TotalsPublished {
  return {
    accountId: totals.accountId,
    ledgerSeq: String(totals.ledgerSeq),
    totals: totals.totals.map(({ scope, periodId, chargeNanoUsd, tokens, byokTokens }) => ({ scope, periodId, chargeNanoUsd: String(chargeNanoUsd), tokens: String(tokens), byokTokens: String(byokTokens) })),
    requestIds: [...totals.requestIds],
    previousSeq: String(totals.previousSeq),
  };
}

export function announceTotals(accounts: readonly AccountTotals[], announce: ConsumerOptions['announce']): void {
  for (const totals of accounts) announce(`totals.v1.${totals.accountId}`, totalsCodec.encode(totalsMessage(totals)));
}

/** An empty range: facts that are booked with it move no watermark. */
export const NO_RANGE = { first: 1n, last: 0n };

interface Read {
  readonly range: CheckedRange;
  readonly dead: readonly DeadEvent[];
  /** Attempts whose requests are traced. */
  readonly traced: readonly AttemptEnded__Output[];
}

/** Decodes and checks a message; undefined if it cannot be decoded. */
function readUsage({ subject, payload }: BusMessage): Read | undefined {
  let usage: UsageRecorded__Output;
  try {
    usage = usageCodec.decode(payload);
  } catch {
    return undefined;
  }
  const range = { first: BigInt(usage.firstSeq), last: BigInt(usage.lastSeq) };
  if (usage.writer === '' || range.first < 1n || range.last < range.first) return undefined;
  const dead: DeadEvent[] = [];
  const attempts: CheckedAttempt[] = [];
  const outcomes: CheckedOutcome[] = [];
  // Details are about as long as the events.
  const details = new JsonTexts(payload.length);
  for (const event of usage.ended) {
    const checked = checkAttempt(event, details);
    if (typeof checked === 'string') dead.push({ subject, reason: checked, writer: usage.writer, payload: attemptCodec.encode(event) });
    else attempts.push(checked);
  }
  for (const event of usage.outcomes) {
    const checked = checkOutcome(event);
    if (typeof checked === 'string') dead.push({ subject, reason: checked, writer: usage.writer, payload: outcomeCodec.encode(event) });
    else outcomes.push(checked);
  }
  return { range: { writer: usage.writer, range, attempts, outcomes }, dead, traced: usage.ended.filter(({ traceparent }) => traceparent !== '') };
}

/** True if this version can decode the message, even if its facts cannot be booked. */
export const isReadable = (message: BusMessage): boolean => readUsage(message) !== undefined;

/** Creates the handler of batches for `Bus.consume`. */
export function createConsumer({ store, clock, log, metrics, announce, tracer, nextTurn }: ConsumerOptions): (messages: readonly BusMessage[]) => Promise<readonly Verdict[]> {
  const warnAway = rareWarning(log, clock, 'The ledger is away; the usage will be redelivered.');
  async function commit(ranges: readonly CheckedRange[], dead: readonly DeadEvent[]): Promise<void> {
    const startedMs = clock.monotonicMs();
    const committed: CommittedBatch = await store.commit(ranges, dead, clock.nowMs());
    metrics.committed((clock.monotonicMs() - startedMs) / 1_000);
    for (const [kind, count] of Object.entries(committed.rows)) if (count > 0) metrics.rowsBooked(kind, count);
    for (const { reason } of dead) metrics.eventRefused(reason);
    for (let i = 0; i < committed.refused; i += 1) metrics.eventRefused('account_mismatch');
    announceTotals(committed.accounts, announce);
  }

  /** Starts spans for the traced attempts that a batch is about to book. */
  function beginSpans(traced: readonly AttemptEnded__Output[]): readonly Span[] {
    if (tracer === undefined) return [];
    return traced.flatMap(({ requestId, attempt, traceparent }) => tracer.start({ name: 'book usage', kind: 'consumer', requestId, parent: traceparent, attributes: { 'signalbox.request_id': requestId, 'signalbox.attempt': attempt } }) ?? []);
  }

  async function handle(messages: readonly BusMessage[]): Promise<readonly Verdict[]> {
    const ranges: CheckedRange[] = [];
    const dead: DeadEvent[] = [];
    const traced: AttemptEnded__Output[] = [];
    const judge = (message: BusMessage): Verdict => {
      const read = readUsage(message);
      if (read !== undefined) traced.push(...read.traced);
      if (read !== undefined && read.dead.length === 0) {
        ranges.push(read.range);
        return 'done';
      }
      if (read !== undefined) {
        // The good facts of the message are booked at once; the writer's watermark waits for the last delivery.
        const isLast = message.deliveries >= DELIVERIES_MAX;
        ranges.push(isLast ? read.range : { ...read.range, range: NO_RANGE });
        if (!isLast) return 'again';
        dead.push(...read.dead);
        return 'poison';
      }
      // This version can never read the message and later ones must not wait for it, so it is kept for later versions (reread.ts).
      dead.push({ subject: message.subject, reason: 'undecodable', writer: '', payload: message.payload });
      return 'poison';
    };
    const verdicts: Verdict[] = [];
    for (const message of messages) {
      if (verdicts.length > 0) await nextTurn?.();
      verdicts.push(judge(message));
    }
    if (ranges.length === 0 && dead.length === 0) return verdicts;
    const spans = beginSpans(traced.splice(0));
    try {
      await commit(ranges, dead);
      for (const span of spans) span.end();
      return verdicts;
    } catch (error) {
      for (const span of spans) span.end(error instanceof Fault ? error.code : 'internal_error');
      metrics.batchFailed();
      if (error instanceof Fault) {
        warnAway({ code: error.code, reason: error.message });
        return messages.map(() => 'again');
      }
      log.error('A batch could not be booked.', { messages: messages.length }, error);
      if (messages.length > 1) {
        const single: Verdict[] = [];
        for (const message of messages) single.push(...(await handle([message])));
        return single;
      }
      const [message] = messages;
      if (message === undefined || message.deliveries < DELIVERIES_MAX) return messages.map(() => 'again');
      try {
        await commit([], [{ subject: message.subject, reason: 'not_bookable', writer: '', payload: message.payload }]);
        return ['poison'];
      } catch {
        return ['again'];
      }
    }
  }
  return handle;
}
