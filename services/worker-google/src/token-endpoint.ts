/** Exchanges an assertion for an access token at Google's token endpoint. */
import { request } from '@signalbox/runtime/http-client';

const TIMEOUT_MS = 5_000;
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

export type Exchanged = { readonly ok: true; readonly token: string; readonly lifeMs: number } | { readonly ok: false; readonly isRefused: boolean };

/** Never rejects. `isRefused`: the account is not valid, or no longer; else the endpoint did not answer properly. */
export type ExchangeAssertion = (tokenUrl: string, assertion: string) => Promise<Exchanged>;

export const exchangeAssertion: ExchangeAssertion = async (tokenUrl, assertion) => {
  try {
    const { statusCode, body } = await request(tokenUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const told = (await body.json().catch(() => undefined)) as { readonly access_token?: unknown; readonly expires_in?: unknown } | null | undefined;
    if (statusCode !== 200) return { ok: false, isRefused: statusCode >= 400 && statusCode < 500 && statusCode !== 408 && statusCode !== 429 };
    const { access_token: token, expires_in: seconds } = told ?? {};
    if (typeof token !== 'string' || token === '' || typeof seconds !== 'number' || !(seconds > 0)) return { ok: false, isRefused: false };
    return { ok: true, token, lifeMs: seconds * 1_000 };
  } catch {
    return { ok: false, isRefused: false };
  }
};
