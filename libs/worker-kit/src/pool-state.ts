/** Which credentials of a provider remain for a model after one was refused or rate-limited. */
import type { Credential, CredentialPool } from './credentials.js';

/** How long a credential rests after a 429 without a hint, if another is free. */
const UNHINTED_REST_MS = 1_000;

export interface PoolState {
  readonly otherCredential: boolean;
  /** Milliseconds until the first of them is free; 0 = one is free, or unknown. */
  readonly retryAfterMs: number;
  /** If another is free: how long the limited one was told to wait. */
  readonly hintMs?: number;
}

/** `hintMs`: wait named by the 429; 0 = none. */
export function poolAfterLimit(credentials: CredentialPool, credential: Credential, model: string, hintMs: number): PoolState {
  const otherCredential = credentials.hasOther(credential, model);
  const retryAfterMs = credentials.rest(credential, model, hintMs || (otherCredential ? UNHINTED_REST_MS : 0));
  return { otherCredential, retryAfterMs, ...(retryAfterMs === 0 && hintMs > 0 ? { hintMs } : {}) };
}

export function poolAfterRefusal(credentials: CredentialPool, credential: Credential, model: string): PoolState {
  const otherCredential = credentials.hasOther(credential, model);
  credentials.refused(credential);
  return { otherCredential, retryAfterMs: credentials.waitMs(model) };
}

/** After a 429 because one request asks for more than its account may use in a minute. The credential does not rest, since others may use it; another may be of another account. */
export function poolAfterTooLarge(credentials: CredentialPool, credential: Credential, model: string): PoolState {
  return { otherCredential: credentials.hasOther(credential, model), retryAfterMs: 0 };
}
