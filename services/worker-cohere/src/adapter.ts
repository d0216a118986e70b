/** Adapter of Cohere's v2 chat. */
import { classifyCohereRefusal } from '@signalbox/wires/cohere-v2/errors';
import { composeCohereChat } from '@signalbox/wires/cohere-v2/request';
import { readCohereAnswer } from '@signalbox/wires/cohere-v2/response';
import { createCohereTransducer } from '@signalbox/wires/cohere-v2/stream';
import { Unsendable } from '@signalbox/wires/unsendable';
import type { ProviderAdapter } from '@signalbox/worker-kit/provider';

/** `baseUrl` with its path; `/chat` is appended. */
export function createCohereAdapter(baseUrl: string): ProviderAdapter {
  const url = new URL(baseUrl);
  const path = `${url.pathname.replace(/\/+$/, '')}/chat${url.search}`;
  const seedOf = (requestId: string): string => requestId.slice(-16);
  return {
    provider: 'cohere',
    origin: url.origin,
    compose: (request, secret) => {
      const accept = request.stream ? 'text/event-stream' : 'application/json';
      const headers = ['content-type', 'application/json', 'accept', accept, ...(secret === undefined ? [] : ['authorization', `Bearer ${secret.unwrap()}`])];
      try {
        return { path, headers, body: composeCohereChat(request) };
      } catch (error) {
        if (error instanceof Unsendable) return error.failure;
        throw error;
      }
    },
    createTransducer: (request) => createCohereTransducer(seedOf(request.requestId)),
    readAnswer: (body, request) => readCohereAnswer(body, seedOf(request.requestId)),
    classifyRefusal: classifyCohereRefusal,
  };
}
