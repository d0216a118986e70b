/** One candidate, of a whole answer or of one event of a stream: both have the same shape. */
import { isObject, type FinishReason, type JsonObject } from '../canonical.js';
import type { CallParts } from '../choice-parts.js';
import { mapFinishReason } from './finish-reason.js';

export interface Candidate {
  readonly index: number;
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly CallParts[];
  readonly images: readonly object[];
  /** Signature of a part that is no call. */
  readonly extra: JsonObject | undefined;
  readonly logprobs: object | undefined;
  /** undefined while it goes on. */
  readonly reason: FinishReason | undefined;
}

function extraOf(part: JsonObject): JsonObject | undefined {
  const signature = part['thoughtSignature'];
  return typeof signature === 'string' && signature !== '' ? { google: { thought_signature: signature } } : undefined;
}

function callOf(call: JsonObject, part: JsonObject): CallParts {
  return {
    id: typeof call['id'] === 'string' ? call['id'] : '',
    name: typeof call['name'] === 'string' ? call['name'] : '',
    arguments: JSON.stringify(isObject(call['args']) ? call['args'] : {}),
    extra: extraOf(part),
  };
}

function tokenOf(raw: unknown): { readonly token: string; readonly logprob: number; readonly bytes: readonly number[] } {
  const token = isObject(raw) && typeof raw['token'] === 'string' ? raw['token'] : '';
  const logprob = isObject(raw) && typeof raw['logProbability'] === 'number' ? raw['logProbability'] : 0;
  return { token, logprob, bytes: [...Buffer.from(token)] };
}

function logprobsOf(raw: unknown): object | undefined {
  if (!isObject(raw) || !Array.isArray(raw['chosenCandidates'])) return undefined;
  const top = Array.isArray(raw['topCandidates']) ? (raw['topCandidates'] as readonly unknown[]) : [];
  return {
    content: (raw['chosenCandidates'] as readonly unknown[]).map((chosen, step) => {
      const rivals = top[step];
      const list = isObject(rivals) && Array.isArray(rivals['candidates']) ? (rivals['candidates'] as readonly unknown[]) : [];
      return { ...tokenOf(chosen), top_logprobs: list.map(tokenOf) };
    }),
    refusal: null,
  };
}

/** Never throws. `position` stands in for an index that was not told. */
export function readCandidate(raw: JsonObject, position: number): Candidate {
  const content = isObject(raw['content']) ? raw['content'] : {};
  const parts = Array.isArray(content['parts']) ? (content['parts'] as readonly unknown[]).filter(isObject) : [];
  let text = '';
  let reasoning = '';
  let extra: JsonObject | undefined;
  const calls: CallParts[] = [];
  const images: object[] = [];
  for (const part of parts) {
    const call = part['functionCall'];
    if (isObject(call)) {
      const read = callOf(call, part);
      // Nobody can answer a call without a name.
      if (read.name !== '') calls.push(read);
      continue;
    }
    extra = extraOf(part) ?? extra;
    const inline = part['inlineData'];
    if (typeof part['text'] === 'string') {
      if (part['thought'] === true) reasoning += part['text'];
      else text += part['text'];
    } else if (isObject(inline) && typeof inline['data'] === 'string' && typeof inline['mimeType'] === 'string' && inline['mimeType'].startsWith('image/')) {
      images.push({ type: 'image_url', image_url: { url: `data:${inline['mimeType']};base64,${inline['data']}` } });
    }
  }
  return {
    index: typeof raw['index'] === 'number' ? raw['index'] : position,
    content: text,
    reasoning,
    calls,
    images,
    extra,
    logprobs: logprobsOf(raw['logprobsResult']),
    reason: mapFinishReason(raw['finishReason']),
  };
}

export function candidatesOf(response: JsonObject): readonly Candidate[] {
  return Array.isArray(response['candidates']) ? (response['candidates'] as readonly unknown[]).filter(isObject).map(readCandidate) : [];
}

/** True when the prompt itself was refused: there are no candidates then. */
export function isPromptBlocked(response: JsonObject): boolean {
  const feedback = response['promptFeedback'];
  return isObject(feedback) && typeof feedback['blockReason'] === 'string' && feedback['blockReason'] !== 'BLOCK_REASON_UNSPECIFIED';
}
