/** Mutants of edge: change its messages to quota and workers. */
import type { Neighbours } from '@signalbox/edge/proof';
import type { DispatchRequest } from '@signalbox/contracts/worker';
import type { Mutant } from './mutants.js';

type Dispatch = Neighbours['workers']['dispatch'];

function dispatching(neighbours: Neighbours, change: (request: DispatchRequest) => DispatchRequest): Neighbours {
  const dispatch: Dispatch = (provider, request, ...rest) => neighbours.workers.dispatch(provider, change(request), ...rest);
  return { ...neighbours, workers: { ...neighbours.workers, dispatch } };
}

/** Each round supersedes the earlier ones. */
function supersedingRounds(neighbours: Neighbours): Neighbours {
  return dispatching(neighbours, (request) => (request.rounds === true ? { ...request, retryOf: Array.from({ length: (request.attempt ?? 1) - 1 }, (_, index) => index + 1) } : request));
}

/** Price cards without plugin fees. */
function withoutFees(neighbours: Neighbours): Neighbours {
  const feeOf = (id = ''): bigint => BigInt(/\+plugins\.(\d+)$/.exec(id)?.[1] ?? 0);
  const plain = <Card extends { readonly id?: string; readonly requestNanoUsd?: unknown }>(card: Card): Card => ({ ...card, requestNanoUsd: String(BigInt(String(card.requestNanoUsd ?? 0)) - feeOf(card.id)) });
  return dispatching(neighbours, (request) => ({
    ...request,
    ...(request.card ? { card: plain(request.card) } : {}),
    ...(request.steps === undefined ? {} : { steps: request.steps.map((step) => (step.card ? { ...step, card: plain(step.card) } : step)) }),
  }));
}

/** Assumes room for another round without asking. */
function withoutRoom(neighbours: Neighbours): Neighbours {
  return { ...neighbours, quota: { ...neighbours.quota, extend: () => Promise.resolve(true) } };
}

/** Reports an answer delivered from reserve as superseded by the attempt after it. */
function forgettingReserve(neighbours: Neighbours): Neighbours {
  const latest = new Map<string, number>();
  const { workers } = dispatching(neighbours, (request) => {
    if (request.rounds !== true) latest.set(request.requestId ?? '', request.attempt ?? 0);
    return request;
  });
  return {
    ...neighbours,
    workers: { ...workers, tellOutcome: (provider, requestId, attempt, outcome, terms) => workers.tellOutcome(provider, requestId, attempt, outcome === 'DELIVERED' && attempt < (latest.get(requestId) ?? 0) ? 'SUPERSEDED' : outcome, terms) },
  };
}

/** Treats an advance as larger than it is. */
export function bottomless(quota: Neighbours['quota']): Neighbours['quota'] {
  const admit: Neighbours['quota']['admit'] = async (request) => {
    const answer = await quota.admit(request);
    return request.requestId?.startsWith('adv_') === true ? { ...answer, heldNanoUsd: `${answer.heldNanoUsd}0`, heldTokens: `${answer.heldTokens}0` } : answer;
  };
  return { ...quota, admit };
}

/** Returns the neighbours unchanged unless the mutant is one of these. */
export function brokenBy(mutant: Mutant | undefined, neighbours: Neighbours): Neighbours {
  switch (mutant) {
    case 'rounds-superseded':
      return supersedingRounds(neighbours);
    case 'rounds-unheld':
      return withoutRoom(neighbours);
    case 'fees-forgotten':
      return withoutFees(neighbours);
    case 'reserve-forgotten':
      return forgettingReserve(neighbours);
    default:
      return neighbours;
  }
}
