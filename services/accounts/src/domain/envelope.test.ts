import { expect, test } from '@jest/globals';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { createEnvelope } from './envelope.js';

const ONE = new Secret('first key of the operator');
const TWO = new Secret('second key of the operator');
const PLAIN = 'sk-of-an-account-äö';
const OWNER = ['acct_1', 'openai'];

test('opens what it sealed, for the same owner only, and shows nothing of it', () => {
  const envelope = createEnvelope(ONE, [], randomBytes);
  const sealed = envelope.seal(new Secret(PLAIN), OWNER);
  expect(envelope.open(sealed, OWNER)).toBe(PLAIN);
  expect(envelope.open(sealed, ['acct_2', 'openai'])).toBeUndefined();
  expect(envelope.open(sealed, ['acct_1', 'groq'])).toBeUndefined();
  expect(Buffer.from(sealed.sealed).includes(PLAIN)).toBe(false);
});

test('the same secret sealed twice shares nothing', () => {
  const envelope = createEnvelope(ONE, [], randomBytes);
  const [a, b] = [envelope.seal(new Secret(PLAIN), OWNER), envelope.seal(new Secret(PLAIN), OWNER)];
  expect(a.sealed).not.toEqual(b.sealed);
  expect(a.wrappedKey).not.toEqual(b.wrappedKey);
});

test.each(['sealed', 'wrappedKey'] as const)('one changed bit of %s opens nothing', (part) => {
  const envelope = createEnvelope(ONE, [], randomBytes);
  const sealed = envelope.seal(new Secret(PLAIN), OWNER);
  for (let i = 0; i < sealed[part].length; i += 1) {
    const bytes = Buffer.from(sealed[part]);
    bytes[i] = (bytes[i] ?? 0) ^ 1;
    expect(envelope.open({ ...sealed, [part]: bytes }, OWNER)).toBeUndefined();
  }
  expect(envelope.open({ ...sealed, [part]: new Uint8Array(3) }, OWNER)).toBeUndefined();
});

test('a turned key reads what is under the old one, and re-wraps it so that the old one can go', () => {
  const before = createEnvelope(ONE, [], randomBytes).seal(new Secret(PLAIN), OWNER);
  const turning = createEnvelope(TWO, [ONE], randomBytes);
  expect(turning.open(before, OWNER)).toBe(PLAIN);
  const after = turning.rewrap(before, OWNER);
  if (after === undefined) throw new Error('not re-wrapped');
  const turned = createEnvelope(TWO, [], randomBytes);
  expect(turned.open(after, OWNER)).toBe(PLAIN);
  expect(turned.open(before, OWNER)).toBeUndefined();
  expect(turned.rewrap(before, OWNER)).toBeUndefined();
});
