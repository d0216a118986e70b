/**
 * The accounts client, observed: a change that is made through this edge takes effect here at once, also when its event is
 * lost or late.
 */
import type { RpcClient } from '@signalbox/rpc/call';
import type { Authenticator } from './authenticator.js';

/** Of a key, or of an account where no key is named, as in the messages of accounts. */
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
        // After a failure too: the change may have been made. Of a key that nobody has there is nothing to cut, and its id may be anything that was typed.
        const { ref, account, accountId, compromised }: Changed = request;
        authenticator.invalidate({ keyId: ref?.keyId ?? '', accountId: account?.id ?? accountId ?? '', isCompromised: isFound && compromised === true });
      }
    },
  };
}
