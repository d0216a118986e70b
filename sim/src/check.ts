/** Checks the invariants (docs/proof.md) against the providers' own bills, once the books are at rest. */
import type { AttemptEnded__Output, OutcomeTold__Output } from '@signalbox/contracts/events';
import { checkAttempt, checkOutcome, type CheckedAttempt, type CheckedOutcome, type LedgerEntry } from '@signalbox/billing/proof';
import { reservationCost } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { fold, NO_FACTS } from '@signalbox/ledger-core/fold';
import { brokenLink } from '@signalbox/ledger-core/hash-chain';
import { endedCodec, FRAME, outcomeCodec, readFrames } from '@signalbox/worker-kit/proof';
import { booksOf, feeOf, isCharge, netOf, rowsOf, sum, type Books } from './books.js';
import type { SimClient } from './client.js';
import { SimLedger } from './ledger.js';
import { isOwn, limitOf, METERS, NOTHING, type Amounts } from './limits.js';
import { TRANCHE_TOKENS, type BillLine } from './provider.js';
import type { World } from './world.js';

/** A stream whose hold cannot grow stops this many tokens before the hold's end, which leaves room for one chunk. */
const STOP_LEFT_TOKENS = 64;

/** Reports each violated invariant to the world. */
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

/** How long a worker waits for a non-streamed answer after its client left. */
const DRAIN_MS = 60_000;

/**
 * True if the account owes the prompt: the client hung up by itself, and the worker therefore abandoned a provider that had
 * the whole request and had sent no word yet. A stream is abandoned at once, a non-streamed answer after a minute.
 */
function isPromptOwed(world: World, { id, endedAtMs }: BillLine): boolean {
  const leftAtMs = world.left.get(id);
  if (leftAtMs === undefined || endedAtMs === undefined) return false;
  const isStream = world.clients.find(({ requestId }) => id.startsWith(`${requestId}/`))?.traffic.stream;
  return isStream === true ? endedAtMs === leftAtMs : endedAtMs >= leftAtMs + DRAIN_MS;
}

/** I8, I14: an answer that had not begun is booked at exactly its prompt, by our own count, if its client hung up, and otherwise at nothing. */
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
  // An answer that was ended after its status by a lost link or by edge is booked too.
  if (isOwed ? isNothing : !isNothing && !line.isHeaded) world.violate(`I14: ${line.id} had not begun, its client ${isOwed ? 'hung up' : 'did not hang up'}, and it is booked ${row.amountNanoUsd}`);
  if (!isOwed) return;
  world.coverage.took(line.isHeaded ? 'left after the head: prompt alone' : 'left before the head: prompt alone');
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

/** Edge was killed before it could tell the outcome to a worker that was down: after two deaths the outcome is known to nobody. */
function isNeverTold({ ledger }: World, { requestId, isEdgeDead }: SimClient, attempt: number): boolean {
  return isEdgeDead && ledger.requestOf(requestId)?.facts.outcomes.some((told) => told.attempt === attempt && told.toldByEdge) !== true;
}

/** How long edge delays the end of an answer until a worker that would assume another outcome has recorded it. */
const HEARD_MS = 2_000;
/** Times of the scheduler are sums of fractions: two seconds can come out as 1,999.9999999999998 ms. */
const ROUNDING_MS = 1e-6;

/** The answer was delivered although its worker had recorded nothing within `HEARD_MS`, and edge died before the worker did. */
function isGivenUnheard(world: World, client: SimClient, attempt: number): boolean {
  const toldAtMs = world.toldAtMs.get(`${client.requestId}/${attempt}`) ?? Infinity;
  return (client.endedAtMs ?? 0) - toldAtMs >= HEARD_MS - ROUNDING_MS && isNeverTold(world, client, attempt);
}

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
  // Without an outcome, readers of the log assume that a finished answer was delivered.
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
  // On own credentials, a late round without tokens changes no charge, so no row counts it: fold the facts instead.
  const charged = isOurs ? world.ledger.chargedAttempts(requestId) : (fold(world.ledger.requestOf(requestId)?.facts ?? NO_FACTS)?.chargedAttempts ?? []);
  givenIsCharged(books, client, charged);
  roundsAreTogether(books, client, charged);
  feesAreCharged(books, client, rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt)));
  const cost = sum(rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt)).map(({ amountNanoUsd }) => amountNanoUsd));
  // On own credentials the cost is reported too, although the provider charges it.
  const isReserve = cost === 0n && client.traffic.wantsJson && [...client.given].every((attempt) => isGivenUnheard(world, client, attempt));
  // Rounds that only called tools are free if no log knows of an answer after them.
  const isRound = client.traffic.plugins !== undefined && rows.some((row) => row.kind === 'attempt' && bill.get(`${requestId}/${row.attempt}`)?.isCall === true && isNeverTold(world, client, row.attempt) && !charged.some((attempt) => attempt > row.attempt));
  if (costTold !== undefined && BigInt(costTold) !== cost && !isReserve && !isRound) world.violate(`I7: ${requestId} was told ${costTold} and its attempts cost ${cost}`);
  if (net !== (isOurs ? cost : 0n)) world.violate(`I3: ${requestId} is charged ${net} and its attempts cost ${cost}`);
  const counted = rows.filter((row) => row.kind === 'attempt' && charged.includes(row.attempt));
  const tokens = sum(counted.map((row) => row.tokens + row.byokTokens));
  const booked = rows.filter(isCharge);
  if (sum(booked.map((row) => (isOurs ? row.tokens : row.byokTokens))) !== tokens || booked.some((row) => (isOurs ? row.byokTokens : row.tokens) !== 0n)) world.violate(`I3: ${requestId} does not count the ${tokens} tokens of its attempts`);
  withinHold(books, client, charged, { charge: net, tokens });
}

/**
 * Attempts whose text a client got are charged, each once. Others are charged only if they are rounds that called tools; and
 * one more attempt, unless the client received the end of its answer.
 */
function givenIsCharged(books: Books, client: SimClient, charged: readonly number[]): void {
  const { requestId, state, given, traffic } = client;
  const { world, bill } = books;
  // If the worker died, text after its last checkpoint is given away. An attempt that costs nothing needs no row that counts it.
  const isLost = (attempt: number): boolean => rowsOf(books, requestId).some((row) => row.kind === 'attempt' && row.attempt === attempt && row.amountNanoUsd === 0n && (row.source === 'orphan' || row.tokens + row.byokTokens === 0n));
  // An answer delivered from reserve: its worker believes that the later attempt superseded it.
  const isReserve = (attempt: number): boolean => traffic.wantsJson && charged.length === 0 && isGivenUnheard(world, client, attempt);
  const isRound = (attempt: number): boolean => bill.get(`${requestId}/${attempt}`)?.isCall === true && isGivenUnheard(world, client, attempt);
  for (const attempt of given) if (!charged.includes(attempt) && !isLost(attempt) && !isReserve(attempt) && !isRound(attempt)) world.violate(`I8: ${requestId} gave attempt ${attempt} away and is charged for ${charged.join(', ') || 'nothing'}`);
  const unseen = charged.filter((attempt) => !given.has(attempt) && bill.get(`${requestId}/${attempt}`)?.isCall !== true);
  // An answer stopped by its cap may have no text.
  const most = (state === 'answered' && client.stoppedBy === '') || state === 'cut' ? 0 : 1;
  if (unseen.length > most) world.violate(`I8: ${requestId} is charged for attempts ${charged.join(', ')} and got words of ${[...given].join(', ') || 'none'}`);
  if (traffic.plugins === undefined && charged.length > 1) world.violate(`I8: ${requestId} is charged for attempts ${charged.join(', ')}`);
}

/** I3: if a round of a request is charged, so is each earlier one that answered, in whatever log it is. */
function roundsAreTogether({ world, bill }: Books, { requestId, traffic }: SimClient, charged: readonly number[]): void {
  const latest = charged.at(-1) ?? 0;
  const attempts = world.ledger.requestOf(requestId)?.facts.attempts ?? [];
  if (traffic.plugins === undefined || latest === 0) return;
  for (const { attempt, costNanoUsd } of attempts) {
    const line = bill.get(`${requestId}/${attempt}`);
    const isReplaced = attempts.some(({ retryOf }) => retryOf.includes(attempt));
    if (attempt < latest && line?.isCall === true && line.isWhole && costNanoUsd > 0n && !isReplaced && !charged.includes(attempt)) world.violate(`I3: ${requestId} is charged for attempts ${charged.join(', ')}, and not for round ${attempt} before them`);
  }
}

/** Plugin fees: never more than the plugins reported, and all of it with an answer that no limit stopped. */
function feesAreCharged({ world }: Books, client: SimClient, charged: readonly LedgerEntry[]): void {
  const { requestId, state, stoppedBy, isEdgeDead } = client;
  const told = sum(world.plugins.fees.get(requestId) ?? []);
  const paid = sum(charged.map(feeOf));
  if (paid > told || (state === 'answered' && stoppedBy === '' && !isEdgeDead && paid < told)) world.violate(`I13: ${requestId} has fees of ${told} and is charged ${paid}`);
}

/** If a provider respects `max_tokens` and counts honestly, a request never costs more than its hold, plus the tokens of one chunk beyond 64 if the hold grew. */
function withinHold({ world, bill }: Books, { requestId, caller }: SimClient, charged: readonly number[], used: Amounts): void {
  const lines = charged.map((attempt) => bill.get(`${requestId}/${attempt}`));
  if (lines.some((line) => line === undefined || line.usage === 'absurd')) return;
  for (const meter of METERS) {
    const held = (world.held.get(requestId) ?? NOTHING)[meter] + sum(lines.map((line) => overrunOf(world, line)[meter]));
    if (limitOf(caller, meter) !== undefined && used[meter] > held) world.violate(`I4: ${requestId} held ${held} (${meter}) and is charged ${used[meter]}`);
  }
}

/** How much one answer may cost beyond its hold, by the documented bound. */
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

/** I11: all logs, booked into an empty ledger, give the same result. */
function replayAgrees(world: World): void {
  const again = new SimLedger(world.scheduler, world.random, undefined);
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

/** Nobody is refused for money that was never spent: the amount in a refusal is at most what earlier requests cost. */
function refusalsWereRight(books: Books): void {
  const { world } = books;
  for (const { accountId, spend, meter, before } of world.refusals) {
    let most = 0n;
    for (const client of world.clients.slice(0, before)) {
      if (client.accountId !== accountId) continue;
      const costs = rowsOf(books, client.requestId).filter(({ kind }) => kind === 'attempt').map((row) => (meter === 'charge' ? row.amountNanoUsd : row.tokens + row.byokTokens));
      // The costs of all rounds count.
      most += client.traffic.plugins === undefined ? costs.reduce((a, b) => (a > b ? a : b), 0n) : sum(costs);
    }
    if (spend > most) world.violate(`${accountId} was refused for ${spend} spent, all its requests cost ${most} at most`);
  }
}

/** However often a request is sent under one Idempotency-Key, it is paid once, to us or to a provider. */
function keysArePaidOnce(books: Books): void {
  const paid = new Map<string, string[]>();
  for (const { requestId, traffic: { key } } of books.world.clients) {
    if (key === undefined) continue;
    const charged = books.world.ledger.chargedAttempts(requestId);
    if (rowsOf(books, requestId).some((row) => row.kind === 'attempt' && charged.includes(row.attempt) && row.amountNanoUsd > 0n)) paid.set(key, [...(paid.get(key) ?? []), requestId]);
  }
  for (const [key, requests] of paid) if (requests.length > 1) books.world.violate(`I15: ${requests.join(', ')} are all paid under ${key}`);
}
