/** Compares what clients saw, what the provider billed, what the ledger booked and what quota counts. */
import type { PrintedRow } from '../harness/books.js';
import type { Gateway } from '../harness/gateway.js';
import type { StruckFault } from './faults.js';
import type { SeenRequest } from './load.js';
import type { BillLine } from './provider.js';

export interface CappedAccount {
  readonly id: string;
  readonly capNanoUsd: bigint | undefined;
  /** Amount of requests that were running when Redis was wiped, which may exceed the cap. */
  readonly bound: bigint;
}

export interface Findings {
  readonly violations: string[];
  lost: number;
  doubleBilled: number;
  worstOverspend: bigint;
  /** Streams whose clients left before the provider sent anything; below, those of them that are charged their prompt. */
  leftEarly: number;
  paidPrompt: number;
}

/** Prices of openai/gpt-4o-mini in the catalog, in nano-USD per 1,000,000 tokens. */
const INPUT = 150_000_000n;
const OUTPUT = 600_000_000n;
export const costOf = (prompt: number, completion: number): bigint => (BigInt(prompt) * INPUT + BigInt(completion) * OUTPUT + 500_000n) / 1_000_000n;

async function admin<Answer>({ adminUrl, adminToken }: Gateway, path: string): Promise<Answer> {
  const response = await fetch(`${adminUrl}/admin${path}`, { headers: { authorization: `Bearer ${adminToken}` }, signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as Answer;
}

export async function ledgerOf(gateway: Gateway, accountId: string): Promise<readonly PrintedRow[]> {
  const rows: PrintedRow[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: { rows: readonly PrintedRow[]; next: number | null } = await admin(gateway, `/ledger?account=${accountId}&after=${after}`);
    rows.push(...page.rows);
    after = page.next;
  }
  return rows;
}

const chargeOf = (rows: readonly PrintedRow[]): bigint => rows.filter(({ kind }) => kind !== 'attempt').reduce((sum, row) => sum + BigInt(row.amount_nano_usd), 0n);

/** What still runs, or differs between the books; undefined at rest (I5, I6). */
export async function restlessness(gateway: Gateway, accounts: readonly CappedAccount[]): Promise<string | undefined> {
  try {
    const { writers } = await admin<{ writers: readonly { writer: string; last_seq: number; ledger_seq: number; gaps: number }[] }>(gateway, '/watermarks');
    const behind = writers.find(({ last_seq, ledger_seq, gaps }) => last_seq !== ledger_seq || gaps > 0);
    if (behind !== undefined) return `I6: ${behind.writer} is at ${behind.last_seq}, the ledger at ${behind.ledger_seq}`;
    for (const { id } of accounts) {
      const quota = await admin<{ settled_nano_usd: string; reserved_nano_usd: string }>(gateway, `/quota?account=${id}`);
      const total = chargeOf(await ledgerOf(gateway, id));
      if (quota.reserved_nano_usd !== '0' || quota.settled_nano_usd !== String(total)) return `I5: ${id} has ${quota.settled_nano_usd} settled and ${quota.reserved_nano_usd} held, the ledger ${total}`;
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'unknown';
  }
}

const nanoOf = (usd: string): bigint => {
  const [whole = '0', fraction = ''] = usd.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
};

/** Checks every invariant that is visible from outside. */
export async function check(gateway: Gateway, accounts: readonly CappedAccount[], seen: readonly SeenRequest[], bill: ReadonlyMap<string, BillLine>, doubles: readonly string[]): Promise<Findings> {
  const findings: Findings = { violations: doubles.map((id) => `I1: ${id} was sent twice`), lost: 0, doubleBilled: 0, worstOverspend: 0n, leftEarly: 0, paidPrompt: 0 };
  const byRequest = new Map<string, PrintedRow[]>();
  for (const { id, capNanoUsd, bound } of accounts) {
    const rows = await ledgerOf(gateway, id);
    chainHolds(findings, id, rows);
    for (const row of rows) {
      const known = byRequest.get(row.request_id);
      if (known === undefined) byRequest.set(row.request_id, [row]);
      else known.push(row);
    }
    const over = capNanoUsd === undefined ? 0n : chargeOf(rows) - capNanoUsd;
    if (over > findings.worstOverspend) findings.worstOverspend = over;
    if (over > bound) findings.violations.push(`I4: ${id} spent ${over} over its cap, bound ${bound}`);
  }
  const clients = new Map(seen.map((one) => [one.client, one]));
  for (const line of bill.values()) billedOnce(findings, line, byRequest, clients.get(line.client));
  if (findings.leftEarly >= LEFT_EARLY_MIN && findings.paidPrompt === 0) findings.violations.push(`I14: ${findings.leftEarly} clients left a prompt with the provider, and nobody paid for one`);
  for (const one of seen) chargedRight(findings, one, byRequest.get(one.requestId) ?? [], bill);
  return findings;
}

/** I9: the hash chain of the ledger is intact. */
function chainHolds({ violations }: Findings, id: string, rows: readonly PrintedRow[]): void {
  let previous = '0'.repeat(64);
  for (const [index, row] of rows.entries()) {
    if (row.seq !== index + 1 || row.prev_hash !== previous) {
      violations.push(`I9: the chain of ${id} breaks at ${row.seq}`);
      return;
    }
    previous = row.hash;
  }
}

/** I1: one row for each attempt on the provider's bill, exact to the nano-dollar if the provider's usage was booked. */
function billedOnce(findings: Findings, line: BillLine, byRequest: ReadonlyMap<string, readonly PrintedRow[]>, client: SeenRequest | undefined): void {
  const { id, told } = line;
  const [requestId = '', attempt = ''] = id.split('/');
  const rows = (byRequest.get(requestId) ?? []).filter((row) => row.kind === 'attempt' && row.attempt === Number(attempt));
  if (rows.length === 0) {
    findings.lost += 1;
    findings.violations.push(`I1: ${id} is on the provider's bill and not in the ledger`);
  } else if (rows.length > 1) {
    findings.doubleBilled += 1;
    findings.violations.push(`I1: ${id} has ${rows.length} rows`);
  } else if (rows[0]?.source === 'provider' && told !== undefined && BigInt(rows[0].amount_nano_usd) !== costOf(told.prompt, told.completion)) findings.violations.push(`I1: ${id} is booked ${rows[0].amount_nano_usd}`);
  else if (rows[0] !== undefined && rows[0].source !== 'provider') madeIsBooked(findings, line, rows[0], client);
}

/** Fewer prove nothing, since faults make some hang-ups look like crashes of ours, which cost nothing. */
const LEFT_EARLY_MIN = 8;

/** I8 and I14: only generated output is booked; before the head of an answer, the prompt is booked if and only if its client hung up. */
function madeIsBooked(findings: Findings, { id, generated, isHeaded }: BillLine, { amount_nano_usd: amount, tokens, source }: PrintedRow, client: SeenRequest | undefined): void {
  const { violations } = findings;
  const booked = BigInt(amount);
  const output = Math.min(generated, tokens);
  if (booked > costOf(tokens - output, output)) violations.push(`I8: ${id} made ${generated} tokens and is booked ${amount} for ${tokens}`);
  if (source === 'orphan' && generated === 0 && booked !== 0n) violations.push(`I8: ${id} made nothing, its worker died, and it is booked ${amount}`);
  if (isHeaded || generated > 0) return;
  if (booked !== 0n && client?.hungUp !== true) violations.push(`I14: ${id} had not begun, its client stayed, and it is booked ${amount}`);
  if (client?.hungUp !== true || !client.isStream) return;
  findings.leftEarly += 1;
  if (booked !== 0n) findings.paidPrompt += 1;
}

/** I2, I3, I7, I10 and I12 of one request. */
function chargedRight(findings: Findings, one: SeenRequest, rows: readonly PrintedRow[], bill: ReadonlyMap<string, BillLine>): void {
  const { violations } = findings;
  if (one.requestId === '') return;
  const charges = rows.filter(({ kind }) => kind === 'charge');
  if (charges.length > 1) {
    findings.doubleBilled += 1;
    violations.push(`I2: ${one.requestId} has ${charges.length} charges`);
  }
  if (one.isWhole && charges.length === 0) {
    findings.lost += 1;
    violations.push(`I2: ${one.requestId} was answered and has no charge`);
  }
  const net = chargeOf(rows);
  if (net < 0n) violations.push(`I12: ${one.requestId} is charged ${net}`);
  if (one.costUsd !== undefined && nanoOf(one.costUsd) !== net) violations.push(`I7: ${one.requestId} was told ${one.costUsd} USD and is charged ${net}`);
  const attempts = rows.filter(({ kind }) => kind === 'attempt').map(({ amount_nano_usd }) => BigInt(amount_nano_usd));
  if (net !== 0n && !attempts.includes(net)) violations.push(`I3: ${one.requestId} is charged ${net}, which none of its attempts cost`);
  if (one.status >= 400 && one.status < 500 && bill.has(`${one.requestId}/1`) && ![400, 404, 408].includes(one.status)) violations.push(`I10: ${one.requestId} was refused with ${one.status} and reached the provider`);
}

/** Longest time without a whole answer around each kind of fault, in milliseconds. */
export function errorWindows(seen: readonly SeenRequest[], faults: readonly StruckFault[], afterMs: number): ReadonlyMap<string, number> {
  const good = seen.filter(({ isWhole }) => isWhole).map(({ endedMs }) => endedMs).sort((a, b) => a - b);
  const bad = seen.filter(({ isWhole, hungUp, status }) => !isWhole && !hungUp && (status === 0 || status >= 500 || status === 200)).map(({ endedMs }) => endedMs).sort((a, b) => a - b);
  const windows = new Map<string, number>();
  for (const { kind, atMs, endMs } of faults) {
    const failed = bad.filter((ms) => ms >= atMs && ms <= endMs + afterMs);
    let longest = 0;
    for (const ms of failed) {
      const before = good.findLast((each) => each < ms) ?? ms;
      const after = good.find((each) => each > ms) ?? ms;
      longest = Math.max(longest, after - before);
    }
    windows.set(kind, Math.max(windows.get(kind) ?? 0, longest));
  }
  return windows;
}
