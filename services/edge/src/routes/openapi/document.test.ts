import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startDoor } from '../../testing/door.js';
import { decisionBody } from '../decisions/body.js';
import { openApiDocument, OPERATIONS } from './document.js';
import { Decision } from './schemas.js';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string; readonly responses: Readonly<Record<string, unknown>> }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}
const document = openApiDocument() as Document;
/** Paths of services that are absent in these tests. */
const ELSEWHERE = ['/api/plugins', '/api/memory', '/v1/chat/completions'];

describe('/openapi.json', () => {
  test('every operation has its own id, and every schema one definition', () => {
    const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(new Set(ids).size).toBe(OPERATIONS.length);
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'doc', components: document.components });
    for (const name of Object.keys(document.components.schemas)) expect(() => ajv.compile({ $ref: `doc#/components/schemas/${name}` })).not.toThrow();
  });
  test('a field that may be absent may be null, and every refusal of a body is documented', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'doc', components: document.components });
    const names = Object.keys((document.components.schemas['ChatCompletionRequest'] as { properties: object }).properties).filter((name) => name !== 'model' && name !== 'messages');
    const nothing = Object.fromEntries(names.map((name) => [name, null]));
    expect(ajv.validate({ $ref: 'doc#/components/schemas/ChatCompletionRequest' }, { model: 'auto', messages: [{ role: 'user', content: 'hi' }], ...nothing })).toBe(true);
    for (const [name, body] of [['ApiKeyRequest', { name: 'ci', expires_in: null, scopes: null, limits: null }], ['ApiKeyChange', { name: null, disabled: null, limits: null }], ['ApiKeyRotation', { grace_seconds: null }]] as const) expect([name, ajv.validate({ $ref: `doc#/components/schemas/${name}` }, body)]).toEqual([name, true]);
    for (const { method, path, body } of OPERATIONS) if (body !== undefined) expect(Object.keys(document.paths[path]?.[method]?.responses ?? {})).toEqual(expect.arrayContaining(['400', '413', '415']));
    for (const { method, path } of OPERATIONS) expect(Object.keys(document.paths[path]?.[method]?.responses ?? {})).toEqual(expect.arrayContaining(path.startsWith('/api/') ? ['400', '408', '417', '431'] : ['408', '417', '431']));
    for (const method of ['get', 'put', 'delete']) expect(Object.keys(document.paths['/api/providers/{provider}']?.[method]?.responses ?? {})).toEqual(expect.arrayContaining(['400', '404']));
  });
  test('every documented path exists: without a key it is 401, not 404 or 405', async () => {
    const door = await startDoor();
    try {
      for (const { method, path, isPublic = false } of OPERATIONS) {
        if (ELSEWHERE.includes(path)) continue;
        const answer = await fetch(`${door.url}${path.replaceAll(/\{\w+\}/g, 'x')}`, { method: method.toUpperCase() });
        expect([method, path, answer.status]).toEqual([method, path, isPublic ? 200 : 401]);
        await answer.text();
      }
    } finally {
      await door.stop();
    }
  });
  test('a decision matches its schema, with a prediction and without', () => {
    const candidate = { model: 'maker/m', endpoint: 'maker/m@a', quality: 0.7, effectiveCost: 1_200, latencyMsP75: null, successShare: 0.99, tier: 1, utility: null, propensity: 1 };
    const record = { snapshotId: 's', request: { model: 'auto', models: [], promptTokens: 12, mode: '', costWeight: 0.5 }, rejected: { context: 3 }, considered: [candidate], floor: null, reason: null, attempts: ['maker/m@a'], reference: null, sentence: 'It was the cheapest.' };
    for (const predicted of [{ artefactId: null, prediction: null }, { artefactId: 'a1', prediction: { cluster: 'c', difficulty: 0.2, familiarity: 0.9 } }]) {
      const body = decisionBody({ id: 'dec_1', requestId: 'chatcmpl-1', atMs: '1700000000000', recordJson: Buffer.from(JSON.stringify({ ...record, ...predicted })) });
      expect(Decision.safeParse(body)).toMatchObject({ success: true });
      expect(Object.keys(body).sort()).toEqual(Object.keys(Decision.shape).sort());
    }
  });
  test('is public, and may be cached for an hour', async () => {
    const door = await startDoor();
    const answer = await fetch(`${door.url}/openapi.json`);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'public, max-age=3600']);
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(document)));
    await door.stop();
  });
});
