import type { DispatchEvent__Output, DispatchRequest, OutcomeRequest, TendRequest } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { RpcClient, StreamCall } from '@signalbox/rpc/call';
import type { WorkersPort } from '../domain/ports.js';

const OUTCOME_DEADLINE_MS = 2_000;
/** 15 min: until its writer counts as lost. A worker that is moved to another host is away for minutes, and what it never hears of it charges as delivered. */
const OUTCOME_RETRIES_MS = 900_000;
/** At first, while a client may be waiting for it; then a quarter of what has passed. */
const OUTCOME_RETRY_MS = 250;
/** Half of the 30 s after which a worker that is back concludes by itself. */
const OUTCOME_RETRY_MS_MAX = 15_000;
/** 1 min where it is not known that an attempt ever left: those of an outage must not take the room of others. */
const UNSENT_RETRIES_MS = 60_000;
const OUTCOMES_WAITING_MAX = 10_000;
/** Attempts of which it is known which replica has them, told or not: more than are ever under way. */
const PEERS_MAX = 100_000;
const NOBODY_THERE = Promise.resolve();

const nameOf = (requestId: string, attempt: number): string => `${requestId}#${String(attempt)}`;

export interface WorkerClients extends WorkersPort {
  /**
   * For an edge that stops: tells what is still to be told, at once and then every quarter of a second. Resolves when all is
   * told, but for what never left, or after `limitMs`; answers how many outcomes were left untold, which their workers
   * conclude by themselves. Nothing is tried again afterwards.
   */
  settle(limitMs: number): Promise<number>;
}

/** One client for each provider. What is told of an attempt goes to the replica that has it: another knows nothing of it. */
export function createWorkerClients(clients: ReadonlyMap<string, RpcClient>, clock: Clock, attemptDeadlineMs: number): WorkerClients {
  /** Replicas by attempt; an attempt of which nothing is ever told leaves with the older half. */
  let peers = new Map<string, object>();
  let olderPeers = new Map<string, object>();
  const peerOf = (name: string): object | undefined => peers.get(name) ?? olderPeers.get(name);
  const remember = (name: string, peer: object | undefined): void => {
    if (peer === undefined) return;
    if (peers.size >= PEERS_MAX / 2) [olderPeers, peers] = [peers, new Map()];
    peers.set(name, peer);
  };
  const forget = (name: string): void => {
    peers.delete(name);
    olderPeers.delete(name);
  };
  /** Outcomes that are being told or wait to be told again. */
  let untold = 0;
  /** Those that wait: what tells each at once. */
  const waiting = new Set<() => void>();
  let isSettling = false;
  let isOver = false;
  let onAllTold: (() => void) | undefined;
  const ended = (): void => {
    untold -= 1;
    if (untold === 0) onAllTold?.();
  };
  const tell = (client: RpcClient, request: OutcomeRequest, peer: object | undefined, sinceMs: number): Promise<void> =>
    client.unary<OutcomeRequest, object>('Outcome', request, { deadlineMs: OUTCOME_DEADLINE_MS, requestId: request.requestId ?? '', peer }).then(ended, () => tellAgain(client, request, peer, sinceMs));
  const tellAgain = (client: RpcClient, request: OutcomeRequest, peer: object | undefined, sinceMs: number): Promise<void> | undefined => {
    const passedMs = clock.monotonicMs() - sinceMs;
    const isSent = peer !== undefined;
    if (isOver) return undefined;
    if (passedMs >= (isSent ? OUTCOME_RETRIES_MS : UNSENT_RETRIES_MS) || waiting.size >= (isSent ? OUTCOMES_WAITING_MAX : OUTCOMES_WAITING_MAX / 2) || (isSettling && !isSent)) {
      ended();
      return undefined;
    }
    return new Promise((resolve) => {
      let timer: Timer | undefined = undefined;
      const now = (): void => {
        timer?.cancel();
        waiting.delete(now);
        void tell(client, request, peer, sinceMs).then(resolve);
      };
      waiting.add(now);
      timer = clock.setTimer(isSettling ? OUTCOME_RETRY_MS : Math.min(OUTCOME_RETRY_MS_MAX, Math.max(OUTCOME_RETRY_MS, passedMs / 4)), now, { unref: true });
    });
  };
  return {
    dispatch: (provider, request, listener, besides) => {
      const { requestId = '', attempt = 0 } = request;
      const name = nameOf(requestId, attempt);
      let call: StreamCall | undefined;
      let known: object | undefined;
      const learn = (): void => {
        const peer = call?.peer?.();
        if (peer !== known) remember(name, (known = peer));
      };
      call = clients.get(provider)?.stream<DispatchRequest, DispatchEvent__Output>(
        'Dispatch',
        request,
        {
          onMessage: (event) => {
            learn();
            listener.onEvent(event);
          },
          onEnd: (fault) => {
            learn();
            listener.onEnd(fault);
          },
        },
        { deadlineMs: attemptDeadlineMs, requestId, besides },
      );
      learn();
      return call;
    },
    tellOutcome: (provider, requestId, attempt, outcome, { isFollowed = false, isReserve = false } = {}) => {
      const client = clients.get(provider);
      if (client === undefined) return NOBODY_THERE;
      const name = nameOf(requestId, attempt);
      const peer = peerOf(name);
      forget(name);
      untold += 1;
      return tell(client, { requestId, attempt, outcome, followed: isFollowed, reserve: isReserve }, peer, clock.monotonicMs());
    },
    tend: (provider, requestId, attempt) => {
      // A worker that does not know the call waits longer by itself.
      clients.get(provider)?.unary<TendRequest, object>('Tend', { requestId, attempt }, { deadlineMs: OUTCOME_DEADLINE_MS, requestId, peer: peerOf(nameOf(requestId, attempt)) }).catch(() => undefined);
    },
    settle: async (limitMs) => {
      isSettling = true;
      for (const now of [...waiting]) now();
      if (untold > 0) {
        await new Promise<void>((resolve) => {
          const limit = clock.setTimer(limitMs, resolve);
          onAllTold = () => {
            limit.cancel();
            resolve();
          };
        });
      }
      isOver = true;
      return untold;
    },
  };
}
