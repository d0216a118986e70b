/** I4, checked during the run: nothing is charged or held beyond a limit, and no answer is ended because of a limit that has room. */
import type { SimClient } from './client.js';
import { limitOf, METERS, NOTHING, type Meter } from './limits.js';
import type { World } from './world.js';

/** I4, after each commit: charges, as far as they were held, are within every limit. Only what a loss of state made the gateway forget may exceed it. */
export function checkCaps(world: World): void {
  const spent = new Map<string, Record<Meter, bigint>>();
  for (const { accountId, requestId } of world.clients) {
    const booked = world.ledger.bookedFor(requestId);
    if (booked === undefined || world.revived.has(requestId)) continue;
    const held = world.held.get(requestId) ?? NOTHING;
    let sums = spent.get(accountId);
    if (sums === undefined) spent.set(accountId, (sums = { charge: 0n, tokens: 0n }));
    for (const meter of METERS) sums[meter] += least(booked[meter], held[meter]);
  }
  for (const [accountId, sums] of spent) {
    for (const meter of METERS) {
      const limit = widestOf(world, accountId, meter);
      const bound = (world.forgotten.get(accountId) ?? NOTHING)[meter];
      if (limit !== undefined && sums[meter] > limit + bound) world.violate(`I4: ${accountId} spent ${sums[meter]} of ${limit} (${meter}), bound ${bound}`);
    }
  }
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** The widest limit that an account ever had, as its terms may change; undefined = at some time it had none. */
function widestOf(world: World, accountId: string, meter: Meter): bigint | undefined {
  let widest = 0n;
  for (const caller of world.terms.get(accountId) ?? []) {
    const limit = limitOf(caller, meter);
    if (limit === undefined) return undefined;
    if (limit > widest) widest = limit;
  }
  return widest;
}

/**
 * I4, each time a hold begins or grows: the sum of what is booked, counted as charged, and held by requests that reached a
 * provider is within every limit of its admission. A charge counts only up to its hold; `withinHold` checks the rest.
 */
export function checkHeld(world: World, heldId: string, grown: readonly Meter[]): void {
  const caller = world.clients.find(({ requestId }) => requestId === heldId)?.caller;
  if (caller === undefined) return;
  const { id } = caller.account;
  for (const meter of grown) {
    const limit = limitOf(caller, meter);
    if (limit === undefined) continue;
    let taken = 0n;
    for (const { requestId, accountId, traffic } of world.clients) {
      if (accountId !== id || world.revived.has(requestId) || !world.workers.some(({ provider }) => provider.reached.has(requestId))) continue;
      // Room that edge got for a round that has not begun is lost with the counters, and that round will not begin.
      const live = traffic.plugins === undefined ? undefined : world.counters.accounts.get(id)?.holds.get(requestId);
      const most = (world.held.get(requestId) ?? NOTHING)[meter];
      // A hold that its worker registers again after a loss is the most that the request may have cost by the worker's bound, which is more than it may be charged.
      const held = live === undefined ? most : least(meter === 'charge' ? live.amount : live.tokens, most);
      const known = world.ledger.bookedFor(requestId) ?? world.finished.get(requestId);
      taken += least(held, known?.[meter] ?? (world.orphaned.has(requestId) ? 0n : held));
    }
    const bound = (world.forgotten.get(id) ?? NOTHING)[meter];
    if (taken > limit + bound) world.violate(`I4: ${id} has ${taken} of ${limit} (${meter}) booked and held, bound ${bound}`);
  }
}

/** An answer that was cut short must have the cause that it reports: a cap without room, or a quota that was silent for long. */
export function checkEnd(world: World, { requestId, stoppedBy, cutBy, traffic }: SimClient): void {
  const { coverage, growth } = world;
  if (stoppedBy === 'cost_cap') {
    coverage.took('stopped by a cap');
    const isWhole = world.workers.some(({ provider }) => [...provider.bill.values()].some(({ id, generated, asked }) => id.startsWith(`${requestId}/`) && generated === asked));
    // Between rounds edge may know by itself, without a refusal, that there is no room.
    if (!isWhole && traffic.plugins === undefined && !growth.wasRefused(requestId)) world.violate(`I4: ${requestId} was stopped by a cap that never refused it`);
  }
  if (cutBy === 'QUOTA_AWAY') {
    coverage.took('ended: quota away');
    // With plugins, a round whose hold is lost does not begin, which also cuts the answer.
    if (traffic.plugins === undefined && !growth.wasWaitedFor(requestId)) world.violate(`${requestId} was cut for a quota that was not away for long`);
  }
}
