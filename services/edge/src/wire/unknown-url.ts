/** What is said of an address where there is nothing: clients that were made for another service ask for other interfaces first. */
import { API_ERRORS } from './errors.js';

/** By the first part of the path behind `/v1`, as OpenAI's and Anthropic's clients and routers before us have them. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ['responses', 'The Responses interface is not offered: set the client to chat completions.'],
  ['messages', "Anthropic's Messages interface is not offered: its models answer at chat completions."],
  ['completions', 'Completions of a plain prompt are not offered: send it as a message to chat completions.'],
  ['embeddings', 'Embeddings are not offered.'],
  ['images', 'Images are not offered at an address of their own.'],
  ['audio', 'Speech and transcription are not offered.'],
  ['moderations', 'Moderations are not offered.'],
  ['rerank', 'Reranking is not offered.'],
  ['realtime', 'The Realtime interface is not offered.'],
  ['files', 'Files are not kept here: send their data in the message.'],
  ['batches', 'Batches are not offered.'],
  ['assistants', 'Assistants are not offered.'],
  ['threads', 'Assistants are not offered.'],
]);

/** Where a client that was given another base URL looks for what there is: behind none of ours (`/chat/completions`), all of an address (`…/chat/completions/chat/completions`), or another service's (`/api/v1/models`). */
const MISPLACED = /\/(?:chat\/completions|models)\/?$/;
const BASE_URL = "A client's base URL is this service's address with /v1 behind it, once and nothing more.";

/** The message, which repeats nothing of the path. */
export function unknownUrlMessage(path: string): string {
  const [first = '', second = ''] = path.split('/', 3).slice(1);
  const other = NOT_OFFERED.get(first === 'v1' ? second : first);
  const { message } = API_ERRORS.unknown_url;
  if (other !== undefined) return `${other} ${message.slice(message.indexOf('Chat completions'))}`;
  return MISPLACED.test(path) ? `${message} ${BASE_URL}` : message;
}
