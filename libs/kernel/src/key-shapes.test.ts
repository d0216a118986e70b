import { expect, test } from '@jest/globals';
import { holdsKey, withoutKeys } from './key-shapes.js';

const RANDOM = 'a1B2c3D4e5F6g7H8i9J0k1L2';

test.each([
  'AKIAIOSFODNN7EXAMPLE', 'ASIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'AIzaSyA1234567890abcd', 'sk-ant-api03-abcdefgh', 'sk-proj-12345678', `sbx_live_${RANDOM}`, 'gsk_abcdef123456', `github_pat_11A${RANDOM}`,
  'ghp_abcdefgh1234', `hf_${RANDOM}`, `glpat-${RANDOM}`, 'xoxb-12345678-abcd', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', RANDOM, '0123456789abcdef01234567', '550e8400-e29b-41d4-a716-446655440000', '-----BEGIN RSA PRIVATE KEY----- MIIB',
])('%s is a credential by its form, and goes', (key) => {
  expect(holdsKey(`It is ${key}.`)).toBe(true);
  expect(withoutKeys(`It is ${key}`, '[x]')).toBe('It is [x]');
});

test.each([
  'I use org-mode and key-value stores.', 'sk-learn', 'npm_config_registry', 'Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch', '123456789012345678901234567890', '+47 22 33 44 55', '2026-11-28T06:00:00Z',
  'https://example.com/articles/2024/How-to-bake-bread-at-home', '/Users/Ada/Documents/2024/Recipes/Bread', 'Ada_Lovelace@analytical-engine-1843.example.org', 'the-quick-brown-fox-jumps-over-13-lazy-dogs', '',
])('%j holds none', (text) => {
  expect(holdsKey(text)).toBe(false);
  expect(withoutKeys(text, '[x]')).toBe(text);
});

test('a long text takes no longer than it is long', () => {
  for (const text of ['a'.repeat(200_000), 'a1'.repeat(100_000), 'A-'.repeat(100_000), 'eyJ'.repeat(60_000), '-----BEGIN '.repeat(20_000)]) expect(typeof holdsKey(text)).toBe('boolean');
});
