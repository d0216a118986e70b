/** Routing decisions: received from the bus and returned by RPCs. Best effort: a decision that is missed is lost. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { DecisionRow as DecisionMessage, DecisionsRequest__Output, DecisionsResponse, FeedbackRequest__Output, FeedbackResponse, GetDecisionRequest__Output, GetDecisionResponse } from '@signalbox/contracts/billing';
import type { DecisionsMade, DecisionsMade__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { BooksStore } from './domain/books.js';
import type { DecisionRow, DecisionStore } from './domain/decisions.js';

const SUBJECT = 'decisions.v1';
const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 500;
/** Most decisions that wait for the store; beyond that new ones are dropped. */
const WAITING_MAX = 2_000;
/** Most rows in one statement. */
const BATCH_MAX = 200;
const PRUNE_MS = 600_000;
const FIRST_PRUNE_MS = 60_000;

const codec = messageCodec<DecisionsMade, DecisionsMade__Output>('signalbox.events.v1.DecisionsMade');

const messageOf = ({ id, requestId, accountId, atMs, viaAuto, record, score }: DecisionRow): DecisionMessage => ({
  id, requestId, accountId, viaAuto, atMs: String(atMs), recordJson: Buffer.from(record), ...(score === undefined ? {} : { score }),
});

export function createDecisionsHandlers({ decisions, books }: { readonly decisions: DecisionStore; readonly books: Pick<BooksStore, 'request'> }): NonNullable<Handlers['unary']> {
  return {
    GetDecision: async (query: GetDecisionRequest__Output): Promise<GetDecisionResponse> => {
      if (query.id === '' && query.requestId === '') throw new Fault('bad_message', 'A decision is found by its id or its request id; both are empty.');
      const found = await decisions.find(query);
      return found === undefined ? { found: false } : { found: true, decision: messageOf(found) };
    },
    Decisions: async ({ accountId, fromMs, toMs, after, limit }: DecisionsRequest__Output): Promise<DecisionsResponse> => {
      const { rows, hasMore } = await decisions.list({ accountId, fromMs: Number(fromMs), toMs: Number(toMs), after, limit: Math.min(limit === 0 ? LIMIT_DEFAULT : limit, LIMIT_MAX) });
      return { decisions: rows.map(messageOf), hasMore };
    },
    Feedback: async ({ accountId, requestId, score, decision }: FeedbackRequest__Output): Promise<FeedbackResponse> => {
      if (accountId === '' || requestId === '' || !(score >= 0 && score <= 1)) throw new Fault('bad_message', 'Feedback needs an account, a request and a score from 0 to 1.');
      if (decision !== null && decision.accountId === accountId && decision.requestId === requestId) {
        await decisions.add([{ id: decision.id, requestId, accountId, atMs: Number(decision.atMs), viaAuto: decision.viaAuto, record: Buffer.from(decision.recordJson).toString('utf8'), score: undefined }]);
      }
      if (await decisions.rate(accountId, requestId, score)) return { known: true, kept: true };
      return { known: (await books.request(accountId, requestId)) !== undefined, kept: false };
    },
  };
}

export interface DecisionKeeper {
  /** Stores what was received. Safe to call twice. */
  stop(): Promise<void>;
}

export interface KeepOptions {
  readonly bus: Bus;
  readonly decisions: Pick<DecisionStore, 'add' | 'prune'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly keptMs: number;
  readonly keptMax: number;
}

/** Receives decisions, stores them in batches, one at a time, and deletes old ones and those beyond the limit. */
export async function keepDecisions({ bus, decisions, clock, log, keptMs, keptMax }: KeepOptions): Promise<DecisionKeeper> {
  const waiting: DecisionRow[] = [];
  let work: Promise<void> | undefined;
  let timer: Timer | undefined;
  let isStopped = false;

  const store = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH_MAX);
      try {
        await decisions.add(batch);
      } catch (error) {
        log.warn('Decisions could not be stored.', { count: batch.length, error: error instanceof Fault ? error.code : 'unknown' });
      }
    }
    work = undefined;
  };

  const prune = (): void => {
    const done = decisions.prune(clock.nowMs() - keptMs, keptMax).catch((error: unknown) => log.warn('Old decisions could not be deleted.', { error: error instanceof Fault ? error.code : 'unknown' }));
    void done.finally(() => {
      if (!isStopped) timer = clock.setTimer(PRUNE_MS, prune, { unref: true });
    });
  };

  const subscription: Subscription = await bus.listen(SUBJECT, ({ payload }) => {
    if (keptMax === 0) return;
    let message: DecisionsMade__Output;
    try {
      message = codec.decode(payload);
    } catch {
      log.warn('A message about decisions could not be read.');
      return;
    }
    for (const { id, requestId, accountId, atMs, viaAuto, recordJson } of message.decisions) {
      if (waiting.length >= WAITING_MAX) break;
      waiting.push({ id, requestId, accountId, atMs: Number(atMs), viaAuto, record: Buffer.from(recordJson).toString('utf8'), score: undefined });
    }
    work ??= store();
  });
  timer = clock.setTimer(FIRST_PRUNE_MS, prune, { unref: true });

  return {
    stop: async () => {
      isStopped = true;
      timer?.cancel();
      await subscription.stop();
      await work;
    },
  };
}
