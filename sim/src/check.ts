/** The invariants of BILLING, section 10, against what the providers' own bills say. */
import type { AttemptEnded__Output, OutcomeTold__Output } from '@signalbox/contracts/events';
import { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome, type LedgerEntry } from '@signalbox/billing/proof';
import { reservationCost } from '@signalbox/kernel/money';
import { brokenLink } from '@signalbox/ledger-core/hash-chain';
import { endedCodec, FRAME, outcomeCodec, readFrames } from '@signalbox/worker-kit/proof';
import { SimLedger } from './ledger.js';
import type { SimClient } from './client.js';
import { TRANCHE_TOKENS, type BillLine } from './provider.js';
import type { World } from './world.js';

/** A stream whose hold does not grow stops so many tokens before its end (BILLING, section 4): room for one chunk. */
const STOP_LEFT_TOKENS = 64;

const sum = (amounts: Iterable<bigint>): bigint => {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
};

const isCharge = ({ kind }: LedgerEntry): boolean => kind !== 'attempt';

interface Books {
  readonly world: World;
  readonly rows: readonly LedgerEntry[];
  /** By request: all its rows, in order. */
  readonly byRequest: ReadonlyMap<string, readonly LedgerEntry[]>;
  readonly bill: ReadonlyMap<string, BillLine>;
}

function booksOf(world: World): Books {
  const rows = world.callers.flatMap(({ account }) => world.ledger.rowsOf(account.id));
  const byRequest = new Map<string, LedgerEntry[]>();
  for (const row of rows) {
    const known = byRequest.get(row.requestId);
    if (known === undefined) byRequest.set(row.requestId, [row]);
    else known.push(row);
  }
  return { world, rows, byRequest, bill: new Map(world.workers.flatMap(({ provider }) => [...provider.bill])) };
}

const rowsOf = ({ byRequest }: Books, requestId: string): readonly LedgerEntry[] => byRequest.get(requestId) ?? [];
const netOf = (rows: readonly LedgerEntry[]): bigint => sum(rows.filter(isCharge).map(({ amountNanoUsd }) => amountNanoUsd));

/** I4, after each commit: what is charged, as far as it was held, is within every cap; beyond it only what a loss made forgotten. */
export function checkCaps(world: World): void {
  for (const { account, key } of world.callers) {
    const caps = capsOf({ account, key });
    if (caps.length === 0) continue;
    let spent = 0n;
    for (const { accountId, requestId } of world.clients) {
      if (accountId !== account.id) continue;
      const booked = world.ledger.requestOf(requestId)?.booked?.chargeNanoUsd ?? 0n;
      const held = world.held.get(requestId) ?? 0n;
      spent += booked < held ? booked : held;
    }
    const bound = world.forgotten.get(account.id) ?? 0n;
    for (const cap of caps) if (spent > cap + bound) world.violate(`I4: ${account.id} spent ${spent} of ${cap}, bound ${bound}`);
  }
}

const capsOf = ({ account, key }: Pick<World['callers'][number], 'account' | 'key'>): readonly bigint[] => [...account.costCaps, ...(key.limits?.costCaps ?? [])].map(({ capNanoUsd }) => BigInt(capNanoUsd));

/**
 * I4, each time a hold begins or grows: what is booked, what counts as charged and what is held by requests that reached a
 * provider are within every cap. A charge counts up to its hold; `withinHold` looks at the rest.
 */
export function checkHeld(world: World, accountId: string): void {
  const caller = world.callers.find(({ account }) => account.id === accountId);
  const caps = caller === undefined ? [] : capsOf(caller);
  if (caps.length === 0) return;
  let taken = 0n;
  for (const client of world.clients) {
    const { requestId } = client;
    if (client.accountId !== accountId || !world.workers.some(({ provider }) => provider.reached.has(requestId))) continue;
    const held = world.held.get(requestId) ?? 0n;
    const charge = world.ledger.requestOf(requestId)?.booked?.chargeNanoUsd ?? world.finished.get(requestId) ?? (world.orphaned.has(requestId) ? 0n : held);
    taken += charge < held ? charge : held;
  }
  const bound = world.forgotten.get(accountId) ?? 0n;
  for (const cap of caps) if (taken > cap + bound) world.violate(`I4: ${accountId} has ${taken} of ${cap} booked and held, bound ${bound}`);
}

/** An answer that was ended before its time was ended for what it says: a cap that has no room, or a quota that was silent for long. */
export function checkEnd(world: World, { requestId, stoppedBy, cutBy }: SimClient): void {
  const { coverage, growth } = world;
  if (stoppedBy === 'cost_cap') {
    coverage.took('stopped by a cap');
    const isWhole = world.workers.some(({ provider }) => [...provider.bill.values()].some(({ id, generated, asked }) => id.startsWith(`${requestId}/`) && generated === asked));
    if (!isWhole && !growth.wasRefused(requestId)) world.violate(`I4: ${requestId} was stopped by a cap that never refused it`);
  }
  if (cutBy === 'QUOTA_AWAY') {
    coverage.took('ended: quota away');
    if (!growth.wasWaitedFor(requestId)) world.violate(`${requestId} was cut for a quota that was not away for long`);
  }
}

/** True when nothing is under way any more, and every book says the same. */
export function isAtRest(world: World): boolean {
  return restlessness(world) === undefined;
}

/** What still moves or differs; undefined at rest (I5, I6). */
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
    const left = [...(state?.buckets ?? [])].find(([, { heldCharge, heldTokens, finishedCharge, finishedTokens }]) => heldCharge !== 0n || heldTokens !== 0n || finishedCharge !== 0n || finishedTokens !== 0n);
    if (left !== undefined) return `I5: ${account.id} still counts ${left[1].heldCharge} held and ${left[1].finishedCharge} finished in ${left[0]}`;
    if (settled !== total) return `I5: ${account.id} has ${settled} settled, the ledger ${total}`;
  }
  for (const { requestId } of world.clients) {
    const state = world.ledger.requestOf(requestId);
    if (state !== undefined && state.facts.attempts.length > 0 && state.booked === undefined) return `I2: ${requestId} has attempts and no charge row`;
  }
  return undefined;
}

/** All invariants of the books, once they are at rest. */
export function checkBooks(world: World): void {
  const books = booksOf(world);
  attemptsAreBilled(books);
  for (const client of world.clients) clientIsChargedRight(books, client);
  sumsAgree(books);
  replayAgrees(world);
  refusalsWereRight(books);
  for (const event of world.ledger.dead()) world.violate(`a dead event: ${event.reason}`);
  for (const { provider } of world.workers) for (const id of provider.doubles) world.violate(`I1: ${id} was sent twice`);
}

function attemptsAreBilled({ world, rows, byRequest, bill }: Books): void {
  for (const line of bill.values()) {
    const [requestId = '', attempt = ''] = line.id.split('/');
    const found = (byRequest.get(requestId) ?? []).filter((row) => row.kind === 'attempt' && row.attempt === Number(attempt));
    const [row] = found;
    if (found.length !== 1 || row === undefined) world.violate(`I1: ${line.id} is billed ${line.cost} by its provider and has ${found.length} rows`);
    else if (row.source === 'provider' && row.amountNanoUsd !== line.cost) world.violate(`I1: ${line.id} is billed ${line.cost} and booked ${row.amountNanoUsd}`);
    else if (row.source === 'orphan' && line.sentBytes === 0 && row.amountNanoUsd !== 0n) world.violate(`I8: ${line.id} delivered nothing and is booked ${row.amountNanoUsd}`);
  }
  for (const row of rows) {
    if (row.kind !== 'attempt') continue;
    if (!bill.has(`${row.requestId}/${row.attempt}`) && row.amountNanoUsd !== 0n) world.violate(`I1: ${row.requestId}/${row.attempt} is booked ${row.amountNanoUsd} and no provider bills it`);
  }
}

function clientIsChargedRight(books: Books, client: SimClient): void {
  const { world, bill } = books;
  const { requestId, state, costTold, refusal, admission } = client;
  const rows = rowsOf(books, requestId);
  const charges = rows.filter(({ kind }) => kind === 'charge');
  const net = netOf(rows);
  if (charges.length > 1) world.violate(`I2: ${requestId} has ${charges.length} charge rows`);
  if (state === 'answered' && charges.length !== 1) world.violate(`I2: ${requestId} was answered and has ${charges.length} charge rows`);
  if (rows.length > 0 && charges.length === 0) world.violate(`I2: ${requestId} has attempts and no charge row`);
  if (costTold !== undefined && BigInt(costTold) !== net) world.violate(`I7: ${requestId} was told ${costTold} and is charged ${net}`);
  if (state === 'refused' && refusal?.kind === 'attempts' && net !== 0n) world.violate(`I8: ${requestId} got no answer and is charged ${net}`);
  if (admission !== undefined && admission !== 'ADMITTED' && [...bill.keys()].some((id) => id.startsWith(`${requestId}/`))) world.violate(`I10: ${requestId} was refused and reached a provider`);
  let running = 0n;
  let isCharged = false;
  for (const row of rows) {
    if (row.kind === 'attempt') continue;
    if (row.kind === 'adjustment' && !isCharged) world.violate(`I12: ${requestId} is adjusted without a charge`);
    isCharged = true;
    running += row.amountNanoUsd;
    if (running < 0n) world.violate(`I12: ${requestId} is charged ${running}`);
  }
  const charged = world.ledger.chargedAttempts(requestId);
  if (charged.length > 1) world.violate(`I8: ${requestId} is charged for attempts ${charged.join(', ')}`);
  const cost = sum(rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt)).map(({ amountNanoUsd }) => amountNanoUsd));
  if (cost !== net) world.violate(`I3: ${requestId} is charged ${net} and its attempts cost ${cost}`);
  withinHold(books, client, charged, net);
}

/** A provider that keeps to `max_tokens` and counts honestly never costs more than was held, and the tokens of one chunk beyond 64 where a hold grew. */
function withinHold({ world, bill }: Books, { requestId, accountId }: SimClient, charged: readonly number[], net: bigint): void {
  const isCapped = world.callers.some(({ account }) => account.id === accountId && account.costCaps.length > 0);
  const lines = charged.map((attempt) => bill.get(`${requestId}/${attempt}`));
  const held = (world.held.get(requestId) ?? 0n) + sum(lines.map((line) => overrunOf(world, line)));
  if (isCapped && net > held && lines.every((line) => line !== undefined && line.usage !== 'absurd')) world.violate(`I4: ${requestId} held ${held} and is charged ${net}`);
}

/** What the bound to publish lets one answer cost beyond its hold. */
function overrunOf(world: World, line: BillLine | undefined): bigint {
  if (line === undefined || line.generated <= TRANCHE_TOKENS - STOP_LEFT_TOKENS) return 0n;
  const card = world.workers.find(({ provider }) => provider.name === line.provider)?.provider.cardFor(line.promptTokens);
  const tokens = Math.max(0, line.chunkTokens - STOP_LEFT_TOKENS);
  return card === undefined ? 0n : reservationCost(BigInt(tokens) * card.outputText);
}

function sumsAgree({ world, byRequest }: Books): void {
  for (const { account, key } of world.callers) {
    const rows = world.ledger.rowsOf(account.id);
    let previous: string | undefined;
    const linked = rows.map((row) => ({ ...row, prevHash: (previous ??= '0'.repeat(64)), ...((previous = row.hash), {}) }));
    const broken = brokenLink(linked);
    if (broken !== undefined) world.violate(`I9: the chain of ${account.id} breaks at row ${broken}`);
    const total = netOf(rows);
    const byRequests = sum([...byRequest.values()].filter(([first]) => first?.accountId === account.id).map(netOf));
    if (total !== byRequests) world.violate(`I3: ${account.id} is charged ${total}, its requests ${byRequests}`);
    const periods = [...world.ledger.allTotals().values()].filter((one) => one.accountId === account.id);
    for (const scope of ['account', key.id]) {
      for (const prefix of ['day:', 'month:', 'total']) {
        const figures = sum(periods.filter((one) => one.scope === scope && one.periodId.startsWith(prefix)).map(({ chargeNanoUsd }) => chargeNanoUsd));
        if (figures !== total) world.violate(`I9: ${scope} of ${account.id} by ${prefix} is ${figures}, its rows say ${total}`);
      }
    }
  }
}

/** I11: all logs, booked into an empty ledger, say the same. */
function replayAgrees(world: World): void {
  const again = new SimLedger(world.scheduler, world.random, true);
  for (const { disk } of world.workers) {
    const attempts: CheckedAttempt[] = [];
    const outcomes: CheckedOutcome[] = [];
    for (const { bytes } of disk.segments.values()) {
      readFrames(bytes, ({ kind, payload }) => {
        if (kind === FRAME.end) keep(world, attempts, checkAttempt(endedCodec.decode(payload) satisfies AttemptEnded__Output));
        if (kind === FRAME.outcome) keep(world, outcomes, checkOutcome(outcomeCodec.decode(payload) satisfies OutcomeTold__Output));
      });
    }
    again.commitNow([{ writer: 'replay', range: { first: 1n, last: 1n }, attempts, outcomes }], [], 0);
  }
  for (const { account } of world.callers) {
    const before = world.ledger.totalOf(account.id);
    const after = again.totalOf(account.id);
    if (before?.chargeNanoUsd !== after?.chargeNanoUsd || before?.tokens !== after?.tokens) world.violate(`I11: ${account.id} has ${before?.chargeNanoUsd ?? 0n}, its logs say ${after?.chargeNanoUsd ?? 0n}`);
  }
}

function keep<Fact>(world: World, facts: Fact[], checked: Fact | string): void {
  if (typeof checked === 'string') world.violate(`a log holds what the ledger refuses: ${checked}`);
  else facts.push(checked);
}

/** Nobody is refused for money that was never spent: what a refusal names is at most what the requests before it cost. */
function refusalsWereRight(books: Books): void {
  const { world } = books;
  for (const { accountId, spend, before } of world.refusals) {
    let most = 0n;
    for (const client of world.clients.slice(0, before)) {
      if (client.accountId !== accountId) continue;
      const costs = rowsOf(books, client.requestId).filter(({ kind }) => kind === 'attempt').map(({ amountNanoUsd }) => amountNanoUsd);
      most += costs.reduce((a, b) => (a > b ? a : b), 0n);
    }
    if (spend > most) world.violate(`${accountId} was refused for ${spend} spent, all its requests cost ${most} at most`);
  }
}

/** What the run went through, as its books tell it. */
export function observe(world: World): void {
  const { coverage } = world;
  const { rows, bill } = booksOf(world);
  for (const row of rows) {
    if (row.kind === 'attempt') coverage.took(row.source === 'provider' ? 'ended: provider' : row.source === 'orphan' ? 'ended: orphan' : 'ended: estimated');
    else if (row.kind === 'adjustment') coverage.took('adjusted');
    else {
      coverage.took(row.amountNanoUsd === 0n ? 'settled at 0' : 'settled');
      if (row.attempt > 1 && row.amountNanoUsd > 0n) coverage.took('failed over');
    }
  }
  coverage.took('reserved → dispatched', bill.size);
  for (const { requestId, state, chunks, refusal } of world.clients) {
    if (chunks > 0) coverage.took('dispatched → streaming');
    if (state === 'answered' || state === 'cut' || state === 'refused' || state === 'left' || state === 'reset') coverage.took(`client: ${state}`);
    if (refusal?.kind === 'fault') coverage.took('new → 503');
    for (const { outcome, toldByEdge } of world.ledger.requestOf(requestId)?.facts.outcomes ?? []) {
      coverage.took(toldByEdge ? (outcome === 'DELIVERED' ? 'outcome: delivered' : outcome === 'SUPERSEDED' ? 'outcome: superseded' : 'outcome: discarded') : 'outcome: concluded by the worker');
    }
  }
}
