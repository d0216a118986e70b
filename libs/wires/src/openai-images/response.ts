/** What an image API of OpenAI's shape answers: files in base64, and for some models the prompt's tokens. */
import { failure, isObject, type Failure } from '../canonical.js';
import { tokenCount } from '../token-count.js';

export type ImagesAnswer =
  | {
      readonly ok: true;
      /** At least one; files of any format. */
      readonly images: readonly Buffer[];
      /** Undefined when the provider told none. */
      readonly promptTokens: number | undefined;
    }
  | { readonly ok: false; readonly failure: Failure };

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** EMPTY without an image, GARBAGE for what is no answer. Addresses in the place of files are not followed. */
export function readImagesAnswer(body: Uint8Array): ImagesAnswer {
  let answer: unknown;
  try {
    answer = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return { ok: false, failure: failure('GARBAGE', true, 200) };
  }
  if (!isObject(answer) || !Array.isArray(answer['data'])) return { ok: false, failure: failure('GARBAGE', true, 200) };
  const images: Buffer[] = [];
  for (const entry of answer['data'] as readonly unknown[]) {
    const text = isObject(entry) ? entry['b64_json'] : undefined;
    if (typeof text !== 'string' || text === '') continue;
    if (!BASE64.test(text)) return { ok: false, failure: failure('GARBAGE', true, 200) };
    images.push(Buffer.from(text, 'base64'));
  }
  if (images.length === 0) return { ok: false, failure: failure('EMPTY', true, 200) };
  const usage: unknown = answer['usage'];
  return { ok: true, images, promptTokens: isObject(usage) ? tokenCount(usage['input_tokens']) : undefined };
}
