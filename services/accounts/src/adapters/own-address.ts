/** Which addresses an account may give for a credential of its own, by their text alone: names are looked up when a worker connects. */
import type { AllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import type { RefusalReason } from '@signalbox/net-guard/refusal';

/** All of the rule at once: who mends the port is not to be told of the scheme next, and then of the address. */
const NOT_ALLOWED = 'must lead to a public https:// address on the usual port, or to a host and port that the operator of this gateway allows (FETCH_ALLOW).';
/** Refusals that are no fault of how the URL is written. */
const OF_THE_RULE: ReadonlySet<RefusalReason> = new Set<RefusalReason>(['scheme', 'port', 'address']);

/** Answers what is wrong with an address, as the end of a sentence without any of its text; undefined = nothing. */
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
