import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import type { Fetched, FetchFile } from '@signalbox/net-guard/fetcher';
import { refusal } from '@signalbox/net-guard/refusal';
import type { FetchedMedia, MediaReference } from '@signalbox/wires/media';
import { badInput } from '@signalbox/wires/unsendable';
import { createMediaLoader, type Draft } from './media-loader.js';

const TYPES = { image: ['image/png'], audio: [], file: ['application/pdf'] };
const reference = (at: number): MediaReference => ({ url: `https://x.test/${String(at)}`, kind: 'image', param: `messages.[${String(at)}]` });
const draft = (count: number): Draft => ({ media: Array.from({ length: count }, (_, at) => reference(at)), body: (fetched: FetchedMedia) => Buffer.from(JSON.stringify([...fetched])) });
const found: Fetched = { ok: true, bytes: Buffer.from('png'), mediaType: 'image/png' };
const of = (accountId: string) => ({ accountId, fields: [] });
const roomy = { onLeave: () => undefined, grow: () => undefined };
const never: FetchFile = () => Promise.reject(new Error('fetched'));

describe('media loader', () => {
  test('others have their turn between reading and writing a large request', async () => {
    const steps: string[] = [];
    const large = { accountId: 'a', fields: [{ name: 'messages', value: Buffer.alloc(200_000) }] };
    const composing = createMediaLoader(never).compose(large, () => (steps.push('read'), { media: [], body: () => (steps.push('written'), Buffer.from('body')) }), TYPES, String);
    steps.push('others');
    await Promise.resolve();
    steps.push('microtasks');
    expect(await composing).toBe('body');
    expect(steps).toEqual(['read', 'others', 'microtasks', 'written']);
  });

  test('a request without URLs is composed at once', () => {
    expect(String(createMediaLoader(never).compose(of('a'), () => draft(0), TYPES, String))).toBe('[]');
  });

  test('files are fetched in the types that the wire takes, and passed on in base64', async () => {
    const asked: unknown[] = [];
    const loader = createMediaLoader((url, limits) => {
      asked.push([url, limits.mediaTypes]);
      return Promise.resolve(found);
    });
    expect(JSON.parse(String(await loader.compose(of('a'), () => draft(2), TYPES, String)))).toEqual([0, 1].map((at) => [`https://x.test/${String(at)}`, { mediaType: 'image/png', base64: 'cG5n' }]));
    expect(asked).toEqual([0, 1].map((at) => [`https://x.test/${String(at)}`, ['image/png']]));
  });

  test('the failure for a refused URL names the part of the message, and nothing of our network', async () => {
    const loader = createMediaLoader((url) => Promise.resolve(url.endsWith('1') ? { ok: false, refusal: refusal('unresolved') } : found));
    expect(await loader.compose(of('a'), () => draft(2), TYPES, String)).toMatchObject({ class: 'BAD_REQUEST', status: 0, publicParam: 'messages.[1]', publicMessage: 'The URL does not lead to a public address.', retryable: false });
  });

  test('a host name that cannot be looked up is our fault, and another replica may be tried', async () => {
    const loader = createMediaLoader((url) => Promise.resolve(url.endsWith('1') ? { ok: false, refusal: refusal('look-up-failed') } : found));
    await expect(loader.compose(of('a'), () => draft(2), TYPES, String)).rejects.toMatchObject({ name: 'Fault', code: 'overloaded' });
  });

  test('too many URLs are refused before any is fetched', async () => {
    expect(await createMediaLoader(never).compose(of('a'), () => draft(17), TYPES, String)).toMatchObject({ class: 'BAD_REQUEST', publicParam: 'messages.[16]' });
  });

  test('a request that the wire cannot carry is returned as a failure, and a bug is thrown', () => {
    const loader = createMediaLoader(never);
    const unsendable = (): never => {
      throw badInput('messages.[0]', 'No.');
    };
    const broken = (): never => {
      throw new Error('bug');
    };
    expect(loader.compose(of('a'), unsendable, TYPES, String)).toMatchObject({ class: 'BAD_REQUEST', publicMessage: 'No.' });
    expect(() => loader.compose(of('a'), broken, TYPES, String)).toThrow('bug');
  });

  test('the number of concurrent fetches of all requests together is limited', async () => {
    const answers: ((file: Fetched) => void)[] = [];
    const loader = createMediaLoader(() => new Promise((resolve) => answers.push(resolve)));
    const composing = ['a', 'b'].map((accountId) => loader.compose(of(accountId), () => draft(6), TYPES, String));
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    await settled();
    expect(answers).toHaveLength(8);
    while (answers.length > 0) {
      answers.shift()?.(found);
      await settled();
    }
    expect((await Promise.all(composing)).map((body) => (JSON.parse(String(body)) as unknown[]).length)).toEqual([6, 6]);
  });

  test('a waiting fetch whose caller has left is dropped, and holds no memory', async () => {
    const answers: ((file: Fetched) => void)[] = [];
    const loader = createMediaLoader(() => new Promise((resolve) => answers.push(resolve)));
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    let leave: () => void = () => undefined;
    const gone = loader.compose(of('a'), () => draft(16), TYPES, String, { ...roomy, onLeave: (listener) => (leave = listener) });
    const staying = loader.compose(of('a'), () => draft(1), TYPES, String);
    await settled();
    leave();
    expect(await gone).toMatchObject({ class: 'DISCONNECTED', retryable: false });
    for (let at = 0; at < 7; at += 1) {
      answers[at]?.(found);
      await settled();
    }
    expect(String(await staying)).toContain('cG5n');
    expect(answers).toHaveLength(7);
    // A caller that left before its fetch was queued.
    expect(await loader.compose(of('a'), () => draft(1), TYPES, String, { ...roomy, onLeave: (listener) => listener() })).toMatchObject({ class: 'DISCONNECTED' });
    expect(answers).toHaveLength(7);
  });

  const ofMib = (mib: number): Fetched => ({ ok: true, bytes: Buffer.alloc(mib * 1_048_576), mediaType: 'image/png' });

  test('the files of one request have a limit together, and what still waits behind it is not fetched', async () => {
    const asked: string[] = [];
    const loader = createMediaLoader((url) => {
      asked.push(url);
      return Promise.resolve(ofMib(8));
    });
    expect(await loader.compose(of('a'), () => draft(3), TYPES, (body) => body.length)).toBeGreaterThan(33_554_432);
    expect(await loader.compose(of('a'), () => draft(16), TYPES, String)).toMatchObject({ class: 'BAD_REQUEST', publicParam: 'messages.[3]', publicMessage: 'The files that one request links to may have at most 24 MiB together.' });
    expect(asked.length).toBeLessThan(3 + 16);
  });

  test('room is reserved for each file as it arrives; without room the request is overloaded, not at fault, and nothing further is fetched', async () => {
    const reserved: number[] = [];
    const asked: string[] = [];
    const loader = createMediaLoader((url) => {
      asked.push(url);
      return Promise.resolve(ofMib(3));
    });
    const grow = (bytes: number): void => {
      if (reserved.length === 2) throw new Fault('overloaded', 'no room');
      reserved.push(bytes);
    };
    await loader.compose(of('a'), () => draft(2), TYPES, String, { ...roomy, grow });
    expect(reserved).toEqual([4_194_304, 4_194_304]);
    await expect(Promise.resolve(loader.compose(of('a'), () => draft(16), TYPES, String, { ...roomy, grow }))).rejects.toMatchObject({ code: 'overloaded' });
    expect(asked.length).toBeLessThan(2 + 16);
  });

  test('slow URLs of one account do not block other accounts', async () => {
    const answers: ((file: Fetched) => void)[] = [];
    const asked: string[] = [];
    const loader = createMediaLoader((url) => new Promise((resolve) => {
      asked.push(url);
      answers.push(resolve);
    }));
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const slow = Array.from({ length: 4 }, () => loader.compose(of('slow'), () => draft(16), TYPES, String));
    const other = loader.compose(of('other'), () => ({ ...draft(1), media: [{ ...reference(0), url: 'https://other.test/' }] }), TYPES, String);
    await settled();
    expect([answers.length, asked.at(-1)]).toEqual([7, 'https://other.test/']);
    answers.at(-1)?.(found);
    expect(String(await other)).toContain('cG5n');
    // When every place is taken, the account with the fewest is next.
    const others = ['b', 'c', 'd'].map((accountId) => loader.compose(of(accountId), () => ({ ...draft(1), media: [{ ...reference(0), url: `https://${accountId}.test/` }] }), TYPES, String));
    await settled();
    answers[0]?.(found);
    await settled();
    expect(asked.slice(-3)).toEqual(['https://b.test/', 'https://c.test/', 'https://d.test/']);
    for (let at = 1; at < 68; at += 1) {
      await settled();
      answers[at]?.(found);
    }
    expect((await Promise.all([...slow, ...others])).every((body) => String(body).includes('cG5n'))).toBe(true);
    expect(answers).toHaveLength(4 * 16 + 4);
  });
});
