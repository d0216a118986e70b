/** Metrics of accounts. */
import type { Metrics } from '@signalbox/runtime/metrics';

export type AuthenticationOutcome = 'found' | 'unknown';

export interface AccountsMetrics {
  authenticated(outcome: AuthenticationOutcome): void;
  keyChanged(change: 'created' | 'updated' | 'revoked' | 'rotated'): void;
}

export function createAccountsMetrics(metrics: Metrics): AccountsMetrics {
  const authentications = metrics.counter('signalbox_accounts_authentications_total', 'Look-ups of a digest, by outcome.', ['outcome']);
  const changes = metrics.counter('signalbox_accounts_key_changes_total', 'Keys made or changed.', ['change']);
  return { authenticated: (outcome) => authentications.inc({ outcome }), keyChanged: (change) => changes.inc({ change }) };
}
