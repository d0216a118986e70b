/** Watches calls of workers during a run: when clients leave, and how holds grow. Mutants that change either are applied here. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Fault } from '@signalbox/kernel/fault';
import type { CallInfo } from '@signalbox/rpc/call';
import type { ExtendHold } from '@signalbox/worker-kit/proof';
import type { GrowthRecord } from './growth.js';
import { NOTHING } from './limits.js';
import { inAnyLife, refusedWhenAway } from './mutant-growth.js';
import { takenForCancelled, takenForLeft } from './mutant-leaving.js';
import type { Mutant } from './mutants.js';
import type { Scheduler } from './scheduler.js';
import type { Worker } from './worker-stop.js';
import type { WorldRecord } from './world-record.js';

/** The parts of the world that are used here. */
type Watched = WorldRecord & { readonly scheduler: Scheduler; readonly growth: GrowthRecord; readonly workers: readonly Worker[]; readonly mutant: Mutant | undefined };

/** Wraps a worker's call to record its prompt tokens and when its client left. Calls `onLeft` if the client hung up by itself during the attempt. */
export function watchCall(world: Watched, { requestId, attempt, promptTokens }: DispatchRequest__Output, call: CallInfo, onLeft: () => void): CallInfo {
  const id = `${requestId}/${attempt}`;
  world.ownPrompts.set(id, promptTokens);
  const hear = world.mutant === 'left-unpaid' ? takenForCancelled : world.mutant === 'cut-off-paid' ? takenForLeft : (reason: Fault): Fault => reason;
  const onAbort: CallInfo['onAbort'] = (listener) =>
    call.onAbort((reason) => {
      // A worker that thaws may time out its provider before it reads that the client left; then this is not the reason for abandoning the attempt.
      const isUnderWay = world.workers.every(({ provider }) => provider.bill.get(id)?.endedAtMs === undefined);
      if (reason.code === 'client_left' && isUnderWay) {
        world.left.set(id, world.scheduler.nowMs);
        onLeft();
      }
      listener(hear(reason));
    });
  return { ...call, onAbort };
}

/** Wraps the extension of holds by a worker. Checks that the worker never assumes more room than the limits left (I4). */
export function watchGrowth(world: Watched, extendHold: ExtendHold): ExtendHold {
  const watched = world.growth.watch(extendHold);
  const asking = world.mutant === 'grow-in-another-life' ? inAnyLife(watched) : world.mutant === 'away-is-refused' ? refusedWhenAway(watched) : watched;
  return async (accountId, requestId, toNanoUsd, toTokens, ...rest) => {
    const isGranted = await asking(accountId, requestId, toNanoUsd, toTokens, ...rest);
    const { charge, tokens } = world.held.get(requestId) ?? NOTHING;
    if (isGranted && (toNanoUsd > charge || toTokens > tokens)) world.violate(`I4: ${requestId} grew to ${toNanoUsd} and ${toTokens} tokens, its limits gave ${charge} and ${tokens}`);
    return isGranted;
  };
}
