/** Requests with an Idempotency-Key: the claims at accounts, and what the ledger knows about a request. */
import { createAccountsMetrics, createClaims, createHandlers, createMemoryClaimStore, type ClaimStore } from '@signalbox/accounts/proof';
import type { ClaimStanding } from '@signalbox/contracts/accounts';
import type { GetRequestRequest__Output } from '@signalbox/contracts/billing';
import { conduct, endingOf, type Neighbours, type Repeats, type Turn } from '@signalbox/edge/proof';
import { toFault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import { createMetrics } from '@signalbox/runtime/metrics';
import type { SimClient } from './client.js';
import type { SimLedger } from './ledger.js';
import type { Life } from './life.js';

/** Default of accounts. */
const LEASE_MS = 60_000;
const metrics = createAccountsMetrics(createMetrics({ service: 'accounts', withProcessMetrics: false }));

/** Dependencies of handlers that are never used here. */
const absent = undefined as never;

export const newClaimStore = createMemoryClaimStore;

export function claimHandlers(store: ClaimStore, { clock }: Life): Handlers {
  const claims = createClaims({ store, clock, envelope: absent, leaseMs: LEASE_MS });
  return createHandlers({ clock, claims, metrics, accounts: absent, keys: absent, providerKeys: absent, sessions: absent, changes: absent });
}

/** For a mutant: a claim that is still to begin has no lease, and `begin` is not recorded. */
export function withoutBegins(store: ClaimStore): ClaimStore {
  return {
    ...store,
    claim: (fresh, takesOver, nowMs) => store.claim(fresh.isToBegin ? { ...fresh, leaseEndsMs: nowMs } : fresh, takesOver, nowMs),
    begin: async () => true,
  };
}

/** For the mutant that forgets claims: every caller is told that its claim stands. */
export const standing = async (): Promise<ClaimStanding> => ({ leaseLeftMs: String(LEASE_MS) });

/** Same result as billing's query of its tables. */
export function getRequest(ledger: SimLedger, life: Life): (request: GetRequestRequest__Output) => Promise<object> {
  return async ({ requestId }) => {
    const booked = await ledger.read(life, () => ledger.requestOf(requestId)?.booked);
    if (booked === undefined) return { found: false };
    const attempts = ledger.requestOf(requestId)?.facts.attempts.map(({ byok, costNanoUsd }) => ({ byok, costNanoUsd: String(costNanoUsd) })) ?? [];
    return { found: true, request: { costNanoUsd: String(booked.chargeNanoUsd), chargeNanoUsd: String(booked.chargeNanoUsd), promptTokens: String(booked.tokens), completionTokens: '0' }, attempts };
  };
}

/** Runs a request with an Idempotency-Key, from its claim to its end. */
export async function conductOnce(neighbours: Neighbours, repeats: Repeats, turn: Turn, key: string, client: SimClient): Promise<void> {
  const ref = { accountId: turn.caller.account.id, keyDigest: Buffer.from(key), requestId: turn.requestId };
  let entry;
  try {
    entry = await repeats.enter(ref, Buffer.from('body'), true, () => client.costTold !== undefined || client.refusal !== undefined);
  } catch (error) {
    client.refuse({ kind: 'fault', fault: toFault(error) });
    return;
  }
  if (entry.kind !== 'open') {
    client.repeat(entry.kind);
    return;
  }
  client.repeat('open');
  const conducted = await conduct(neighbours, { ...turn, keepClaim: entry.claim.keep });
  const costNanoUsd = client.costTold === undefined ? undefined : BigInt(client.costTold);
  const isDoubtful = client.refusal?.kind === 'fault' && client.refusal.fault.code === 'internal_error';
  await entry.claim.end(endingOf(conducted, { costNanoUsd, isDoubtful, answer: () => undefined }, turn.request.stream));
}
