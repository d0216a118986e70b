import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ConfigError } from '@signalbox/runtime/config';
import { isGoogleProviderWanted, loadWorkerGoogleConfig } from './config.js';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048, privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } });
const directory = mkdtempSync(join(tmpdir(), 'worker-google-'));
const file = (name: string, text: string): string => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};
const KEY_FILE = file('key.json', JSON.stringify({ type: 'service_account', client_email: 'svc@p1.example', project_id: 'from-file', private_key: privateKey }));

const studio = { PROVIDER: 'google-ai-studio' };
const vertex = { PROVIDER: 'google-vertex' };

test.each([
  ['the Gemini API', { ...studio, GEMINI_API_KEY: 'k1', GOOGLE_API_KEY: 'k2' }, 'https://generativelanguage.googleapis.com/v1beta', 'k1'],
  ['its other variable', { ...studio, GOOGLE_API_KEY: 'k2' }, 'https://generativelanguage.googleapis.com/v1beta', 'k2'],
  ['its address', { ...studio, GEMINI_API_KEY: 'k1', GEMINI_BASE_URL: 'http://127.0.0.1:1/v1beta' }, 'http://127.0.0.1:1/v1beta', 'k1'],
  ['Vertex with a token', { ...vertex, VERTEX_ACCESS_TOKEN: 'ya29', GOOGLE_VERTEX_PROJECT: 'p1' }, 'https://aiplatform.googleapis.com/v1/projects/p1/locations/global', 'ya29'],
  ['Vertex in a region', { ...vertex, VERTEX_ACCESS_TOKEN: 'ya29', GOOGLE_VERTEX_PROJECT: 'p1', GOOGLE_VERTEX_LOCATION: 'europe-west4' }, 'https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4', 'ya29'],
  ['Vertex at an address', { ...vertex, VERTEX_ACCESS_TOKEN: 'ya29', VERTEX_BASE_URL: 'http://127.0.0.1:1/v1/projects/x/locations/y' }, 'http://127.0.0.1:1/v1/projects/x/locations/y', 'ya29'],
])('%s', (_what, environment, baseUrl, credential) => {
  const config = loadWorkerGoogleConfig(environment);
  expect(config.BASE_URL).toBe(baseUrl);
  expect(config.API_KEYS.map((key) => key.unwrap())).toEqual([credential]);
});

test('Vertex with a key file: its project, its text as the credential', () => {
  const config = loadWorkerGoogleConfig({ ...vertex, GOOGLE_APPLICATION_CREDENTIALS: KEY_FILE });
  expect(config.BASE_URL).toContain('/projects/from-file/');
  expect(config.API_KEYS[0]?.unwrap()).toContain('svc@p1.example');
});

test.each([
  ['no provider', {}, 'PROVIDER'],
  ['another provider', { PROVIDER: 'openai' }, 'PROVIDER'],
  ['Vertex without a project', { ...vertex, VERTEX_ACCESS_TOKEN: 'ya29' }, 'GOOGLE_VERTEX_PROJECT'],
  ['a location that is none', { ...vertex, VERTEX_ACCESS_TOKEN: 'ya29', GOOGLE_VERTEX_PROJECT: 'p', GOOGLE_VERTEX_LOCATION: 'evil.example/' }, 'GOOGLE_VERTEX_LOCATION'],
  ['a key file that is not there', { ...vertex, GOOGLE_APPLICATION_CREDENTIALS: join(directory, 'none') }, 'GOOGLE_APPLICATION_CREDENTIALS'],
  ['a key file of another kind', { ...vertex, GOOGLE_APPLICATION_CREDENTIALS: file('user.json', '{"type":"authorized_user"}') }, 'GOOGLE_APPLICATION_CREDENTIALS'],
])('%s is named', (_what, environment, variable) => {
  expect(() => loadWorkerGoogleConfig(environment)).toThrow(ConfigError);
  expect(() => loadWorkerGoogleConfig(environment)).toThrow(variable);
});

describe('is wanted', () => {
  test.each([
    ['google-ai-studio', { GEMINI_API_KEY: 'k' }, true],
    ['google-ai-studio', { VERTEX_ACCESS_TOKEN: 't' }, false],
    ['google-vertex', { VERTEX_ACCESS_TOKEN: 't' }, false],
    ['google-vertex', { VERTEX_ACCESS_TOKEN: 't', GOOGLE_VERTEX_PROJECT: 'p' }, true],
    ['google-vertex', { VERTEX_ACCESS_TOKEN: 't', VERTEX_BASE_URL: 'http://x' }, true],
    ['google-vertex', { GOOGLE_APPLICATION_CREDENTIALS: '/k', GOOGLE_VERTEX_PROJECT: 'p' }, true],
    ['google-vertex', { GOOGLE_APPLICATION_CREDENTIALS: '/k', VERTEX_BASE_URL: 'http://x' }, true],
    ['google-vertex', { GOOGLE_APPLICATION_CREDENTIALS: '/k' }, false],
    ['google-vertex', {}, false],
  ] as const)('%s by %j: %s', (provider, environment, isWanted) => {
    expect(isGoogleProviderWanted(provider, environment)).toBe(isWanted);
  });
});
