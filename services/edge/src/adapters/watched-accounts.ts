/**
 * The accounts client, observed: a change that is made through this edge takes effect here at once, also when its event is
 * lost or late.
 */
import type { RpcClient } from '@signalbox/rpc/call';
import type { Authenticator } from './authenticator.js';

/** The fields of a message to accounts that name the changed key, or the account if no key is named. */
interface Changed {
  readonly ref?: { readonly keyId?: string };
  readonly account?: { readonly id?: string };
  readonly accountId?: string;
  readonly compromised?: boolean;
}

const CHANGES: ReadonlySet<string> = new Set(['UpdateKey', 'RevokeKey', 'RotateKey', 'SetAccount', 'SetProviderKey', 'RemoveProviderKey']);

export function watchAccounts(accounts: RpcClient, authenticator: Pick<Authenticator, 'invalidate'>): RpcClient {
  return {
    ...accounts,
    unary: async (method, request, options) => {
      if (!CHANGES.has(method)) return accounts.unary(method, request, options);
      let isFound = false;
      try {
        const answer = await accounts.unary<typeof request, never>(method, request, options);
        isFound = (answer as { readonly found?: boolean }).found === true;
        return answer;
      } finally {
        // After a failure too: the change may have been made. `isCompromised` only for a key that exists: any other id may be arbitrary text, and has no requests to end.
        const { ref, account, accountId, compromised }: Changed = request;
        authenticator.invalidate({ keyId: ref?.keyId ?? '', accountId: account?.id ?? accountId ?? '', isCompromised: isFound && compromised === true });
      }
    },
  };
}
