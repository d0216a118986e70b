/** Finds Ollama at the configured address, or on its usual port if it answers there, and lists its models. */
import { isObject } from '@signalbox/wires/canonical';
import { request } from '@signalbox/runtime/http-client';
import type { Environment } from './wanted-workers.js';

export interface FoundOllama {
  readonly baseUrl: string;
  /** Names of its models; undefined = unknown. */
  readonly models: readonly string[] | undefined;
}

const USUAL_URL = 'http://127.0.0.1:11434';
/** A local answer takes a few milliseconds. The start continues meanwhile and takes longer than this. */
const ANSWER_MS = 500;

/** Model names as in the catalog. A list without digests is not from Ollama. */
function modelsOf(told: unknown): readonly string[] | undefined {
  const models = isObject(told) ? told['models'] : undefined;
  if (!Array.isArray(models)) return undefined;
  const held = (models as readonly unknown[]).filter(isObject).filter(({ digest }) => typeof digest === 'string' && digest !== '');
  if (held.length < models.length) return undefined;
  return held.flatMap(({ name }) => (typeof name === 'string' ? [name.replace(/:latest$/, '')] : []));
}

async function ask(baseUrl: string, answerMs: number): Promise<{ readonly models: readonly string[] | undefined } | undefined> {
  try {
    const { statusCode, body } = await request(`${baseUrl.replace(/\/+$/, '')}/api/tags`, { signal: AbortSignal.timeout(answerMs) });
    const text = await body.text();
    return statusCode === 200 ? { models: modelsOf(JSON.parse(text)) } : undefined;
  } catch {
    return undefined;
  }
}

/** Never rejects; settles within half a second. With OLLAMA=off it is not searched for. */
export async function findOllama(environment: Environment, { usualUrl = USUAL_URL, answerMs = ANSWER_MS } = {}): Promise<FoundOllama | undefined> {
  const given = environment['OLLAMA_BASE_URL'] ?? '';
  if (given === '' && environment['OLLAMA'] === 'off') return undefined;
  const answer = await ask(given || usualUrl, answerMs);
  if (given === '') return answer === undefined ? undefined : { baseUrl: usualUrl, models: answer.models };
  // A configured address counts even without an answer: the server may not be up yet, or use other names for its models.
  return { baseUrl: given, models: answer?.models?.length === 0 ? undefined : answer?.models };
}

/** Value of routing's OFFERED_MODELS; empty = unknown. */
export function offeredModels(found: FoundOllama | undefined): string {
  if (found?.models === undefined) return '';
  // A provider without a model means that it offers none.
  return found.models.length === 0 ? 'ollama/' : found.models.map((model) => `ollama/${model}`).join(',');
}
