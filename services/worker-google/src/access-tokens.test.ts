import { createPrivateKey, createVerify, generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createAccessTokens, type AccessTokens } from './access-tokens.js';
import { assertionOf, readServiceAccount } from './service-account.js';
import { exchangeAssertion, type Exchanged } from './token-endpoint.js';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048, privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } });
const keyFile = (more: object = {}): string => JSON.stringify({ type: 'service_account', project_id: 'p1', private_key_id: 'k1', private_key: privateKey, client_email: 'svc@p1.example', token_uri: 'https://operator.example/token', ...more });

/** A key of that length. Its numbers are no primes, which nobody looks at before it signs. */
function keyOfBits(bits: number): string {
  const number = (bytes: number): string => Buffer.alloc(bytes, 0xff).toString('base64url');
  const half = number(bits / 16);
  return createPrivateKey({ format: 'jwk', key: { kty: 'RSA', e: 'AQAB', n: number(bits / 8), d: number(bits / 8), p: half, q: half, dp: half, dq: half, qi: half } }).export({ type: 'pkcs8', format: 'pem' }) as string;
}

describe('assertion', () => {
  test('is signed by the account for an hour', () => {
    const account = readServiceAccount(keyFile());
    if (account === undefined) throw new Error('no account');
    const [head = '', claims = '', signature = ''] = assertionOf(account, 1_795_200_000_999).split('.');
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' });
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({ iss: 'svc@p1.example', scope: 'https://www.googleapis.com/auth/cloud-platform', aud: 'https://operator.example/token', iat: 1_795_200_000, exp: 1_795_203_600 });
    expect(createVerify('RSA-SHA256').update(`${head}.${claims}`).verify(publicKey, Buffer.from(signature, 'base64url'))).toBe(true);
  });

  test.each([['no JSON', '{'], ['another kind of file', '{"type":"authorized_user","refresh_token":"x"}'], ['a key that is none', keyFile({ private_key: 'nonsense' })], ['null', 'null'],
    ['a key that would sign for seconds', keyFile({ private_key: keyOfBits(16_384) })],
    ['a key that cannot sign so', keyFile({ private_key: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) })]])('%s is no service account', (_what, text) => {
    expect(readServiceAccount(text)).toBeUndefined();
  });
});

test('the longest key that Google takes is one', () => {
  expect(readServiceAccount(keyFile({ private_key: keyOfBits(4_096) }))).toBeDefined();
});

describe('tokens', () => {
  let clock: FakeClock;
  let asked: string[];
  let answers: (Exchanged | Promise<Exchanged>)[];
  let tokens: AccessTokens;
  const credential = new Secret(keyFile());
  const issued = (token: string): Exchanged => ({ ok: true, token, lifeMs: HOUR_MS });
  const textOf = async (taken: ReturnType<AccessTokens['take']>): Promise<string | undefined> => (await taken)?.unwrap();

  beforeEach(() => {
    clock = createFakeClock();
    asked = [];
    answers = [];
    tokens = createAccessTokens((tokenUrl) => {
      asked.push(tokenUrl);
      return Promise.resolve(answers.shift() ?? { ok: false, isRefused: false });
    }, clock);
  });

  test('an access token is used as it is', () => {
    const token = new Secret('ya29.abc');
    expect(tokens.take(token, 'operator')).toBe(token);
  });

  test('simultaneous requests share one exchange, and later ones do not wait', async () => {
    answers.push(issued('t1'));
    expect(await Promise.all([textOf(tokens.take(credential, 'operator')), textOf(tokens.take(credential, 'operator'))])).toEqual(['t1', 't1']);
    expect(tokens.take(credential, 'operator')).toBeInstanceOf(Secret);
    expect(asked).toEqual(['https://operator.example/token']);
  });

  test('an account\'s own key file cannot name the token endpoint', async () => {
    answers.push(issued('t1'));
    expect(await textOf(tokens.take(new Secret(keyFile({ token_uri: 'http://169.254.169.254/' })), 'account'))).toBe('t1');
    expect(asked).toEqual(['https://oauth2.googleapis.com/token']);
  });

  test('a token is renewed early, and used until the new one is here', async () => {
    answers.push(issued('t1'));
    await tokens.take(credential, 'operator');
    clock.advance(HOUR_MS - 4 * MINUTE_MS);
    let renew: (exchanged: Exchanged) => void = () => undefined;
    answers.push(new Promise((resolve) => (renew = resolve)));
    expect(await textOf(tokens.take(credential, 'operator'))).toBe('t1');
    renew(issued('t2'));
    await clock.settle();
    expect(await textOf(tokens.take(credential, 'operator'))).toBe('t2');
    expect(asked).toHaveLength(2);
  });

  test('an endpoint that does not answer is tried again after a pause; an expired token is never sent', async () => {
    answers.push(issued('t1'));
    await tokens.take(credential, 'operator');
    clock.advance(HOUR_MS - 5_000);
    expect(await textOf(tokens.take(credential, 'operator'))).toBeUndefined();
    expect(await textOf(tokens.take(credential, 'operator'))).toBeUndefined();
    expect(asked).toHaveLength(2);
    clock.advance(5_000);
    answers.push(issued('t2'));
    expect(await textOf(tokens.take(credential, 'operator'))).toBe('t2');
  });

  test('after a refusal the pause is longer', async () => {
    answers.push({ ok: false, isRefused: true });
    expect(await textOf(tokens.take(credential, 'operator'))).toBeUndefined();
    clock.advance(29_000);
    expect(await textOf(tokens.take(credential, 'operator'))).toBeUndefined();
    expect(asked).toHaveLength(1);
  });

  test('a token that the provider refused is not sent again', async () => {
    answers.push(issued('t1'), issued('t2'));
    await tokens.take(credential, 'operator');
    tokens.forget(credential);
    expect(await textOf(tokens.take(credential, 'operator'))).toBe('t2');
  });

  test('and the tokens of others stay in use', async () => {
    const own = new Secret(credential.unwrap());
    answers.push(issued('of the operator'), issued('of an account'));
    await tokens.take(credential, 'operator');
    await tokens.take(own, 'account');
    tokens.forget(own);
    expect([await textOf(tokens.take(credential, 'operator')), asked.length]).toEqual(['of the operator', 2]);
  });
});

describe('the token endpoint', () => {
  let server: Server;
  let url = '';
  let answer: { readonly status: number; readonly body: string } = { status: 200, body: '' };
  let received = '';

  beforeAll(async () => {
    server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (bytes: Buffer) => parts.push(bytes));
      request.on('end', () => {
        received = Buffer.concat(parts).toString();
        response.writeHead(answer.status, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' }).end(answer.body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    url = `http://127.0.0.1:${String(typeof address === 'object' && address !== null ? address.port : 0)}/token`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test.each([
    [200, '{"access_token":"t","expires_in":3599,"token_type":"Bearer"}', { ok: true, token: 't', lifeMs: 3_599_000 }],
    [200, '{"expires_in":3599}', { ok: false, isRefused: false }],
    [200, '<html>', { ok: false, isRefused: false }],
    [302, '', { ok: false, isRefused: false }],
    [400, '{"error":"invalid_grant"}', { ok: false, isRefused: true }],
    [401, '{}', { ok: false, isRefused: true }],
    [429, '{}', { ok: false, isRefused: false }],
    [500, '{}', { ok: false, isRefused: false }],
  ])('%d %s', async (status, body, expected) => {
    answer = { status, body };
    expect(await exchangeAssertion(url, 'a.b.c')).toEqual(expected);
    expect([...new URLSearchParams(received)]).toEqual([['grant_type', 'urn:ietf:params:oauth:grant-type:jwt-bearer'], ['assertion', 'a.b.c']]);
  });

  test('nobody there', async () => {
    expect(await exchangeAssertion('http://127.0.0.1:1/', 'a')).toEqual({ ok: false, isRefused: false });
  });
});
