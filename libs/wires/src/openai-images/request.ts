/** What is sent to an image API of OpenAI's shape: `POST …/images/generations`. */
import { isObject } from '../canonical.js';

export interface ImagesRequest {
  readonly providerModelId: string;
  readonly prompt: string;
  readonly count: number;
  /** Such as `1024x1024`. */
  readonly size: string;
  /** Further fields of the provider's, JSON object text; empty = none. */
  readonly parameters: Uint8Array;
}

/** The body. Throws TypeError when `parameters` are no JSON object: they are the operator's, never a client's. */
export function composeImagesBody({ providerModelId, prompt, count, size, parameters }: ImagesRequest): Buffer {
  const further: unknown = parameters.length === 0 ? {} : JSON.parse(Buffer.from(parameters).toString('utf8'));
  if (!isObject(further)) throw new TypeError('Parameters of an image model are a JSON object.');
  return Buffer.from(JSON.stringify({ ...further, model: providerModelId, prompt, n: count, size }));
}
