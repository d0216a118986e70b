/** The account's own credentials at providers. Edge knows their handles only, never the secrets. */
import type { Caller } from './ports.js';

export interface OwnCredentials {
  readonly providers: string[];
  /** Those for which the account has a zero-retention agreement. */
  readonly zdrProviders: string[];
  /** Those whose credential has its own server address. */
  readonly ownAddressProviders: string[];
  /** Handle by provider. */
  readonly handles: ReadonlyMap<string, string>;
}

const NONE: OwnCredentials = { providers: [], zdrProviders: [], ownAddressProviders: [], handles: new Map() };
const known = new WeakMap<Caller, OwnCredentials>();

/** Computed once for each caller object, which lives as long as its key's entry in the cache. */
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
