/** Exploration: tries other good models now and then, so that estimates of them can be corrected (docs/auto.md). */
import type { Model } from './catalog.js';
import type { ModelGroup } from './model-group.js';
import { fractionOf } from './rank.js';
import type { RouteRequest } from './request.js';

/** Share of requests that may explore. */
export const EXPLORATION_SHARE = 0.02;
/** Share of an account's cost that exploration may add. */
export const EXPLORATION_COST_SHARE = 0.01;
const DRAWS_FOR_PROPENSITY = 128;

type Explorable = Pick<RouteRequest, 'zdr' | 'denyDataCollection' | 'explorationRoomNanoUsd'>;

/** Nano-USD that an account may still spend on exploration, given its total cost; never negative. */
export function explorationRoom(spentNanoUsd: number, spentExploringNanoUsd: number): number {
  return Math.max(0, spentNanoUsd * EXPLORATION_COST_SHARE - spentExploringNanoUsd);
}

/** True if this request may be used for learning; never if its data must not be kept. */
function mayExplore(request: Explorable): boolean {
  return request.explorationRoomNanoUsd !== undefined && !request.zdr && !request.denyDataCollection;
}

/** Standard normal value, determined by text and seed. */
function normal(text: string, seed: number): number {
  return Math.sqrt(-2 * Math.log(fractionOf(`${text}#radius`, seed))) * Math.cos(2 * Math.PI * fractionOf(`${text}#angle`, seed));
}

function logOddsOf({ quality }: ModelGroup): number {
  const bounded = Math.min(1 - 1e-6, Math.max(1e-6, quality));
  return Math.log(bounded / (1 - bounded));
}

/** The peer with the highest random draw of its ability (Thompson sampling). `peers` is not empty. */
function thompson(peers: readonly ModelGroup[], seed: number): ModelGroup | undefined {
  let best: ModelGroup | undefined;
  let bestDraw = -Infinity;
  for (const peer of peers) {
    const draw = logOddsOf(peer) + peer.deviation * normal(peer.model.id, seed);
    if (draw > bestDraw) {
      bestDraw = draw;
      best = peer;
    }
  }
  return best;
}

/** The normal values of each model in the draws of `propensities`. They depend on its id alone, so each is drawn once per catalog: every recorded decision needs them for all of its peers. */
const drawn = new WeakMap<Model, Float64Array>();

function normalsOf(model: Model): Float64Array {
  let values = drawn.get(model);
  if (values === undefined) {
    values = Float64Array.from({ length: DRAWS_FOR_PROPENSITY }, (_, draw) => normal(model.id, draw));
    drawn.set(model, values);
  }
  return values;
}

/** How many of the draws each of `peers` wins. */
function winsOf(peers: readonly ModelGroup[]): ReadonlyMap<ModelGroup, number> {
  const wins = new Map<ModelGroup, number>();
  const odds = peers.map((peer) => ({ peer, logOdds: logOddsOf(peer), normals: normalsOf(peer.model) }));
  for (let draw = 0; draw < DRAWS_FOR_PROPENSITY; draw += 1) {
    let winner: ModelGroup | undefined;
    let highest = -Infinity;
    for (const { peer, logOdds, normals } of odds) {
      const value = logOdds + peer.deviation * (normals[draw] ?? 0);
      if (value > highest) [winner, highest] = [peer, value];
    }
    if (winner !== undefined) wins.set(winner, (wins.get(winner) ?? 0) + 1);
  }
  return wins;
}

/** Peers whose extra cost over the first is at most `room`. */
function affordable(peers: readonly ModelGroup[], room: number): readonly ModelGroup[] {
  const first = peers[0];
  return first === undefined ? [] : peers.filter((peer) => peer.cost - first.cost <= room);
}

/** The model to try instead of the first of `peers`; undefined in most cases. */
export function drawExploration(peers: readonly ModelGroup[], request: Explorable, seed: number): ModelGroup | undefined {
  if (!mayExplore(request) || fractionOf('explore', seed) >= EXPLORATION_SHARE) return undefined;
  const chosen = thompson(affordable(peers, request.explorationRoomNanoUsd ?? 0), seed);
  return chosen === peers[0] ? undefined : chosen;
}

/** Probability with which each of `peers` is chosen, by which learning must weight the outcome. Sums to 1. */
export function propensities(peers: readonly ModelGroup[], request: Explorable): number[] {
  if (!mayExplore(request)) return peers.map((_, i) => (i === 0 ? 1 : 0));
  const wins = winsOf(affordable(peers, request.explorationRoomNanoUsd ?? 0));
  return peers.map((peer, i) => (i === 0 ? 1 - EXPLORATION_SHARE : 0) + (EXPLORATION_SHARE * (wins.get(peer) ?? 0)) / DRAWS_FOR_PROPENSITY);
}
