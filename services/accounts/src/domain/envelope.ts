/**
 * Envelope encryption: each secret is encrypted under its own data key (AES-256-GCM), and the data key under the operator's
 * SECRETS_KEY. Rotating that key re-wraps only the data keys; the secrets stay as they are.
 */
import type { RandomBytes } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Purpose of a secret, bound into the encryption: it cannot be opened for another purpose. */
export type Purpose = 'signalbox provider credential' | 'signalbox kept answer';

/** An encrypted secret, as stored. */
export interface Sealed {
  /** Which SECRETS_KEY wraps the data key: first 8 hex characters of its SHA-256. */
  readonly keyId: string;
  /** Nonce, data key, tag. */
  readonly wrappedKey: Uint8Array;
  /** Nonce, secret, tag. */
  readonly sealed: Uint8Array;
}

export interface Envelope {
  /** Id of the key under which new secrets are wrapped. */
  readonly keyId: string;
  /** `owner` is bound in as associated data: a secret sealed for one owner cannot be opened for another. */
  seal(secret: Secret, owner: readonly string[]): Sealed;
  /** Undefined if no known key opens it for that owner. The caller must wrap the text in a Secret at once. */
  open(sealed: Sealed, owner: readonly string[]): string | undefined;
  /** The same secret with its data key under the current key; undefined if no known key opens it. */
  rewrap(sealed: Sealed, owner: readonly string[]): Sealed | undefined;
}

interface WrappingKey {
  readonly id: string;
  readonly key: Buffer;
}

function wrappingKey(secret: Secret, purpose: Purpose): WrappingKey {
  const text = secret.unwrap();
  return { id: createHash('sha256').update(text).digest('hex').slice(0, 8), key: Buffer.from(hkdfSync('sha256', text, '', purpose, KEY_BYTES)) };
}

/** `older` keys are used for opening only, never for sealing. */
export function createEnvelope(current: Secret, older: readonly Secret[], randomBytes: RandomBytes, purpose: Purpose = 'signalbox provider credential'): Envelope {
  const present = wrappingKey(current, purpose);
  const known = new Map([...older.map((secret) => wrappingKey(secret, purpose)), present].map(({ id, key }) => [id, key]));
  const associated = (part: string, owner: readonly string[]): Buffer => Buffer.from(JSON.stringify([purpose, part, ...owner]));

  const encrypt = (key: Uint8Array, plain: Uint8Array, aad: Uint8Array): Buffer => {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad);
    return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  };
  const decrypt = (key: Uint8Array, text: Uint8Array, aad: Uint8Array): Buffer | undefined => {
    if (text.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, key, text.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES }).setAAD(aad).setAuthTag(text.subarray(text.length - TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(text.subarray(NONCE_BYTES, text.length - TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  };
  const dataKeyOf = ({ keyId, wrappedKey }: Sealed, owner: readonly string[]): Buffer | undefined => {
    const key = known.get(keyId);
    return key === undefined ? undefined : decrypt(key, wrappedKey, associated(`data key ${keyId}`, owner));
  };
  const wrap = (dataKey: Uint8Array, owner: readonly string[]): Buffer => encrypt(present.key, dataKey, associated(`data key ${present.id}`, owner));

  return {
    keyId: present.id,
    seal: (secret, owner) => {
      const dataKey = Buffer.from(randomBytes(KEY_BYTES));
      try {
        return { keyId: present.id, wrappedKey: wrap(dataKey, owner), sealed: encrypt(dataKey, Buffer.from(secret.unwrap()), associated('secret', owner)) };
      } finally {
        dataKey.fill(0);
      }
    },
    open: (sealed, owner) => {
      const dataKey = dataKeyOf(sealed, owner);
      try {
        return dataKey === undefined ? undefined : decrypt(dataKey, sealed.sealed, associated('secret', owner))?.toString();
      } finally {
        dataKey?.fill(0);
      }
    },
    rewrap: (sealed, owner) => {
      const dataKey = dataKeyOf(sealed, owner);
      try {
        return dataKey === undefined ? undefined : { keyId: present.id, wrappedKey: wrap(dataKey, owner), sealed: sealed.sealed };
      } finally {
        dataKey?.fill(0);
      }
    },
  };
}
