/** One candidate, of a whole answer or of one event of a stream: both have the same shape. */
import { CALLS_MAX, createArgumentsCount, isObject, type CountArguments, type FinishReason, type JsonObject, type Usage } from '../canonical.js';
import { argumentsOf } from '../call-arguments.js';
import type { CallParts } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';
import { isModelsFault, mapFinishReason } from './finish-reason.js';

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
  /** The reason is an error, and the model's own. */
  readonly isModelsFault: boolean;
}

function extraOf(part: JsonObject): JsonObject | undefined {
  const signature = part['thoughtSignature'];
  return typeof signature === 'string' && signature !== '' ? { google: { thought_signature: signature } } : undefined;
}

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const SPACE = 0x20;

/** One past the closing quote of the string whose opening quote is at `start`; the text's length if there is none. */
function stringEnd(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let first = quote;
    while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return json.length;
}

/** White space between tokens is Google's, not the model's. No pattern finds the strings: it would note each of their escapes in order to step back, which takes a second for a million. */
export function withoutSpace(json: string): string {
  let text = '';
  let from = 0;
  let at = 0;
  while (at < json.length) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(json, at);
    else if (code > SPACE) at += 1;
    else {
      text += json.slice(from, at);
      while (json.charCodeAt(at) <= SPACE) at += 1;
      from = at;
    }
  }
  return text + json.slice(from);
}

/** `argumentsText` is the JSON text of `args`: numbers keep every digit. */
function callOf(call: JsonObject, part: JsonObject, argumentsText: () => string | undefined): CallParts {
  return {
    id: typeof call['id'] === 'string' ? call['id'] : '',
    name: typeof call['name'] === 'string' ? call['name'] : '',
    arguments: argumentsOf(call['args'], () => withoutSpace(argumentsText() ?? '{}')),
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

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** `textOf` gives the candidate's JSON text. */
function readCandidate(raw: JsonObject, position: number, textOf: () => string, names: ReadonlyMap<string, string>, countArguments: CountArguments): Candidate {
  const content = isObject(raw['content']) ? raw['content'] : {};
  let said = '';
  let reasoning = '';
  let extra: JsonObject | undefined;
  const calls: CallParts[] = [];
  const images: object[] = [];
  let sources: readonly string[] | undefined;
  listOf(content['parts']).forEach((part, at) => {
    if (!isObject(part)) return;
    const call = part['functionCall'];
    if (isObject(call)) {
      // One too many is enough to know that this is no answer.
      if (calls.length > CALLS_MAX) return;
      sources ??= elementsOf(textOf(), ['content', 'parts']);
      const source = sources[at] ?? '{}';
      countArguments(source.length);
      const read = callOf(call, part, () => sourceOf(source, ['functionCall', 'args']));
      calls.push({ ...read, name: names.get(read.name) ?? read.name });
      return;
    }
    extra = extraOf(part) ?? extra;
    const inline = part['inlineData'];
    if (typeof part['text'] === 'string') {
      if (part['thought'] === true) reasoning += part['text'];
      else said += part['text'];
    } else if (isObject(inline) && typeof inline['data'] === 'string' && typeof inline['mimeType'] === 'string' && inline['mimeType'].startsWith('image/')) {
      images.push({ type: 'image_url', image_url: { url: `data:${inline['mimeType']};base64,${inline['data']}` } });
    }
  });
  return {
    index: typeof raw['index'] === 'number' ? raw['index'] : position,
    content: said,
    reasoning,
    calls,
    images,
    extra,
    logprobs: logprobsOf(raw['logprobsResult']),
    reason: mapFinishReason(raw['finishReason']),
    isModelsFault: isModelsFault(raw['finishReason']),
  };
}

/** Candidates of an answer or event, read from `text`; one without an index has its place. `names` of functions are told instead of those that were sent. Throws Garbage. */
export function candidatesOf(response: JsonObject, text: string, names: ReadonlyMap<string, string>): readonly Candidate[] {
  let sources: readonly string[] | undefined;
  const countArguments = createArgumentsCount();
  const textOf = (position: number): string => (sources ??= elementsOf(text, ['candidates']))[position] ?? '{}';
  return listOf(response['candidates']).flatMap((raw, position) => (isObject(raw) ? [readCandidate(raw, position, () => textOf(position), names, countArguments)] : []));
}

/** Nothing said, by a model that had come to its end: Google's models do so at times, and say more when they are asked again. Where tokens are counted it was said and left out, such as a stop sequence. */
export function isNothing(isSaid: boolean, reason: FinishReason | '' | undefined, usage: Usage | undefined): boolean {
  return !isSaid && reason === 'stop' && (usage?.tokens.outputText ?? 0) === 0;
}

/** True when the prompt itself was refused: there are no candidates then. */
export function isPromptBlocked(response: JsonObject): boolean {
  const feedback = response['promptFeedback'];
  return isObject(feedback) && typeof feedback['blockReason'] === 'string' && feedback['blockReason'] !== 'BLOCK_REASON_UNSPECIFIED';
}
