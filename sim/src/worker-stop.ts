/** A worker that is told to stop: it ends as its composition does, and its keeper starts it again, if only much later. */
import { untilNone } from '@signalbox/edge/proof';
import { Fault } from '@signalbox/kernel/fault';
import type { Dispatcher, OpenJournal } from '@signalbox/worker-kit/proof';
import type { SimDisk } from './disk.js';
import type { Life } from './life.js';
import type { Door } from './network.js';
import type { SimProvider } from './provider.js';

/** As the composition has it. */
const END_WAIT_MS = 5_000;

export interface Worker {
  readonly name: string;
  readonly provider: SimProvider;
  readonly disk: SimDisk;
  readonly door: Door;
  /** Requests that came to it. */
  readonly served: Set<string>;
  journal: OpenJournal | undefined;
  dispatcher: Dispatcher | undefined;
}

export interface WorkerStop {
  /** So long its answers may go on. */
  readonly drainMs: number;
  /** From the last of them on so long edges may tell what became of them. */
  readonly toldMs: number;
  /** From its end to its next start. */
  readonly awayMs: number;
}

const closed = (): Promise<never> => Promise.reject(new Fault('peer_unavailable', 'this worker stops'));

/** SIGTERM to `life`, the present one of the worker. */
export async function drainWorker({ door, journal, dispatcher }: Worker, { clock }: Life, { drainMs, toldMs }: WorkerStop): Promise<void> {
  if (dispatcher === undefined) return;
  const unary = door.handlers?.unary ?? {};
  // No door for requests; what became of its attempts is still heard.
  door.handlers = { unary, stream: { Dispatch: closed } };
  await untilNone(() => dispatcher.inFlight(), drainMs, clock);
  await new Promise<void>((resolve) => clock.setTimer(toldMs, resolve));
  door.handlers = { unary: Object.fromEntries(Object.keys(unary).map((method) => [method, closed])), stream: { Dispatch: closed } };
  await journal?.close(END_WAIT_MS);
}
