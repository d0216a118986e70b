/** Builds one life of each service behind the edges: the production handlers, on stores and links that fail. */
import { createBillingMetrics, createConsumer, createHandlers as createBillingHandlers, Hearing } from '@signalbox/billing/proof';
import type { Bus } from '@signalbox/bus/bus';
import type { WatermarksResponse__Output } from '@signalbox/contracts/billing';
import type { TotalsPublished__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { DispatchEvent, DispatchRequest__Output, TendRequest__Output } from '@signalbox/contracts/worker';
import { createHandlers as createQuotaHandlers, createQuota, createQuotaMetrics, readTotals, readWriters, writeLost } from '@signalbox/quota/proof';
import type { CallInfo, Emitter, Handlers, RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import { createCredentialPool, createDispatcher, createObservations, createWorkerMetrics, type Dispatcher, outcomeHandlers, type ExtendHold, type OpenJournal } from '@signalbox/worker-kit/proof';
import { getRequest } from './claims.js';
import type { SimCounters } from './counters.js';
import type { Coverage } from './coverage.js';
import type { SimLedger } from './ledger.js';
import { EPOCH_MS, type Life } from './life.js';
import { asOurs, forgettingLeft, writeLate } from './mutant-journal.js';
import { takenForSent } from './mutant-leaving.js';
import type { Mutant } from './mutants.js';
import type { SimProvider } from './provider.js';
import { handleAt } from './traffic.js';

/** As in quota's composition. */
const SWEEP_MS = 5_000;
const RECONCILE_MS = 10_000;
const OVERDUE_MS = 15_000;
const RECONCILE_DEADLINE_MS = 5_000;
export const TOTALS_DEADLINE_MS = 100;

const totalsCodec = messageCodec<object, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');
// Shared by all runs of this thread, since nobody reads them.
const billingMetrics = createBillingMetrics(false);
const quotaMetrics = createQuotaMetrics(false);
const workerMetrics = createWorkerMetrics(createMetrics({ service: 'worker', withProcessMetrics: false }));
const SECRET = new Secret('sk-simulated');
const OWN_SECRET = new Secret('sk-own');

export interface QuotaParts {
  readonly life: Life;
  readonly store: ReturnType<SimCounters['openFor']>;
  readonly bus: Bus;
  readonly billing: RpcClient;
  readonly coverage: Coverage;
}

export function quotaIn({ life, store, bus, billing, coverage }: QuotaParts): Handlers {
  const quota = createQuota(store, async (accountId, requestIds) => {
    const deadlineMs = requestIds.length === 0 ? TOTALS_DEADLINE_MS : RECONCILE_DEADLINE_MS;
    return readTotals(await billing.unary<object, TotalsPublished__Output>('Totals', { accountId, requestIds: [...requestIds] }, { deadlineMs }));
  }, undefined, { clock: life.clock, askWriters: async () => readWriters(await billing.unary<object, WatermarksResponse__Output>('Watermarks', {})), bookLost: async (writer, accountId, requests) => void (await billing.unary('BookLost', writeLost(writer, accountId, requests))) });
  const handlers = createQuotaHandlers({ quota, metrics: quotaMetrics, periodSeconds: undefined });
  void bus.listen('totals.v1.>', ({ payload }) => {
    const message = totalsCodec.decode(payload);
    quota.applyTotals(message.accountId, readTotals(message)).catch(() => undefined);
  });
  const repeat = (delayMs: number, work: () => Promise<void>): void => {
    life.clock.setTimer(delayMs, () => void work().catch(() => undefined).finally(() => repeat(delayMs, work)));
  };
  repeat(SWEEP_MS, async () => coverage.took('reserved → lease over', await quota.sweep()));
  const reconcile = async (ageMs: number): Promise<void> => coverage.took('settled on being asked', await quota.reconcile(ageMs));
  reconcile(0).catch(() => undefined);
  repeat(RECONCILE_MS, () => reconcile(OVERDUE_MS));
  const release = handlers.unary['Release'];
  const counted: typeof release = async (request, call) => {
    coverage.took('reserved → released');
    return (await release?.(request, call)) as object;
  };
  return { ...handlers, unary: { ...handlers.unary, Release: counted } };
}

export interface BillingParts {
  readonly life: Life;
  readonly ledger: SimLedger;
  readonly bus: Bus;
  /** Clock of the ledger's store, in virtual milliseconds. */
  readonly nowMs: () => number;
}

export function billingIn({ life, ledger, bus, nowMs }: BillingParts): Handlers {
  const store = ledger.openFor(life);
  const { clock } = life;
  const consumer = createConsumer({ store, clock, log: silentLog, metrics: billingMetrics, announce: (subject, payload) => bus.announce(subject, payload) });
  void bus.consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: 64, batchWaitMs: 20 }, consumer);
  const handlers = createBillingHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(EPOCH_MS + Math.floor(nowMs())), announce: (subject, payload) => bus.announce(subject, payload) });
  return { ...handlers, unary: { ...handlers.unary, GetRequest: getRequest(ledger, life) } };
}

export interface WorkerParts {
  readonly life: Life;
  readonly provider: SimProvider;
  readonly journal: OpenJournal;
  readonly bus: Bus;
  readonly mutant: Mutant | undefined;
  readonly extendHold: ExtendHold;
  readonly onDispatch: (request: DispatchRequest__Output) => void;
  /** Called when edge reports that the answer was delivered. */
  readonly onDelivered: (requestId: string, attempt: number) => void;
  /** Wraps the call for the worker. */
  readonly watched: (request: DispatchRequest__Output, call: CallInfo) => CallInfo;
}

export function workerIn({ life, provider, journal, bus, mutant, extendHold, onDispatch, onDelivered, watched }: WorkerParts): { readonly dispatcher: Dispatcher; readonly handlers: Handlers } {
  const { clock } = life;
  const book = mutant === 'no-write-ahead' ? writeLate(journal) : mutant === 'own-charged' ? asOurs(journal) : mutant === 'leaving-unwritten' ? forgettingLeft(journal) : journal;
  const adapter = createOpenAiChatAdapter({ provider: provider.name, baseUrl: `http://${provider.name}.invalid/v1` });
  const own = { pool: createCredentialPool([OWN_SECRET], clock), adapter, isAtOwnAddress: false };
  const dispatcher = createDispatcher({
    adapter,
    ownCredentials: { resolve: (_accountId, handle) => (handle === handleAt(provider.name) ? own : undefined) },
    upstream: mutant === 'unsent-paid' ? takenForSent(provider.upstreamFor(life)) : provider.upstreamFor(life),
    credentials: createCredentialPool([SECRET], clock),
    journal: book,
    observations: createObservations({ bus, provider: provider.name, origin: journal.state().writer, clock }),
    metrics: workerMetrics,
    clock,
    log: silentLog,
    extendHold,
  });
  const handlers: Handlers = {
    unary: {
      ...outcomeHandlers({
        outcome: (requestId, attempt, outcome, ...told) => {
          if (outcome === 'DELIVERED') onDelivered(requestId, attempt);
          return book.outcome(requestId, attempt, outcome, ...told);
        },
      }),
      Tend: ({ requestId, attempt }: TendRequest__Output) => {
        book.tend(requestId, attempt);
        return {};
      },
    },
    stream: {
      Dispatch: (request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>) => {
        onDispatch(request);
        return dispatcher.dispatch(request, watched(request, call), emit);
      },
    },
  };
  return { dispatcher, handlers };
}
