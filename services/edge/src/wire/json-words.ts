/** Error messages for bodies that cannot be read. They repeat nothing of a body except a field's name. */
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

/** The message for a body of `bytes` bytes, one or two sentences. */
export function jsonProblem({ reason, atByte, key }: InvalidJson, bytes: number): string {
  if (bytes === 0) return 'The body is empty: it must be a JSON object.';
  if (reason === 'syntax' && atByte === bytes) return `${SENTENCES.syntax}: it ends too soon, after ${bytes} byte${bytes === 1 ? '' : 's'}.`;
  const name = key === undefined ? '' : `: '${key}'`;
  const place = atByte === undefined ? '' : ` See byte ${atByte} (the first is 0).`;
  return `${SENTENCES[reason]}${name}.${ADVICE[reason] ?? ''}${place}`;
}
