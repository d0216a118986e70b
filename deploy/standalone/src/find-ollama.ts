/** Ollama: where the operator says it is, or on its usual port when it answers there; and what it has to serve. */
import { isObject } from '@signalbox/wires/canonical';
import { request } from '@signalbox/runtime/http-client';
import type { Environment } from './wanted-workers.js';

export interface FoundOllama {
  readonly baseUrl: string;
  /** Names of the models it holds; undefined = it did not say. */
  readonly models: readonly string[] | undefined;
}

const USUAL_URL = 'http://127.0.0.1:11434';
/** On this machine an answer takes a few milliseconds; the start goes on meanwhile, and takes longer than this. */
const ANSWER_MS = 500;

/** Models as the catalog names them. A list without digests is not Ollama's own. */
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

/** Never rejects; settles within half a second. OLLAMA=off: it is not looked for. */
export async function findOllama(environment: Environment, { usualUrl = USUAL_URL, answerMs = ANSWER_MS } = {}): Promise<FoundOllama | undefined> {
  const given = environment['OLLAMA_BASE_URL'] ?? '';
  if (given === '' && environment['OLLAMA'] === 'off') return undefined;
  const answer = await ask(given || usualUrl, answerMs);
  if (given === '') return answer === undefined ? undefined : { baseUrl: usualUrl, models: answer.models };
  // The operator's word counts before the server's: it may not be up yet, or hold its models under other names.
  return { baseUrl: given, models: answer?.models?.length === 0 ? undefined : answer?.models };
}

/** The models for routing's OFFERED_MODELS; empty = it did not say. */
export function offeredModels(found: FoundOllama | undefined): string {
  if (found?.models === undefined) return '';
  // A provider without a model is one that offers none.
  return found.models.length === 0 ? 'ollama/' : found.models.map((model) => `ollama/${model}`).join(',');
}
