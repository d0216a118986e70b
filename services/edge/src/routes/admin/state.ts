/** Admin routes for the present state: counters, rows of the ledger, writers, providers. */
import type { LedgerResponse__Output, WatermarksResponse__Output } from '@signalbox/contracts/billing';
import type { ShowResponse__Output } from '@signalbox/contracts/quota';
import type { ProvidersResponse__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import type { Variant } from '@signalbox/kernel/tiers';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { countedAt, leftNanoUsd } from '../../domain/counted.js';
import { accountLimits, variantOf } from '../../domain/limits.js';
import { QueryError, takesQuery } from '../query-fields.js';
import { ANSWER_OPTIONS, digits, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';

const LEDGER_PAGE_ROWS = 1_000;
/** The first and the last page of a span look through the whole span by time: some seconds for each ten million rows. */
const LEDGER_OPTIONS = { deadlineMs: 60_000 } as const;

export interface AdminStateDeps {
  readonly quota: RpcClient;
  readonly billing: RpcClient;
  readonly routing: RpcClient;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** As in AdminDeps. */
  readonly periodSeconds: number | undefined;
  readonly variant: Variant;
}

export function createAdminStateRouter({ quota, billing, routing, clock, periodSeconds, variant }: AdminStateDeps, { accountOf, isAccount }: AdminChecks): Router {
  const router = Router();
  router.get('/quota', async (request, response) => {
    const account = await accountOf(text(request, 'account'), response);
    if (account === undefined) return;
    const shown = await quota.unary<object, ShowResponse__Output>('Show', { accountId: account.id }, ANSWER_OPTIONS);
    // From the account, since quota only knows the caps of its last admission.
    const caps = [...account.costCaps, ...account.policyCostCaps].map(({ capNanoUsd, period }) => ({ scope: 'account', period, cap_nano_usd: capNanoUsd }));
    const buckets = shown.buckets.map((bucket) => ({
      scope: bucket.scope, period_id: bucket.periodId, settled_nano_usd: bucket.settledNanoUsd, finished_nano_usd: bucket.finishedNanoUsd, reserved_nano_usd: bucket.reservedNanoUsd,
      tokens: Number(bucket.tokens), reserved_tokens: Number(bucket.reservedTokens),
    }));
    const limits = accountLimits(account, variantOf(account, variant));
    const left = leftNanoUsd(limits, countedAt(shown, Number(shown.atMs) || clock.nowMs(), { anchorDay: account.billingAnchorDay, periodSeconds }));
    send(response, { settled_nano_usd: shown.settledNanoUsd, reserved_nano_usd: shown.reservedNanoUsd, remaining_nano_usd: left?.toString() ?? null, caps, buckets, ledger_seq: Number(shown.ledgerSeq) });
  });
  router.get('/ledger', takesQuery('account', 'from_ms', 'to_ms', 'after'), async (request, response) => {
    const accountId = text(request, 'account');
    const [fromMs, toMs, after] = [digits(request, 'from_ms'), digits(request, 'to_ms'), digits(request, 'after')];
    if (toMs !== '0' && Number(fromMs) > Number(toMs)) throw new QueryError('from_ms', 'from_ms must not be after to_ms.');
    if (!(await isAccount(accountId, response))) return;
    const page = await billing.unary<object, LedgerResponse__Output>('Ledger', { accountId, fromMs, toMs, after, limit: LEDGER_PAGE_ROWS }, LEDGER_OPTIONS);
    const rows = page.rows.map((row) => ({
      seq: Number(row.seq), kind: row.kind, request_id: row.requestId, attempt: row.attempt, amount_nano_usd: row.amountNanoUsd, source: row.source, charged: row.charged, flags: row.flags,
      provider: row.provider, period: row.period, at: Number(row.atMs), prev_hash: row.prevHash, hash: row.hash, applies_to: row.appliesTo === '' ? undefined : row.appliesTo,
      tokens: Number(row.tokens), byok_tokens: Number(row.byokTokens), card_id: row.cardId,
    }));
    send(response, { account_id: accountId, rows, next: page.next === undefined ? null : Number(page.next) });
  });
  router.get('/watermarks', async (_request, response) => {
    const { writers } = await billing.unary<object, WatermarksResponse__Output>('Watermarks', {}, ANSWER_OPTIONS);
    send(response, { writers: writers.map((mark) => ({ writer: mark.writer, provider: mark.provider, last_seq: Number(mark.lastSeq), ledger_seq: Number(mark.ledgerSeq), gaps: Number(mark.gaps), lost: mark.lost, ended: mark.ended })) });
  });
  router.get('/providers', async (_request, response) => {
    const { providers } = await routing.unary<object, ProvidersResponse__Output>('Providers', {}, ANSWER_OPTIONS);
    send(response, {
      providers: providers.map(({ provider, available, endpoints }) => ({
        provider, available,
        endpoints: endpoints.map((one) => ({ endpoint_id: one.endpointId, breaker: one.breaker, samples: one.samples, latency_ms_p75: one.latencyMsP75 ?? null, throughput_tps_p50: one.throughputTpsP50 ?? null, ejected_for: one.ejectedFor || null })),
      })),
    });
  });
  return router;
}
