/** Access tokens of service accounts: fetched once for all requests, and renewed before they expire. */
import type { Clock } from '@signalbox/kernel/clock';
import { Secret } from '@signalbox/runtime/secret';
import { assertionOf, GOOGLE_TOKEN_URL, readServiceAccount, type ServiceAccount } from './service-account.js';
import type { ExchangeAssertion } from './token-endpoint.js';

/** A token with less than this left is renewed, but still used meanwhile. */
const EARLY_MS = 300_000;
/** A token with less than this left is not used any more. */
const SPENT_MS = 10_000;
/** Between two tries, if the token endpoint does not answer or refuses. */
const PAUSE_MS = 5_000;
const REFUSED_PAUSE_MS = 30_000;

export interface AccessTokens {
  /**
   * The token for a credential: the credential itself if it is a token, else the one that its key file is exchanged for.
   * undefined = there is none now. Only the operator's key file may name the token endpoint. Tokens are cached by the identity
   * of the Secret object.
   */
  take(credential: Secret, owner: 'operator' | 'account'): Secret | undefined | Promise<Secret | undefined>;
  /** Drops the token of this credential, which the provider refused. */
  forget(credential: Secret): void;
}

interface Held {
  readonly account: ServiceAccount;
  token: Secret | undefined;
  /** Monotonic milliseconds. */
  endsAt: number;
  notBefore: number;
  renewal: Promise<Secret | undefined> | undefined;
}

export function createAccessTokens(exchange: ExchangeAssertion, clock: Clock): AccessTokens {
  const held = new WeakMap<Secret, Held>();

  const heldFor = (credential: Secret, owner: 'operator' | 'account'): Held | undefined => {
    const known = held.get(credential);
    if (known !== undefined) return known;
    const read = readServiceAccount(credential.unwrap());
    if (read === undefined) return undefined;
    const account = owner === 'operator' ? read : { ...read, tokenUrl: GOOGLE_TOKEN_URL };
    const entry: Held = { account, token: undefined, endsAt: 0, notBefore: 0, renewal: undefined };
    held.set(credential, entry);
    return entry;
  };

  const usable = (entry: Held): Secret | undefined => (entry.endsAt - clock.monotonicMs() > SPENT_MS ? entry.token : undefined);

  const exchangeFor = async (entry: Held): Promise<Secret | undefined> => {
    const exchanged = await exchange(entry.account.tokenUrl, assertionOf(entry.account, clock.nowMs()));
    const now = clock.monotonicMs();
    if (exchanged.ok) {
      entry.token = new Secret(exchanged.token);
      entry.endsAt = now + exchanged.lifeMs;
    } else entry.notBefore = now + (exchanged.isRefused ? REFUSED_PAUSE_MS : PAUSE_MS);
    entry.renewal = undefined;
    return usable(entry);
  };

  return {
    take: (credential, owner) => {
      // A key file begins with a brace, which an access token does not contain.
      if (!credential.unwrap().trimStart().startsWith('{')) return credential;
      const entry = heldFor(credential, owner);
      if (entry === undefined) return undefined;
      const now = clock.monotonicMs();
      if (entry.endsAt - now <= EARLY_MS && entry.notBefore <= now) entry.renewal ??= exchangeFor(entry);
      return usable(entry) ?? entry.renewal;
    },
    forget: (credential) => void held.delete(credential),
  };
}
