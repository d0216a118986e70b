import { expect, test } from '@jest/globals';
import { Conversation } from '@signalbox/plugin-kit/conversation';
import { readOptions } from '@signalbox/plugin-kit/options';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createMemoryFacts } from '../../adapters/memory-facts.js';
import { factsOf } from './facts.js';
import { MANIFEST } from './manifest.js';
import { createMemory } from './plugin.js';

test.each([
  ['My name is Ada Lovelace.', ['name']],
  ['Hi! I live in Oslo. What is the weather like? I like strong coffee!', ['home', 'said:i like strong coffee']],
  ['Please remember that my name is Ada', ['name']],
  ['Remember that the launch is on Friday.', ['said:the launch is on friday']],
  ['My favourite colour is green.', ['favourite:colour']],
  ['What do I like?', []],
  ['Write a poem about the sea.', []],
  ['Remember that my password is hunter2.', []],
  ['Remember my card number 4111 1111 1111 1111', []],
  ['', []],
])('%p tells facts of %p', (text, topics) => {
  expect(factsOf(text).map(({ topic }) => topic)).toEqual(topics);
});

const RANDOM = 'a1B2c3D4e5F6g7H8i9J0k1L2';

test.each([
  'our AWS access key is AKIAIOSFODNN7EXAMPLE.', 'my groq key is gsk_abcdef123456', 'my groq key is gsk_…', 'the wifi key is hunter2hunter2.', `my GitHub token is github_pat_11A${RANDOM}.`, 'my GitHub token is on the wall.',
  'my key is AKIAIOSFODNN7EXAMPLE', `I use ${RANDOM}`, 'it begins with eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln', 'this: -----BEGIN PRIVATE KEY----- MIIB', 'our id is 550e8400-e29b-41d4-a716-446655440000',
  'my passwords are on paper', 'the pass word is tuna', 'my credentials are ada and tuna', 'my PIN is 1234', 'the pin is 4711.', 'my pin for the gym is 4711', 'the token: abc123def', 'token=abc123', 'my token is swordfish.', 'our secret is swordfish!',
  'the client secret is tuna', 'the key to the alarm is tuna42', 'the door code is 4711', 'bearer abc123def', 'I use the bearer token tuna', 'my seed phrase is tuna salmon cod', 'I use SSH keys of ed25519', 'my card number is short', 'tuna42 is my token', 'I use tuna42 as the key at home',
])('a sentence that speaks of a secret, or holds one, is not kept: %s', (sentence) => {
  expect(factsOf(`Remember that ${sentence}`)).toEqual([]);
  expect(factsOf(`I like tea, and ${sentence}`)).toEqual([]);
});

test.each([
  'I use a German keyboard', 'I play in the key of C', 'I like monkeys and turkey', 'I love Alicia Keys', 'I own a key ring', 'I like secret gardens', 'I like pin badges', 'I use token ring networks', 'I use org-mode', 'I use key-value stores', 'I use passwordless logins',
  'I work at Key West Brewing', 'Remember that the key point is brevity', 'Remember that the key to good bread is time', 'Remember that the key to success is 1% talent', 'Remember that the secret of my soup is salt', 'Remember that I am the bearer of bad news',
  'My favourite key is F sharp', 'My favourite key is Escape', 'My car is a Model3', 'My phone is +47 22 33 44 55', 'I live in Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch', 'I like https://example.com/articles/2024/how-to-bake-bread',
  'I have two keys to the garage', 'I like tokens of love', 'I work as a locksmith and make keys', 'I study tokenization',
])('a harmless one is, though it has such a word: %s', (sentence) => {
  expect(factsOf(`${sentence}.`)).toHaveLength(1);
});

test('what is looked up and kept has no NUL character, which no store takes', () => {
  const text = new Conversation([{ role: 'user', content: 'I live\0 in Oslo.' }]).lastUserText();
  expect(factsOf(text)).toEqual([{ topic: 'home', text: 'I live in Oslo.' }]);
});

test('a long text without end is bounded in time and facts', () => {
  expect(factsOf('I like tea number 1. '.repeat(50_000)).length).toBeLessThanOrEqual(20);
  expect(factsOf(Array.from({ length: 500 }, (_, index) => `I like tea ${index}.`).join(' ')).length).toBe(20);
  expect(factsOf('my '.repeat(100_000))).toEqual([]);
});

test('what is told in one conversation is there in the next one of the same user, and only there', async () => {
  const plugin = createMemory({ facts: createMemoryFacts(), clock: createFakeClock(), isZdr: false, keepMax: 10 });
  const runOf = (text: string, user: string) => ({
    requestId: 'r', accountId: 'a', user, options: { namespace: 'default', max_facts: 20, write: true }, policy: { zdr: false, denyTraining: false }, conversation: new Conversation([{ role: 'user', content: text }]), signal: new AbortController().signal,
  });
  const blockFor = async (user: string): Promise<string> => {
    const run = runOf('Where do I live?', user);
    (await plugin.prepare?.(run))?.apply(run.conversation);
    return JSON.stringify(run.conversation.changed() ?? []);
  };
  expect(await plugin.observe?.(runOf('I live in Oslo.', 'u'))).toEqual({ facts: 1 });
  expect(await blockFor('u')).toContain('I live in Oslo.');
  expect(await blockFor('v')).toBe('[]');
});

test('zero data retention is met only by a store that is declared so; refusing to train always is; writing can be turned off', () => {
  const needs = { facts: createMemoryFacts(), clock: createFakeClock(), keepMax: 10 };
  const zdr = { zdr: true, denyTraining: false };
  const options = { namespace: 'x', max_facts: 1, write: false };
  const allows = (isZdr: boolean, policy: typeof zdr): boolean => createMemory({ ...needs, isZdr }).allows(policy, options);
  expect([allows(false, zdr), allows(true, zdr), allows(false, { zdr: false, denyTraining: true })]).toEqual([false, true, true]);
  expect(createMemory({ ...needs, isZdr: false }).observes?.(options, zdr)).toBe(false);
});

test.each(['a\ud800', '\udc00', 'a\0b'])('a namespace that could not be told from another once it is stored is refused: %j', (namespace) => {
  expect(readOptions(MANIFEST.options, { namespace })).toMatchObject({ ok: false, problem: { name: 'namespace', kind: 'value' } });
  expect(readOptions(MANIFEST.options, { namespace: '\ud83d\ude00' })).toMatchObject({ ok: true });
});

test('an empty namespace is refused as an option: nothing could read or delete what it kept by its name', () => {
  expect(readOptions(MANIFEST.options, { namespace: '' })).toEqual({ ok: false, problem: { name: 'namespace', kind: 'value', expected: '1 to 64 characters' } });
  expect(readOptions(MANIFEST.options, { namespace: 'n' })).toMatchObject({ ok: true });
  expect(readOptions(MANIFEST.options, { namespace: null })).toMatchObject({ ok: true, values: { namespace: 'default' } });
});
