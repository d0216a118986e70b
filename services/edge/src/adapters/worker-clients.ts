/** Workers over RPC: attempts, and messages about them. */
import type { DispatchEvent__Output, DispatchRequest, StopRequest, TendRequest } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient, StreamCall } from '@signalbox/rpc/call';
import type { WorkersPort } from '../domain/ports.js';
import { createOutcomes, type Outcomes } from './outcomes.js';

const TEND_DEADLINE_MS = 2_000;
const STOP_DEADLINE_MS = 1_000;
/** Attempts whose replica is remembered; more than are ever under way. */
const PEERS_MAX = 100_000;
const NOBODY_THERE = Promise.resolve(false);

const nameOf = (requestId: string, attempt: number): string => `${requestId}#${String(attempt)}`;

export interface WorkerClients extends WorkersPort, Pick<Outcomes, 'settle'> {}

/** `clients`: one for each provider. Every message about an attempt goes to the replica that ran it, since no other knows of it. `attemptDeadlineMs` bounds a whole attempt, its stream included. */
export function createWorkerClients(clients: ReadonlyMap<string, RpcClient>, clock: Clock, attemptDeadlineMs: number): WorkerClients {
  /** Replicas by attempt, in two generations: an attempt whose outcome is never told is dropped with the older one. */
  let peers = new Map<string, object>(); // kept: names, and replicas that are there anyway.
  let olderPeers = new Map<string, object>(); // kept: as above.
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
  const outcomes = createOutcomes(clock);
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
    tellOutcome: (provider, requestId, attempt, outcome, { isFollowed = false, isReserve = false, goesOn = false } = {}) => {
      const client = clients.get(provider);
      if (client === undefined) return NOBODY_THERE;
      const name = nameOf(requestId, attempt);
      const peer = peerOf(name);
      forget(name);
      return outcomes.tell(client, { requestId, attempt, outcome, followed: isFollowed, reserve: isReserve }, peer, goesOn);
    },
    tend: (provider, requestId, attempt) => {
      // A worker of an older version that does not know the call waits longer by itself.
      clients.get(provider)?.unary<TendRequest, object>('Tend', { requestId, attempt }, { deadlineMs: TEND_DEADLINE_MS, requestId, peer: peerOf(nameOf(requestId, attempt)) }).catch(() => undefined);
    },
    stop: (provider, requestId, attempt) => {
      // A worker of an older version that does not know the call goes on until it is cancelled.
      clients.get(provider)?.unary<StopRequest, object>('Stop', { requestId, attempt }, { deadlineMs: STOP_DEADLINE_MS, requestId, peer: peerOf(nameOf(requestId, attempt)) }).catch(() => undefined);
    },
    settle: (limitMs) => outcomes.settle(limitMs),
  };
}
