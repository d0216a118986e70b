/** The door for events: usage in, ledger rows committed, totals announced. Acknowledges after the commit only. */
import type { BusMessage, Verdict } from '@signalbox/bus/bus';
import type { AttemptEnded, AttemptEnded__Output, OutcomeTold, OutcomeTold__Output, TotalsPublished, TotalsPublished__Output, UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import type { Span, Tracer } from '@signalbox/runtime/span';
import { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome } from './domain/check.js';
import type { AccountTotals, CheckedRange, CommittedBatch, DeadEvent, LedgerStore } from './domain/ports.js';
import type { BillingMetrics } from './metrics.js';

const usageCodec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const attemptCodec = messageCodec<AttemptEnded, AttemptEnded__Output>('signalbox.events.v1.AttemptEnded');
const outcomeCodec = messageCodec<OutcomeTold, OutcomeTold__Output>('signalbox.events.v1.OutcomeTold');
const totalsCodec = messageCodec<TotalsPublished, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');

/** A fact that cannot be booked is tried this often, since a newer replica may know it, then kept as a dead event. */
export const DELIVERIES_MAX = 5;

export interface ConsumerOptions {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: BillingMetrics;
  /** At most once; who missed one sees it by the next one's previous sequence, and asks. */
  announce(subject: string, payload: Uint8Array): void;
  /** Records the booking of each attempt whose request is traced. Absent: of none. */
  readonly tracer?: Tracer | undefined;
  /** Between two messages of a batch: lets others have their turn of the event loop. Absent: a batch is read in one go. */
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

/** Of no sequence at all: what is booked with it moves no watermark. */
export const NO_RANGE = { first: 1n, last: 0n };

interface Read {
  readonly range: CheckedRange;
  readonly dead: readonly DeadEvent[];
  /** Attempts of requests that are traced. */
  readonly traced: readonly AttemptEnded__Output[];
}

/** A message as checked facts; undefined when it cannot be read at all. */
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
  for (const event of usage.ended) {
    const checked = checkAttempt(event);
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

/** True where this version can read the message, whatever its facts are worth. */
export const isReadable = (message: BusMessage): boolean => readUsage(message) !== undefined;

/** Answers the handler of batches for `Bus.consume`. */
export function createConsumer({ store, clock, log, metrics, announce, tracer, nextTurn }: ConsumerOptions): (messages: readonly BusMessage[]) => Promise<readonly Verdict[]> {
  async function commit(ranges: readonly CheckedRange[], dead: readonly DeadEvent[]): Promise<void> {
    const startedMs = clock.monotonicMs();
    const committed: CommittedBatch = await store.commit(ranges, dead, clock.nowMs());
    metrics.committed((clock.monotonicMs() - startedMs) / 1_000);
    for (const [kind, count] of Object.entries(committed.rows)) if (count > 0) metrics.rowsBooked(kind, count);
    for (const { reason } of dead) metrics.eventRefused(reason);
    for (let i = 0; i < committed.refused; i += 1) metrics.eventRefused('account_mismatch');
    announceTotals(committed.accounts, announce);
  }

  /** Of the attempts that a batch is about to book. */
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
        // What stands beside a bad fact is booked at once; the writer's range waits for the last try.
        const isLast = message.deliveries >= DELIVERIES_MAX;
        ranges.push(isLast ? read.range : { ...read.range, range: NO_RANGE });
        if (!isLast) return 'again';
        dead.push(...read.dead);
        return 'poison';
      }
      // This version will never read it, and those behind it must not wait: kept at once, for later versions (reread.ts).
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
        log.warn('The ledger is away; usage comes again.', { code: error.code });
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
