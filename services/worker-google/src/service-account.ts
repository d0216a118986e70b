/** Reads the key file of a Google service account and makes the assertion that is exchanged for an access token. */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';

export interface ServiceAccount {
  readonly email: string;
  readonly keyId: string;
  /** Empty = not in the file. */
  readonly projectId: string;
  readonly tokenUrl: string;
  readonly privateKey: KeyObject;
}

export const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** The longest that Google allows. */
const LIFE_SECONDS = 3_600;

/** Google's keys have 2,048 bits. An assertion is signed on the event loop, which takes a few milliseconds up to here, and seconds with 16,384 bits. */
const MODULUS_BITS_MAX = 4_096;

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The private key; undefined if it cannot sign an assertion, or not in reasonable time. Throws if it is none at all. */
function signingKeyOf(pem: string): KeyObject | undefined {
  const key = createPrivateKey(pem);
  return key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? Infinity) <= MODULUS_BITS_MAX ? key : undefined;
}

/** undefined if the text is not the key file of a service account. */
export function readServiceAccount(json: string): ServiceAccount | undefined {
  try {
    const file = JSON.parse(json) as Readonly<Record<string, unknown>> | null;
    const { client_email: email, private_key: key, private_key_id: keyId, project_id: projectId, token_uri: tokenUrl } = file ?? {};
    if (!isText(email) || !isText(key)) return undefined;
    const privateKey = signingKeyOf(key);
    return privateKey === undefined ? undefined : { email, keyId: isText(keyId) ? keyId : '', projectId: isText(projectId) ? projectId : '', tokenUrl: isText(tokenUrl) ? tokenUrl : GOOGLE_TOKEN_URL, privateKey };
  } catch {
    return undefined;
  }
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signed JWT (RS256), valid for an hour from `nowMs`. */
export function assertionOf({ email, keyId, tokenUrl, privateKey }: ServiceAccount, nowMs: number): string {
  const issuedAt = Math.floor(nowMs / 1_000);
  const head = part({ alg: 'RS256', typ: 'JWT', ...(keyId === '' ? {} : { kid: keyId }) });
  const claims = part({ iss: email, scope: SCOPE, aud: tokenUrl, iat: issuedAt, exp: issuedAt + LIFE_SECONDS });
  return `${head}.${claims}.${sign('RSA-SHA256', Buffer.from(`${head}.${claims}`), privateKey).toString('base64url')}`;
}
