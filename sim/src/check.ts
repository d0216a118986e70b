/** The invariants of BILLING, section 10, against what the providers' own bills say. */
import type { AttemptEnded__Output, OutcomeTold__Output } from '@signalbox/contracts/events';
import { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome, type LedgerEntry } from '@signalbox/billing/proof';
import { reservationCost } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { fold, NO_FACTS } from '@signalbox/ledger-core/fold';
import { brokenLink } from '@signalbox/ledger-core/hash-chain';
import { endedCodec, FRAME, outcomeCodec, readFrames } from '@signalbox/worker-kit/proof';
import { SimLedger } from './ledger.js';
import { isOwn, limitOf, METERS, NOTHING, type Amounts, type Meter } from './limits.js';
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

/** I4, after each commit: what is charged, as far as it was held, is within every limit; beyond it only what a loss made forgotten. */
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

/** Of an account whose terms changed the widest limit that it ever had; undefined = at a time it had none. */
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
 * I4, each time a hold begins or grows: what is booked, what counts as charged and what is held by requests that reached a
 * provider are within every limit of its admission. A charge counts up to its hold; `withinHold` looks at the rest.
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
      // What edge was given for a round that has not begun is lost with the counters, and so is the round.
      const live = traffic.plugins === undefined ? undefined : world.counters.accounts.get(id)?.holds.get(requestId);
      const held = live === undefined ? (world.held.get(requestId) ?? NOTHING)[meter] : meter === 'charge' ? live.amount : live.tokens;
      const known = world.ledger.bookedFor(requestId) ?? world.finished.get(requestId);
      taken += least(held, known?.[meter] ?? (world.orphaned.has(requestId) ? 0n : held));
    }
    const bound = (world.forgotten.get(id) ?? NOTHING)[meter];
    if (taken > limit + bound) world.violate(`I4: ${id} has ${taken} of ${limit} (${meter}) booked and held, bound ${bound}`);
  }
}

/** An answer that was ended before its time was ended for what it says: a cap that has no room, or a quota that was silent for long. */
export function checkEnd(world: World, { requestId, stoppedBy, cutBy, traffic }: SimClient): void {
  const { coverage, growth } = world;
  if (stoppedBy === 'cost_cap') {
    coverage.took('stopped by a cap');
    const isWhole = world.workers.some(({ provider }) => [...provider.bill.values()].some(({ id, generated, asked }) => id.startsWith(`${requestId}/`) && generated === asked));
    // Between rounds edge may know by itself that there is no room.
    if (!isWhole && traffic.plugins === undefined && !growth.wasRefused(requestId)) world.violate(`I4: ${requestId} was stopped by a cap that never refused it`);
  }
  if (cutBy === 'QUOTA_AWAY') {
    coverage.took('ended: quota away');
    // A round whose hold is lost does not begin.
    if (traffic.plugins === undefined && !growth.wasWaitedFor(requestId)) world.violate(`${requestId} was cut for a quota that was not away for long`);
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

/** All invariants of the books, once they are at rest. */
export function checkBooks(world: World): void {
  const books = booksOf(world);
  attemptsAreBilled(books);
  for (const client of world.clients) clientIsChargedRight(books, client);
  sumsAgree(books);
  replayAgrees(world);
  refusalsWereRight(books);
  keysArePaidOnce(books);
  for (const event of world.ledger.dead()) world.violate(`a dead event: ${event.reason}`);
  for (const { provider } of world.workers) for (const id of provider.doubles) world.violate(`I1: ${id} was sent twice`);
}

/** A whole answer of a client that left is waited for so long (BILLING, section 5). */
const DRAIN_MS = 60_000;

/** The provider had the whole request and had told nothing yet when its worker gave it up because the client itself had hung up: it bills the prompt. */
function isPromptOwed(world: World, { id, isHeaded, endedAtMs }: BillLine): boolean {
  const leftAtMs = world.left.get(id);
  return !isHeaded && leftAtMs !== undefined && endedAtMs !== undefined && (endedAtMs === leftAtMs || endedAtMs >= leftAtMs + DRAIN_MS);
}

/** I8, I14: an answer that had not begun is booked at its prompt by our own count and not a token more where its client hung up, and else at nothing. */
function unbegunIsBookedRight(books: Books, line: BillLine, row: LedgerEntry): void {
  const { world, bill } = books;
  const provider = world.workers.find((one) => one.provider.name === line.provider)?.provider;
  if (provider === undefined) return;
  const own = world.ownPrompts.get(line.id) ?? 0;
  const prompt = provider.costOf({ ...NO_TOKENS, inputUncached: own }) + feeOf(row);
  const isOwed = isPromptOwed(world, line);
  const isNothing = row.amountNanoUsd === 0n && row.tokens + row.byokTokens === 0n;
  const isPrompt = row.amountNanoUsd === prompt && row.tokens + row.byokTokens === BigInt(own);
  if (!isNothing && !isPrompt) world.violate(`I8: ${line.id} gave nothing, has a prompt of ${own} and is booked ${row.amountNanoUsd} for ${row.tokens + row.byokTokens} tokens`);
  if (!line.isHeaded && isNothing === isOwed) world.violate(`I14: ${line.id} had not begun, its client ${isOwed ? 'hung up' : 'did not hang up'}, and it is booked ${row.amountNanoUsd}`);
  if (!isOwed) return;
  world.coverage.took('left before the head: prompt alone');
  const client = world.clients.find(({ requestId }) => requestId === row.requestId);
  if (client === undefined) return;
  const charged = isOwn(client.caller) ? (fold(world.ledger.requestOf(row.requestId)?.facts ?? NO_FACTS)?.chargedAttempts ?? []) : world.ledger.chargedAttempts(row.requestId);
  if (!charged.includes(row.attempt)) world.violate(`I14: ${line.id} is owed its prompt, and the attempts charged are ${charged.join(', ') || 'none'} of ${[...bill.keys()].filter((id) => id.startsWith(`${row.requestId}/`)).join(', ')}`);
}

function attemptsAreBilled(books: Books): void {
  const { world, rows, byRequest, bill } = books;
  for (const line of bill.values()) {
    const [requestId = '', attempt = ''] = line.id.split('/');
    const found = (byRequest.get(requestId) ?? []).filter((row) => row.kind === 'attempt' && row.attempt === Number(attempt));
    const [row] = found;
    if (found.length !== 1 || row === undefined) world.violate(`I1: ${line.id} is billed ${line.cost} by its provider and has ${found.length} rows`);
    else if (row.source === 'provider' && row.amountNanoUsd !== line.cost + feeOf(row)) world.violate(`I1: ${line.id} is billed ${line.cost} and booked ${row.amountNanoUsd}`);
    else if (row.source === 'orphan' && line.sentBytes === 0 && row.amountNanoUsd !== 0n) world.violate(`I8: ${line.id} delivered nothing and is booked ${row.amountNanoUsd}`);
    else if (row.source === 'estimated' && line.sentBytes === 0) unbegunIsBookedRight(books, line, row);
  }
  for (const row of rows) {
    if (row.kind !== 'attempt') continue;
    if (!bill.has(`${row.requestId}/${row.attempt}`) && row.amountNanoUsd !== 0n) world.violate(`I1: ${row.requestId}/${row.attempt} is booked ${row.amountNanoUsd} and no provider bills it`);
  }
}

/** Its edge was killed before a worker that was away could hear of it: two deaths, and what was told died with them. */
function isNeverTold({ ledger }: World, { requestId, isEdgeDead }: SimClient, attempt: number): boolean {
  return isEdgeDead && ledger.requestOf(requestId)?.facts.outcomes.some((told) => told.attempt === attempt && told.toldByEdge) !== true;
}

/** Fees of plugins that the card of an attempt holds. */
const feeOf = ({ cardId }: LedgerEntry): bigint => BigInt(/\+plugins\.(\d+)$/.exec(cardId)?.[1] ?? 0);

function clientIsChargedRight(books: Books, client: SimClient): void {
  const { world, bill } = books;
  const { requestId, state, costTold, admission } = client;
  const rows = rowsOf(books, requestId);
  const charges = rows.filter(({ kind }) => kind === 'charge');
  const isOurs = !isOwn(client.caller);
  const net = netOf(rows);
  if (charges.length > 1) world.violate(`I2: ${requestId} has ${charges.length} charge rows`);
  if (state === 'answered' && charges.length !== 1) world.violate(`I2: ${requestId} was answered and has ${charges.length} charge rows`);
  if (rows.length > 0 && charges.length === 0) world.violate(`I2: ${requestId} has attempts and no charge row`);
  // Whoever reads the log takes what was made for given.
  const isUntold = world.ledger.chargedAttempts(requestId).every((attempt) => isNeverTold(world, client, attempt));
  if (state === 'refused' && net !== 0n && !isUntold) world.violate(`I8: ${requestId} got no answer and is charged ${net}`);
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
  // No row says so where a late round over own credentials, of no tokens, changes nothing that is charged.
  const charged = isOurs ? world.ledger.chargedAttempts(requestId) : (fold(world.ledger.requestOf(requestId)?.facts ?? NO_FACTS)?.chargedAttempts ?? []);
  givenIsCharged(books, client, charged);
  feesAreCharged(books, client, rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt)));
  const cost = sum(rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt)).map(({ amountNanoUsd }) => amountNanoUsd));
  // What own credentials cost is told, and charged by the provider.
  const isReserve = cost === 0n && client.traffic.wantsJson && [...client.given].every((attempt) => isNeverTold(world, client, attempt));
  // Rounds that only called tools are free for a worker that knows of no answer after them.
  const isRound = client.traffic.plugins !== undefined && rows.some((row) => row.kind === 'attempt' && bill.get(`${requestId}/${row.attempt}`)?.isCall === true && isNeverTold(world, client, row.attempt));
  if (costTold !== undefined && BigInt(costTold) !== cost && !isReserve && !isRound) world.violate(`I7: ${requestId} was told ${costTold} and its attempts cost ${cost}`);
  if (net !== (isOurs ? cost : 0n)) world.violate(`I3: ${requestId} is charged ${net} and its attempts cost ${cost}`);
  const counted = rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt));
  const tokens = sum(counted.map((row) => row.tokens + row.byokTokens));
  const booked = rows.filter(isCharge);
  if (sum(booked.map((row) => (isOurs ? row.tokens : row.byokTokens))) !== tokens || booked.some((row) => (isOurs ? row.byokTokens : row.tokens) !== 0n)) world.violate(`I3: ${requestId} does not count the ${tokens} tokens of its attempts`);
  withinHold(books, client, charged, { charge: net, tokens });
}

/**
 * What a client got words of is charged, each attempt once. Of what it got no words of only rounds are, which called tools:
 * those of a client that heard the end, and one attempt else.
 */
function givenIsCharged(books: Books, client: SimClient, charged: readonly number[]): void {
  const { requestId, state, given, traffic } = client;
  const { world, bill } = books;
  // Of one whose worker died, what came after its last checkpoint is given away; what costs nothing needs no row that counts it.
  const isLost = (attempt: number): boolean => rowsOf(books, requestId).some((row) => row.kind === 'attempt' && row.attempt === attempt && row.amountNanoUsd === 0n && (row.source === 'orphan' || row.tokens + row.byokTokens === 0n));
  // An answer that was given from reserve: for its worker the attempt after it has taken its place.
  const isReserve = (attempt: number): boolean => traffic.wantsJson && charged.length === 0 && isNeverTold(world, client, attempt);
  for (const attempt of given) if (!charged.includes(attempt) && !isLost(attempt) && !isReserve(attempt)) world.violate(`I8: ${requestId} gave attempt ${attempt} away and is charged for ${charged.join(', ') || 'nothing'}`);
  const unseen = charged.filter((attempt) => !given.has(attempt) && bill.get(`${requestId}/${attempt}`)?.isCall !== true);
  // One that its cap stopped may have no words.
  const most = (state === 'answered' && client.stoppedBy === '') || state === 'cut' ? 0 : 1;
  if (unseen.length > most) world.violate(`I8: ${requestId} is charged for attempts ${charged.join(', ')} and got words of ${[...given].join(', ') || 'none'}`);
  if (traffic.plugins === undefined && charged.length > 1) world.violate(`I8: ${requestId} is charged for attempts ${charged.join(', ')}`);
}

/** Plugins' fees: never more than they told, and all of it with an answer that no limit stopped. */
function feesAreCharged({ world }: Books, client: SimClient, charged: readonly LedgerEntry[]): void {
  const { requestId, state, stoppedBy, isEdgeDead } = client;
  const told = sum(world.plugins.fees.get(requestId) ?? []);
  const paid = sum(charged.map(feeOf));
  if (paid > told || (state === 'answered' && stoppedBy === '' && !isEdgeDead && paid < told)) world.violate(`I13: ${requestId} has fees of ${told} and is charged ${paid}`);
}

/** A provider that keeps to `max_tokens` and counts honestly never costs more than was held, and the tokens of one chunk beyond 64 where a hold grew. */
function withinHold({ world, bill }: Books, { requestId, caller }: SimClient, charged: readonly number[], used: Amounts): void {
  const lines = charged.map((attempt) => bill.get(`${requestId}/${attempt}`));
  if (lines.some((line) => line === undefined || line.usage === 'absurd')) return;
  for (const meter of METERS) {
    const held = (world.held.get(requestId) ?? NOTHING)[meter] + sum(lines.map((line) => overrunOf(world, line)[meter]));
    if (limitOf(caller, meter) !== undefined && used[meter] > held) world.violate(`I4: ${requestId} held ${held} (${meter}) and is charged ${used[meter]}`);
  }
}

/** What the bound to publish lets one answer cost beyond its hold. */
function overrunOf(world: World, line: BillLine | undefined): Amounts {
  if (line === undefined || line.generated <= TRANCHE_TOKENS - STOP_LEFT_TOKENS) return NOTHING;
  const card = world.workers.find(({ provider }) => provider.name === line.provider)?.provider.cardFor(line.promptTokens);
  const tokens = Math.max(0, line.chunkTokens - STOP_LEFT_TOKENS);
  return { tokens: BigInt(tokens), charge: card === undefined ? 0n : reservationCost(BigInt(tokens) * card.outputText) };
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
    if (before?.chargeNanoUsd !== after?.chargeNanoUsd || before?.tokens !== after?.tokens || before?.byokTokens !== after?.byokTokens) world.violate(`I11: ${account.id} has ${before?.chargeNanoUsd ?? 0n}, its logs say ${after?.chargeNanoUsd ?? 0n}`);
  }
}

function keep<Fact>(world: World, facts: Fact[], checked: Fact | string): void {
  if (typeof checked === 'string') world.violate(`a log holds what the ledger refuses: ${checked}`);
  else facts.push(checked);
}

/** Nobody is refused for money that was never spent: what a refusal names is at most what the requests before it cost. */
function refusalsWereRight(books: Books): void {
  const { world } = books;
  for (const { accountId, spend, meter, before } of world.refusals) {
    let most = 0n;
    for (const client of world.clients.slice(0, before)) {
      if (client.accountId !== accountId) continue;
      const costs = rowsOf(books, client.requestId).filter(({ kind }) => kind === 'attempt').map((row) => (meter === 'charge' ? row.amountNanoUsd : row.tokens + row.byokTokens));
      // Rounds add up.
      most += client.traffic.plugins === undefined ? costs.reduce((a, b) => (a > b ? a : b), 0n) : sum(costs);
    }
    if (spend > most) world.violate(`${accountId} was refused for ${spend} spent, all its requests cost ${most} at most`);
  }
}

/** However often a request is sent under one Idempotency-Key: it is paid once, to us or to a provider. */
function keysArePaidOnce(books: Books): void {
  const paid = new Map<string, string[]>();
  for (const { requestId, traffic: { key } } of books.world.clients) {
    if (key === undefined) continue;
    const charged = books.world.ledger.chargedAttempts(requestId);
    if (rowsOf(books, requestId).some((row) => row.kind === 'attempt' && charged.includes(row.attempt) && row.amountNanoUsd > 0n)) paid.set(key, [...(paid.get(key) ?? []), requestId]);
  }
  for (const [key, requests] of paid) if (requests.length > 1) books.world.violate(`I15: ${requests.join(', ')} are all paid under ${key}`);
}

/** What the run went through, as its books tell it. */
export function observe(world: World): void {
  const { coverage } = world;
  const { rows, bill, byRequest } = booksOf(world);
  for (const row of rows) {
    if (row.kind === 'attempt') coverage.took(row.source === 'provider' ? 'ended: provider' : row.source === 'orphan' ? 'ended: orphan' : 'ended: estimated');
    else if (row.kind === 'adjustment') coverage.took('adjusted');
    else {
      coverage.took(row.amountNanoUsd === 0n ? 'settled at 0' : 'settled');
      if (row.attempt > 1 && row.amountNanoUsd > 0n) coverage.took('failed over');
    }
  }
  coverage.took('reserved → dispatched', bill.size);
  const opened = new Set<string>();
  for (const client of world.clients) {
    const { requestId, state, chunks, refusal, entry, traffic: { key = '' } } = client;
    if (entry === 'open' || entry === 'running' || entry === 'done') coverage.took(`repeat: ${entry}`);
    if (entry === 'open' && opened.has(key)) coverage.took('repeat: run again');
    if (entry === 'open') opened.add(key);
    observeAttempts(world, client, byRequest.get(requestId) ?? [], bill);
    if (chunks > 0) coverage.took('dispatched → streaming');
    if (state === 'answered' || state === 'cut' || state === 'refused' || state === 'left' || state === 'reset') coverage.took(`client: ${state}`);
    if (refusal?.kind === 'fault') coverage.took('new → 503');
    for (const { outcome, toldByEdge } of world.ledger.requestOf(requestId)?.facts.outcomes ?? []) {
      coverage.took(toldByEdge ? (outcome === 'DELIVERED' ? 'outcome: delivered' : outcome === 'SUPERSEDED' ? 'outcome: superseded' : 'outcome: discarded') : 'outcome: concluded by the worker');
    }
  }
}

function observeAttempts({ coverage, ledger, plugins, left }: World, { requestId, state, stoppedBy, caller, traffic }: SimClient, rows: readonly LedgerEntry[], bill: Books['bill']): void {
  const charged = ledger.chargedAttempts(requestId);
  const lastLine = bill.get(`${requestId}/${charged.at(-1) ?? 0}`);
  const attempts = rows.filter(({ kind }) => kind === 'attempt');
  const cost = netOf(rows);
  for (const { attempt } of attempts) {
    const id = `${requestId}/${attempt}`;
    if (left.has(id) && !bill.has(id)) coverage.took('left before the request was sent');
    if (state === 'left' && traffic.isCutOff && bill.get(id)?.isHeaded === false) coverage.took('cut off before the head');
  }
  if (isOwn(caller) && charged.length > 0 && cost === 0n) coverage.took('own: charged nothing');
  if (caller.account.trialCreditNanoUsd !== undefined && cost > 0n) coverage.took('on trial credit');
  if (traffic.plugins !== undefined) {
    if (charged.length > 1) coverage.took('rounds: charged together');
    if (state === 'answered' && stoppedBy === 'cost_cap' && lastLine?.isCall === true) coverage.took('rounds: no room for another');
    if (state === 'refused' && attempts.some(({ attempt }) => bill.get(`${requestId}/${attempt}`)?.isCall === true)) coverage.took('rounds: discarded');
    if (state === 'cut' && charged.length > 1) coverage.took('rounds: cut');
    const paid = sum(attempts.filter(({ attempt }) => charged.includes(attempt)).map(feeOf));
    if (paid > 0n) coverage.took('fee: charged');
    if (paid < sum(plugins.fees.get(requestId) ?? [])) coverage.took('fee: not charged');
  } else if (traffic.wantsJson && state === 'answered') {
    const [only = 0] = charged;
    if (attempts.some(({ attempt }) => attempt > only)) coverage.took('reserve: given after all');
    if (attempts.some(({ attempt }) => attempt < only && bill.get(`${requestId}/${attempt}`)?.isWhole === true)) coverage.took('reserve: bettered');
  }
}
