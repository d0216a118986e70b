/** What is wrong with a body that is no JSON of ours, in words. Of what it holds they tell no more than a field's name. */
import { JSON_DEPTH_MAX, JSON_NODES_MAX, type InvalidJson, type JsonScanReason } from './json-scan.js';

const SENTENCES: Readonly<Record<JsonScanReason, string>> = {
  syntax: 'The body is not valid JSON',
  'not-object': 'The body must be a JSON object',
  'too-deep': `The body is nested more than ${JSON_DEPTH_MAX} levels deep`,
  'too-many-nodes': `The body holds more than ${JSON_NODES_MAX.toLocaleString('en-US')} values`,
  'duplicate-key': 'The body holds the same key twice in one object',
  'forbidden-key': 'The body holds a key that is not allowed',
  'bad-utf8': 'The body is not valid UTF-8',
};

const ADVICE: Partial<Readonly<Record<JsonScanReason, string>>> = {
  'too-deep': ' In a JSON schema give the inner parts a name in $defs, and $ref them; send other deep values as text.',
  'too-many-nodes': ' Send long lists as text.',
};

/** One or two sentences of what was read, without success, out of a body of so many bytes. */
export function jsonProblem({ reason, atByte, key }: InvalidJson, bytes: number): string {
  if (bytes === 0) return 'The body is empty: it must be a JSON object.';
  if (reason === 'syntax' && atByte === bytes) return `${SENTENCES.syntax}: it ends too soon, after ${bytes} byte${bytes === 1 ? '' : 's'}.`;
  const name = key === undefined ? '' : `: '${key}'`;
  const place = atByte === undefined ? '' : ` See byte ${atByte} (the first is 0).`;
  return `${SENTENCES[reason]}${name}.${ADVICE[reason] ?? ''}${place}`;
}
