import { expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { createVertexAdapter } from './vertex-adapter.js';

test('only the token of the refused credential is dropped', () => {
  const forgotten: Secret[] = [];
  const adapter = createVertexAdapter({ baseUrl: 'https://vertex.example/v1/projects/p/locations/l', media: {} as never, tokens: { take: (credential) => credential, forget: (credential) => void forgotten.push(credential) } });
  expect(adapter.classifyRefusal({ status: 401, headers: {}, body: Buffer.from('{}'), nowMs: 0 })).toMatchObject({ class: 'CREDENTIAL' });
  expect(forgotten).toEqual([]);
  const refused = new Secret('{"type":"service_account"}');
  adapter.onCredentialRefused?.(refused);
  expect(forgotten).toEqual([refused]);
});
