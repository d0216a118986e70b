/** What is left of a provider's credentials for a model when one was refused or limited. */
import type { Credential, CredentialPool } from './credentials.js';

/** A 429 without a hint rests its credential for so long, where another is free. */
const UNHINTED_REST_MS = 1_000;

export interface PoolState {
  readonly otherCredential: boolean;
  /** Until the first of them is free; 0 = one is, or nobody knows. */
  readonly retryAfterMs: number;
  /** Where one is: what the limited one was asked to wait. */
  readonly hintMs?: number;
}

/** `hintMs`: of its 429, 0 = none. */
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
