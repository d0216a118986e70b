/** Secrets of keys: created here, stored only as digests under the pepper. */
import { API_KEY_PREFIX_LENGTH, makeApiKey } from '@signalbox/kernel/api-key';
import type { RandomBytes } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export interface SecretMaker {
  /** First 8 hex characters of the pepper's SHA-256: identifies the pepper of a digest. */
  readonly pepperId: string;
  make(): { readonly secret: string; readonly prefix: string; readonly digest: Uint8Array };
}

export function createSecretMaker(pepper: Secret, randomBytes: RandomBytes): SecretMaker {
  const text = pepper.unwrap();
  return {
    pepperId: createHash('sha256').update(text).digest('hex').slice(0, 8),
    make: () => {
      const secret = makeApiKey(randomBytes);
      return { secret, prefix: secret.slice(0, API_KEY_PREFIX_LENGTH), digest: createHmac('sha256', text).update(secret).digest() };
    },
  };
}

/** Compares digests in constant time. */
export function sameDigest(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
