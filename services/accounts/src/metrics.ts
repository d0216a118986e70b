/** Metrics of accounts. */
import type { Metrics } from '@signalbox/runtime/metrics';

export type AuthenticationOutcome = 'found' | 'unknown';

export interface AccountsMetrics {
  authenticated(outcome: AuthenticationOutcome): void;
  keyChanged(change: 'created' | 'updated' | 'revoked' | 'rotated'): void;
  requestClaimed(outcome: string): void;
  providerKeyChanged(change: 'set' | 'removed'): void;
  providerKeyResolved(outcome: AuthenticationOutcome): void;
}

export function createAccountsMetrics(metrics: Metrics): AccountsMetrics {
  const authentications = metrics.counter('signalbox_accounts_authentications_total', 'Look-ups of a digest, by outcome.', ['outcome']);
  const changes = metrics.counter('signalbox_accounts_key_changes_total', 'Keys made or changed.', ['change']);
  const providerKeyChanges = metrics.counter('signalbox_accounts_provider_key_changes_total', 'Credentials of accounts at providers set or removed.', ['change']);
  const resolutions = metrics.counter('signalbox_accounts_provider_key_resolutions_total', 'Credentials of accounts asked for by workers, by outcome.', ['outcome']);
  const claims = metrics.counter('signalbox_accounts_claims_total', 'Requests with an Idempotency-Key, by what was found.', ['outcome']);
  return {
    requestClaimed: (outcome) => claims.inc({ outcome: outcome.toLowerCase() }),
    authenticated: (outcome) => authentications.inc({ outcome }),
    keyChanged: (change) => changes.inc({ change }),
    providerKeyChanged: (change) => providerKeyChanges.inc({ change }),
    providerKeyResolved: (outcome) => resolutions.inc({ outcome }),
  };
}
