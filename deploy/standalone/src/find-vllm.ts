/** Lists the models of the operator's vLLM server, at the start. */
import { isObject } from '@signalbox/wires/canonical';
import { request } from '@signalbox/runtime/http-client';
import type { Environment } from './wanted-workers.js';

const ANSWER_MS = 500;

function modelsOf(told: unknown): readonly string[] | undefined {
  const models = isObject(told) ? told['data'] : undefined;
  return Array.isArray(models) ? (models as readonly unknown[]).flatMap((model) => (isObject(model) && typeof model['id'] === 'string' ? [model['id']] : [])) : undefined;
}

/** Models of the server at VLLM_BASE_URL; undefined = there is no server, or it does not answer (yet). Never rejects; settles within half a second. */
export async function findVllmModels(environment: Environment, { answerMs = ANSWER_MS } = {}): Promise<readonly string[] | undefined> {
  const baseUrl = environment['VLLM_BASE_URL'] ?? '';
  if (baseUrl === '') return undefined;
  const key = environment['VLLM_API_KEY']?.split(',')[0]?.trim() ?? '';
  try {
    const { statusCode, body } = await request(`${baseUrl.replace(/\/+$/, '')}/models`, { signal: AbortSignal.timeout(answerMs), headers: key === '' ? {} : { authorization: `Bearer ${key}` } });
    const text = await body.text();
    const models = statusCode === 200 ? modelsOf(JSON.parse(text)) : undefined;
    // A server that is still starting lists no models.
    return models?.length === 0 ? undefined : models;
  } catch {
    return undefined;
  }
}

/** Value of routing's OFFERED_MODELS; empty = unknown. */
export function offeredByVllm(models: readonly string[] | undefined): string {
  return models === undefined ? '' : models.map((model) => `vllm/${model}`).join(',');
}
