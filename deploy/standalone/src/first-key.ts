/** The first account and key of a fresh installation. */
import type { CreateAccountRequest, CreateAccountResponse__Output, ListAccountsRequest, ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import { randomBytes } from '@signalbox/runtime/random';

const DEADLINE_MS = 10_000;

/** Creates account `dev`, tier enterprise, if there is no account at all, and returns the secret of its key; else returns undefined. */
export async function makeFirstKey(accountsAddress: string): Promise<string | undefined> {
  const client = createRpcClient({ area: 'accounts', addresses: [accountsAddress], door: 'unary', clock: systemClock, randomBytes, defaultDeadlineMs: DEADLINE_MS });
  try {
    const { accounts } = await client.unary<ListAccountsRequest, ListAccountsResponse__Output>('ListAccounts', { limit: 1 });
    if (accounts.length > 0) return undefined;
    const made = await client.unary<CreateAccountRequest, CreateAccountResponse__Output>('CreateAccount', {
      account: { name: 'dev', tier: 'enterprise' },
      keyName: 'first key',
      keyScopes: ['inference', 'models:read', 'keys', 'usage:read'],
    });
    if (made.secret === '') throw new Error(`The first account could not be made: ${made.problem}`);
    return made.secret;
  } finally {
    await client.close();
  }
}
