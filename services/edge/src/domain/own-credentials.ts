/** The account's own credentials at providers, as far as edge knows them: by handle, never the credential. */
import type { Caller } from './ports.js';

export interface OwnCredentials {
  readonly providers: string[];
  /** Those of them with a zero-retention agreement of the account's. */
  readonly zdrProviders: string[];
  /** Those of `providers` whose credential has an address of its own. */
  readonly ownAddressProviders: string[];
  /** By provider. */
  readonly handles: ReadonlyMap<string, string>;
}

const NONE: OwnCredentials = { providers: [], zdrProviders: [], ownAddressProviders: [], handles: new Map() };
const known = new WeakMap<Caller, OwnCredentials>();

/** Worked out once for each caller object, which lives as long as its key's place in the cache. */
export function ownCredentialsOf(caller: Caller): OwnCredentials {
  const { providerKeys } = caller.account;
  if (providerKeys.length === 0) return NONE;
  let own = known.get(caller);
  if (own === undefined) {
    own = {
      providers: providerKeys.map((key) => key.provider),
      zdrProviders: providerKeys.filter((key) => key.zdr).map((key) => key.provider),
      ownAddressProviders: providerKeys.filter((key) => key.baseUrl !== '').map((key) => key.provider),
      handles: new Map(providerKeys.map((key) => [key.provider, key.handle])),
    };
    known.set(caller, own);
  }
  return own;
}
