/** Why a URL was not followed, or what it led to was not taken. */

export type RefusalReason =
  /** Not an absolute URL, or with credentials, blanks or a host in an odd spelling. */
  | 'bad-url'
  | 'scheme'
  | 'port'
  /** The host is, or its name stands for, an address that is not public. */
  | 'address'
  /** The name has no address. */
  | 'unresolved'
  /** Name servers did not answer, or could not: a fault of ours, whatever the name is. */
  | 'look-up-failed'
  /** Refused, reset, or no trust in its certificate. */
  | 'unreachable'
  | 'too-many-redirects'
  /** Answered with something else than 200. */
  | 'status'
  | 'media-type'
  | 'too-large'
  | 'timeout';

export interface Refusal {
  readonly reason: RefusalReason;
  /** For the client: ends a sentence such as "messages.[0].content.[1]: the URL …". Holds nothing of the URL or of our network. */
  readonly sentence: string;
}

// A name that resolves to a private address and one that does not resolve read the same: else names inside could be told from others.
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

/** Nothing is known of the URL: whoever asks may be answered otherwise a moment later, or elsewhere. */
export function isOurs({ reason }: Refusal): boolean {
  return reason === 'look-up-failed';
}

export function refusal(reason: RefusalReason): Refusal {
  return { reason, sentence: SENTENCES[reason] };
}

/** How the dialer hands a refusal through an HTTP client's error path. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly refusal: Refusal;

  constructor(reason: RefusalReason) {
    super(reason);
    this.refusal = refusal(reason);
  }
}
