/** Stops a worker as its composition does; it is restarted, possibly much later. */
import { untilNone } from '@signalbox/edge/proof';
import { Fault } from '@signalbox/kernel/fault';
import type { Dispatcher, OpenJournal } from '@signalbox/worker-kit/proof';
import type { SimDisk } from './disk.js';
import type { Life } from './life.js';
import type { Door } from './network.js';
import type { SimProvider } from './provider.js';

/** As in the worker's composition. */
const END_WAIT_MS = 5_000;

export interface Worker {
  readonly name: string;
  readonly provider: SimProvider;
  readonly disk: SimDisk;
  readonly door: Door;
  /** Requests that reached it. */
  readonly served: Set<string>;
  journal: OpenJournal | undefined;
  dispatcher: Dispatcher | undefined;
}

export interface WorkerStop {
  /** How long its answers may continue. */
  readonly drainMs: number;
  /** How long, after the last answer, edges may report outcomes. */
  readonly toldMs: number;
  /** Time from its end to its next start. */
  readonly awayMs: number;
}

const closed = (): Promise<never> => Promise.reject(new Fault('peer_unavailable', 'this worker stops'));

/** SIGTERM to `life`, the worker's current one. */
export async function drainWorker({ door, journal, dispatcher }: Worker, { clock }: Life, { drainMs, toldMs }: WorkerStop): Promise<void> {
  if (dispatcher === undefined) return;
  const unary = door.handlers?.unary ?? {};
  // Refuses new requests, but still receives outcomes of its attempts.
  door.handlers = { unary, stream: { Dispatch: closed } };
  await untilNone(() => dispatcher.inFlight(), drainMs, clock);
  await new Promise<void>((resolve) => clock.setTimer(toldMs, resolve));
  door.handlers = { unary: Object.fromEntries(Object.keys(unary).map((method) => [method, closed])), stream: { Dispatch: closed } };
  await journal?.close(END_WAIT_MS);
}
