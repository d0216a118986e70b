/** Checks the address that an account gives for its own credential, by its text only: the name is resolved when a worker connects. */
import type { AllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import type { RefusalReason } from '@signalbox/net-guard/refusal';

/** States the whole rule, so that a client need not fix the scheme, the port and the address one after the other. */
const NOT_ALLOWED = 'must lead to a public https:// address on the usual port, or to a host and port that the operator of this gateway allows (FETCH_ALLOW).';
/** Refusals that are due to this rule, not to a malformed URL. */
const OF_THE_RULE: ReadonlySet<RefusalReason> = new Set<RefusalReason>(['scheme', 'port', 'address']);

/** Returns the problem of an address, as the end of a sentence that quotes none of its text; undefined = none. */
export function createOwnAddressCheck(allow: AllowList): (baseUrl: string) => string | undefined {
  const dialer = createDialer({ allow });
  return (baseUrl) => {
    const checked = dialer.check(baseUrl);
    if (!checked.ok) return OF_THE_RULE.has(checked.refusal.reason) ? NOT_ALLOWED : checked.refusal.sentence;
    const { protocol, hostname, port, search, hash } = checked.url;
    if (protocol !== 'https:' && !allow.hasHost(hostname, port === '' ? 80 : Number(port))) return NOT_ALLOWED;
    return search === '' && hash === '' ? undefined : 'must have no query and no fragment.';
  };
}
