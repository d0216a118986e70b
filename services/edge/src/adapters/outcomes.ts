/** Delivers the outcomes of attempts to their workers, with retries; outcomes that nobody waits for are sent in batches, and those of one request's rounds together (ADR 50, 64). */
import type { OutcomeRequest, OutcomesRequest } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import { replicaOf, type RpcClient } from '@signalbox/rpc/call';

const DEADLINE_MS = 2_000;
/** 15 min, after which a worker's log counts as lost. A worker that moves to another host is away for minutes, and charges an attempt as delivered if it is told nothing. */
const RETRIES_MS = 900_000;
/** Pause before a retry: at first this, since a client may be waiting, later a quarter of the time passed. */
const RETRY_MS = 250;
/** Half of the 30 s after which a worker that has come back decides by itself. */
const RETRY_MS_MAX = 15_000;
/** 1 min for attempts that may never have reached their worker: during an outage they must not fill the queue. */
const UNSENT_RETRIES_MS = 60_000;
const WAITING_MAX = 10_000;
/** Outcomes that nobody waits for are gathered this long, and sent with the first outcome after it. A worker gathers its messages to quota for the same time. */
const GATHER_MS = 10;
/** The same where no further outcome comes. On a busy edge the timer never fires, since waking up costs more than the message. */
const GATHER_MS_MAX = 20;
/** Outcomes in one message; the rounds of a request are not divided, and may exceed it. */
const TOGETHER_MAX = 128;

export interface Outcomes {
  /**
   * Retried in the background for a while. Resolves with true when the worker has taken the outcome (and has written it to its
   * log if it would not conclude the same by itself), with false when the last retry failed; never rejects. `peer`: the
   * replica that has the attempt, undefined = not known. `goesOn`: the attempt runs on for a while and its worker answers only
   * once it has ended, so that no other outcome may wait for this one.
   */
  tell(client: RpcClient, request: OutcomeRequest, peer: object | undefined, goesOn?: boolean): Promise<boolean>;
  /**
   * For an edge that stops: sends all waiting outcomes at once and then every quarter of a second. Resolves when all are told
   * (those that may never have reached their worker are given up), or after `limitMs`. The value is the number of outcomes
   * left untold, which their workers conclude by themselves. Nothing is retried afterwards.
   */
  settle(limitMs: number): Promise<number>;
}

/** Outcomes on their way to one replica. */
interface Line {
  /** Monotonic milliseconds of the last message to it. */
  lastMs: number;
  /** Outcomes that wait to be sent together. */
  gathered: Gathered | undefined;
  /** An older version, which takes outcomes one at a time. */
  isOld: boolean;
}

/** An outcome, and the replica that has its attempt, over the link that the attempt ran over. */
interface Addressed {
  readonly request: OutcomeRequest;
  readonly peer: object;
}

interface Gathered {
  readonly outcomes: Addressed[];
  /** Monotonic milliseconds of the first. */
  readonly sinceMs: number;
  /** Resolves when all of them are told (true), or one is given up. */
  readonly told: Promise<boolean>;
  readonly send: () => void;
  /** Sends them once the code that is running has told what it has to tell. */
  readonly sendSoon: () => void;
}

/** True when the worker would conclude the same by itself, so that nobody waits until it has it written down. */
const isOrdinary = ({ outcome, followed, reserve }: OutcomeRequest): boolean => outcome === 'DELIVERED' && followed !== true && reserve !== true;

/**
 * True for a round that another one followed. All rounds of a request are told in the same turn of the event loop: in one message,
 * so that the ledger hears of them at once. Of the earlier ones alone it would book a part of the charge, and correct it later.
 */
const isRound = ({ outcome, followed, reserve }: OutcomeRequest): boolean => outcome === 'DELIVERED' && followed === true && reserve !== true;

export function createOutcomes(clock: Clock): Outcomes {
  /** By replica. */
  const lines = new WeakMap<object, Line>();
  /** Outcomes that are being told or wait to be. */
  let untold = 0;
  /** For each waiting outcome, a function that sends it at once. */
  const waiting = new Set<() => void>(); // kept: of what could not be told at once.
  let isSettling = false;
  let isOver = false;
  let onAllTold: (() => void) | undefined;
  const ended = (): void => {
    untold -= 1;
    if (untold === 0) onAllTold?.();
  };

  const heard = (): true => {
    ended();
    return true;
  };
  const tellOne = (client: RpcClient, request: OutcomeRequest, peer: object | undefined, sinceMs: number): Promise<boolean> =>
    client.unary<OutcomeRequest, object>('Outcome', request, { deadlineMs: DEADLINE_MS, requestId: request.requestId ?? '', peer }).then(heard, () => tellAgain(client, request, peer, sinceMs));
  const tellAgain = (client: RpcClient, request: OutcomeRequest, peer: object | undefined, sinceMs: number): Promise<boolean> | false => {
    const passedMs = clock.monotonicMs() - sinceMs;
    const isSent = peer !== undefined;
    if (isOver) return false;
    if (passedMs >= (isSent ? RETRIES_MS : UNSENT_RETRIES_MS) || waiting.size >= (isSent ? WAITING_MAX : WAITING_MAX / 2) || (isSettling && !isSent)) {
      ended();
      return false;
    }
    return new Promise((resolve) => {
      let timer: Timer | undefined = undefined;
      const now = (): void => {
        timer?.cancel();
        waiting.delete(now);
        void tellOne(client, request, peer, sinceMs).then(resolve);
      };
      waiting.add(now);
      timer = clock.setTimer(isSettling ? RETRY_MS : Math.min(RETRY_MS_MAX, Math.max(RETRY_MS, passedMs / 4)), now, { unref: true });
    });
  };

  /** All in one message; if that fails, each is retried by itself. */
  const tellTogether = async (client: RpcClient, outcomes: readonly Addressed[], line: Line, sinceMs: number): Promise<boolean> => {
    const [first] = outcomes;
    if (outcomes.length === 1 && first !== undefined) return tellOne(client, first.request, first.peer, sinceMs);
    try {
      await client.unary<OutcomesRequest, object>('Outcomes', { outcomes: outcomes.map(({ request }) => request) }, { deadlineMs: DEADLINE_MS, requestId: first?.request.requestId ?? '', peer: first?.peer });
    } catch (error) {
      line.isOld = toFault(error).code === 'unknown_method';
      const retry = line.isOld ? tellOne : tellAgain;
      // Each over its own link again: only one of them may be dead.
      return (await Promise.all(outcomes.map(({ request, peer }) => retry(client, request, peer, sinceMs)))).every(Boolean);
    }
    outcomes.forEach(ended);
    return true;
  };

  const gather = (client: RpcClient, line: Line, sinceMs: number): Gathered => {
    const outcomes: Addressed[] = [];
    let resolve: (isTold: boolean) => void = () => undefined;
    const told = new Promise<boolean>((resolved) => (resolve = resolved));
    const send = (): void => {
      if (line.gathered !== gathered) return;
      timer.cancel();
      waiting.delete(send);
      line.gathered = undefined;
      line.lastMs = clock.monotonicMs();
      void tellTogether(client, outcomes, line, sinceMs).then(resolve);
    };
    const timer = clock.setTimer(GATHER_MS_MAX, send, { unref: true });
    const gathered: Gathered = { outcomes, sinceMs, told, send, sendSoon: () => queueMicrotask(send) };
    waiting.add(send);
    return gathered;
  };
  const lineTo = (replica: object): Line => {
    let line = lines.get(replica);
    if (line === undefined) lines.set(replica, (line = { lastMs: -Infinity, gathered: undefined, isOld: false }));
    return line;
  };

  return {
    tell: (client, request, peer, goesOn = false) => {
      untold += 1;
      const nowMs = clock.monotonicMs();
      const isOfRound = isRound(request);
      if (peer === undefined || goesOn || !(isOfRound || isOrdinary(request))) return tellOne(client, request, peer, nowMs);
      const line = lineTo(replicaOf(peer));
      if (line.isOld || (!isOfRound && line.gathered === undefined && (isSettling || nowMs - line.lastMs >= GATHER_MS))) {
        line.lastMs = nowMs;
        return tellOne(client, request, peer, nowMs);
      }
      const gathered = (line.gathered ??= gather(client, line, nowMs));
      const count = gathered.outcomes.push({ request, peer });
      if (isOfRound) gathered.sendSoon();
      else if (count >= TOGETHER_MAX || nowMs - gathered.sinceMs >= GATHER_MS) gathered.send();
      return gathered.told;
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
