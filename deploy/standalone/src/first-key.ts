/** The first account and key of a fresh installation. */
import type { CreateAccountRequest, CreateAccountResponse__Output, ListAccountsRequest, ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import { openAccountsClient } from './accounts-client.js';

/** Creates account `dev`, tier enterprise, if there is no account at all, and returns the secret of its key; else returns undefined. */
export async function makeFirstKey(accountsAddress: string, doors?: ProcessDoors): Promise<string | undefined> {
  const client = await openAccountsClient(accountsAddress, doors);
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
