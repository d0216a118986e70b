/** Why a URL was not followed, or its content not accepted. */

export type RefusalReason =
  /** Not an absolute URL, or one with credentials, blanks or an unusual notation of the host. */
  | 'bad-url'
  | 'scheme'
  | 'port'
  /** The host is, or resolves to, an address that is not public. */
  | 'address'
  /** The name has no address. */
  | 'unresolved'
  /** Name servers did not answer, or failed: our fault, whatever the name is. */
  | 'look-up-failed'
  /** Connection refused or reset, or the certificate is not trusted. */
  | 'unreachable'
  | 'too-many-redirects'
  /** The status was not 200. */
  | 'status'
  | 'media-type'
  | 'too-large'
  | 'timeout';

export interface Refusal {
  readonly reason: RefusalReason;
  /** For the client: completes a sentence such as "messages.[0].content.[1]: the URL …". Reveals nothing about the URL or our network. */
  readonly sentence: string;
}

// The same text for a name with a private address and for one that does not resolve, so that internal names cannot be discovered.
const NOT_PUBLIC = 'does not lead to a public address.';

const SENTENCES: Readonly<Record<RefusalReason, string>> = {
  'bad-url': 'is not a plain absolute URL.',
  scheme: 'must start with https:// or http://.',
  port: 'has a port that is not allowed.',
  address: NOT_PUBLIC,
  unresolved: NOT_PUBLIC,
  'look-up-failed': 'could not be looked up right now.',
  unreachable: 'could not be reached.',
  'too-many-redirects': 'redirects too often.',
  status: 'was answered with an error.',
  'media-type': 'does not lead to a file of a type that is taken here.',
  'too-large': 'leads to a file that is too large.',
  timeout: 'took too long to answer.',
};

/** True if the failure is ours and says nothing about the URL: a retry, or another host, may succeed. */
export function isOurs({ reason }: Refusal): boolean {
  return reason === 'look-up-failed';
}

export function refusal(reason: RefusalReason): Refusal {
  return { reason, sentence: SENTENCES[reason] };
}

/** Carries a refusal from the dialer through an HTTP client's error path. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly refusal: Refusal;

  constructor(reason: RefusalReason) {
    super(reason);
    this.refusal = refusal(reason);
  }
}
