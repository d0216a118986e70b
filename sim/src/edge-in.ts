/** Builds an edge of the simulation: the production clients of its neighbours, over the simulated network. */
import { createAdvances, createClaimsClient, createFloodGuard, createLedgerClient, createQuotaClient, createRepeats, createRetryBudget, createWaitingRoom, createWorkerClients, type Neighbours } from '@signalbox/edge/proof';
import { Fault } from '@signalbox/kernel/fault';
import type { EdgeParts } from './edge.js';
import type { Life } from './life.js';
import { bottomless, brokenBy } from './mutant-edge.js';
import type { Mutant } from './mutants.js';
import type { Door, Network } from './network.js';
import type { WorldRecord } from './world-record.js';

/** As in edge's composition. */
const NEIGHBOUR_DEADLINE_MS = 2_000;
const ADMIT_DEADLINE_MS = 150;
const ATTEMPT_DEADLINE_MS = 600_000;

export interface EdgeSurroundings {
  readonly life: Life;
  readonly network: Network;
  /** Addresses of its neighbours; workers by provider. */
  readonly doors: { readonly quota: readonly Door[]; readonly accounts: readonly Door[]; readonly billing: readonly Door[]; readonly workers: ReadonlyMap<string, readonly Door[]> };
  readonly mutant: Mutant | undefined;
  readonly record: Pick<WorldRecord, 'toldAtMs' | 'elsewhere'>;
  nowMs(): number;
  /** Called for each request that was served from an advance. */
  readonly onServed: NonNullable<Parameters<typeof createAdvances>[1]['onServed']>;
}

/** Counter for all edges of this process, so that advance ids differ in every life. */
let advances = 0;

/** Records when outcomes are reported, and which attempts go to another replica. */
function listening(workers: Neighbours['workers'], { record, nowMs }: EdgeSurroundings): Neighbours['workers'] {
  return {
    ...workers,
    dispatch: (provider, request, listener, besides) => {
      const call = workers.dispatch(provider, request, listener, besides);
      const peer = call?.peer?.();
      if (besides !== undefined && peer !== undefined && peer !== besides) record.elsewhere.add(`${request.requestId ?? ''}/${request.attempt ?? 0}`);
      return call;
    },
    tellOutcome: (provider, requestId, attempt, ...told) => {
      const id = `${requestId}/${attempt}`;
      if (!record.toldAtMs.has(id)) record.toldAtMs.set(id, nowMs());
      return workers.tellOutcome(provider, requestId, attempt, ...told);
    },
  };
}

/** The parts of an edge in `life`. Each request brings its plan along. */
export function edgeIn(surroundings: EdgeSurroundings): EdgeParts {
  const { life, network, doors, mutant, onServed } = surroundings;
  const asked = createQuotaClient(network.client({ from: life, area: 'quota', doors: doors.quota, deadlineMs: ADMIT_DEADLINE_MS }), life.clock, ADMIT_DEADLINE_MS);
  // Advances from two requests on, of up to a third of what a cap leaves: many more than in production.
  const quota = createAdvances(mutant === 'advance-bottomless' ? bottomless(asked) : asked, { clock: life.clock, makeId: () => `adv_${life.name}_${(advances += 1)}`, onServed, requestsMin: 2, roomParts: 3n });
  const toWorkers = [...doors.workers].map(([provider, at]) => [provider, network.client({ from: life, area: 'worker', doors: at, deadlineMs: ATTEMPT_DEADLINE_MS })] as const);
  const workers = createWorkerClients(new Map(toWorkers), life.clock, ATTEMPT_DEADLINE_MS);
  const routing: Neighbours['routing'] = { decide: () => Promise.reject(new Fault('routing_unavailable', 'asked without a plan')), doubt: () => undefined };
  const claims = createClaimsClient(network.client({ from: life, area: 'accounts', doors: doors.accounts, deadlineMs: NEIGHBOUR_DEADLINE_MS }));
  const ledger = createLedgerClient(network.client({ from: life, area: 'billing', doors: doors.billing, deadlineMs: NEIGHBOUR_DEADLINE_MS }));
  const repeats = createRepeats({ claims, ledger, clock: life.clock, onTakenOver: () => undefined });
  const neighbours: Neighbours = { routing, quota, workers, waitingRoom: createWaitingRoom(life.clock), clock: life.clock, heartbeatMs: 15_000, checkSchema: () => Promise.resolve(undefined), retries: createRetryBudget(life.clock), withMessages: (request) => request, wastedRuns: createFloodGuard(life.clock, 10, 60_000), unhealedAnswers: createFloodGuard(life.clock, 10, 60_000) };
  return { life, repeats, workers, neighbours: brokenBy(mutant, { ...neighbours, workers: listening(workers, surroundings) }) };
}
