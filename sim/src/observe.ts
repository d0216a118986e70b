/** Derives from the books which transitions occurred in a run, for the coverage. */
import type { LedgerEntry } from '@signalbox/billing/proof';
import { booksOf, feeOf, netOf, sum, type Books } from './books.js';
import type { SimClient } from './client.js';
import { isOwn } from './limits.js';
import type { World } from './world.js';

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

function observeAttempts({ coverage, ledger, plugins, left, elsewhere }: World, { requestId, state, stoppedBy, isCutOff, caller, traffic }: SimClient, rows: readonly LedgerEntry[], bill: Books['bill']): void {
  const charged = ledger.chargedAttempts(requestId);
  const lastLine = bill.get(`${requestId}/${charged.at(-1) ?? 0}`);
  const attempts = rows.filter(({ kind }) => kind === 'attempt');
  const cost = netOf(rows);
  for (const { attempt } of attempts) {
    const id = `${requestId}/${attempt}`;
    if (left.has(id) && !bill.has(id)) coverage.took('left before the request was sent');
    if (elsewhere.has(id) && bill.has(id)) coverage.took(state === 'answered' && charged.includes(attempt) ? 'replica lost: another answered' : 'replica lost: another asked');
    if (state === 'left' && isCutOff && bill.get(id)?.isHeaded === false) coverage.took('cut off before the head');
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
  } else if (traffic.wantsJson && state === 'left') {
    // Of the two attempts only the later one, which was still running, is charged.
    if (charged.length === 1 && attempts.some(({ attempt }) => attempt < (charged[0] ?? 0) && bill.get(`${requestId}/${attempt}`)?.isWhole === true)) coverage.took('reserve: left for another');
  } else if (traffic.wantsJson && state === 'answered') {
    const [only = 0] = charged;
    if (attempts.some(({ attempt }) => attempt > only)) coverage.took('reserve: given after all');
    if (attempts.some(({ attempt }) => attempt < only && bill.get(`${requestId}/${attempt}`)?.isWhole === true)) coverage.took('reserve: bettered');
  }
}
