/** Adapter of Ollama's own chat. */
import { classifyOllamaRefusal } from '@signalbox/wires/ollama/errors';
import { draftOllamaChat, FETCHED_TYPES, isCallForced, type OllamaSettings } from '@signalbox/wires/ollama/request';
import { readOllamaAnswer } from '@signalbox/wires/ollama/response';
import { createOllamaTransducer } from '@signalbox/wires/ollama/stream';
import type { MediaLoader } from '@signalbox/worker-kit/media-loader';
import type { ProviderAdapter } from '@signalbox/worker-kit/provider';

export interface OllamaAdapterOptions {
  /** Path included; `/api/chat` is appended. */
  readonly baseUrl: string;
  readonly settings: OllamaSettings;
  readonly media: MediaLoader;
}

const HEADERS = ['content-type', 'application/json', 'accept', 'application/x-ndjson, application/json'];

export function createOllamaAdapter({ baseUrl, settings, media }: OllamaAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const path = `${url.pathname.replace(/\/+$/, '')}/api/chat${url.search}`;
  const seedOf = (requestId: string): string => requestId.slice(-16);
  return {
    provider: 'ollama',
    origin: url.origin,
    compose: (request, _secret, caller) => media.compose(request, () => draftOllamaChat(request, settings), FETCHED_TYPES, (body) => ({ path, headers: HEADERS, body }), caller),
    createTransducer: (request) => createOllamaTransducer(seedOf(request.requestId), isCallForced(request)),
    readAnswer: (body, request) => readOllamaAnswer(body, seedOf(request.requestId), isCallForced(request)),
    keepsLogprobs: true,
    classifyRefusal: classifyOllamaRefusal,
  };
}
