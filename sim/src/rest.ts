/** Decides when a run is over: nothing is running any more, and all books agree. */
import type { World } from './world.js';

/** True if nothing is running any more, and all books agree. */
export function isAtRest(world: World): boolean {
  return restlessness(world) === undefined;
}

/** What still runs or differs; undefined at rest (I5, I6). */
export function restlessness(world: World): string | undefined {
  const waiting = world.clients.find(({ isOver }) => !isOver);
  if (waiting !== undefined) return `${waiting.requestId} is ${waiting.state}`;
  if (world.workers.some(({ dispatcher }) => dispatcher?.inFlight() !== 0)) return 'an attempt is under way';
  const journals = world.journals();
  if (journals.length < world.workers.length) return 'a worker is not back';
  for (const journal of journals) {
    const { writer, lastSeq, ledgerSeq } = journal.state();
    if (ledgerSeq !== lastSeq) return `I6: ${writer} is at ${lastSeq}, its watermark at ${ledgerSeq}`;
    const booked = world.ledger.writers().get(writer)?.progress;
    if (booked?.watermark !== BigInt(lastSeq) || booked.beyond.length > 0) return `I6: ${writer} is at ${lastSeq}, the ledger at ${booked?.watermark ?? 0n}`;
  }
  for (const { account } of world.callers) {
    const state = world.counters.accounts.get(account.id);
    const total = world.ledger.totalOf(account.id)?.chargeNanoUsd ?? 0n;
    const settled = world.counters.countedBy(account.id) ?? state?.buckets.get('account|total')?.charge ?? 0n;
    if (state !== undefined && (state.holds.size > 0 || state.finished.size > 0)) return `I5: ${account.id} has holds of ${[...state.holds.keys()].join(' ')} and finished ${[...state.finished.keys()].join(' ')}`;
    const left = [...(state?.buckets ?? [])].find(([, { heldCharge, heldTokens, heldByok, finishedCharge, finishedTokens, finishedByok }]) => heldCharge !== 0n || heldTokens !== 0n || heldByok !== 0n || finishedCharge !== 0n || finishedTokens !== 0n || finishedByok !== 0n);
    if (left !== undefined) return `I5: ${account.id} still counts ${left[1].heldCharge} held and ${left[1].finishedCharge} finished in ${left[0]}`;
    const bucket = state?.buckets.get('account|total');
    const { tokens } = world.ledger.spentBy(account.id);
    if (bucket !== undefined && bucket.tokens + bucket.byok !== tokens) return `I5: ${account.id} has ${bucket.tokens + bucket.byok} tokens settled, the ledger ${tokens}`;
    if (settled !== total) return `I5: ${account.id} has ${settled} settled, the ledger ${total}`;
  }
  for (const { requestId } of world.clients) {
    const state = world.ledger.requestOf(requestId);
    if (state !== undefined && state.facts.attempts.length > 0 && state.booked === undefined) return `I2: ${requestId} has attempts and no charge row`;
    const open = state?.facts.attempts.find(({ attempt }) => !state.facts.outcomes.some((told) => told.attempt === attempt));
    if (open !== undefined) return `I2: ${requestId}/${open.attempt} has no last word`;
  }
  return undefined;
}
