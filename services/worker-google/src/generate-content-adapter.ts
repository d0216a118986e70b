/** Adapter of Google's generateContent, on either host. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import { classifyGoogleRefusal } from '@signalbox/wires/google-generate-content/errors';
import { TOOL_NAMES } from '@signalbox/wires/google-generate-content/names';
import { draftGenerateContent } from '@signalbox/wires/google-generate-content/request';
import { readGenerateContentAnswer } from '@signalbox/wires/google-generate-content/response';
import { createGenerateContentTransducer } from '@signalbox/wires/google-generate-content/stream';
import { choicesAsked } from '@signalbox/wires/openai-chat/request';
import type { MediaLoader, MediaTypes } from '@signalbox/worker-kit/media-loader';
import type { ProviderAdapter } from '@signalbox/worker-kit/provider';

export interface GenerateContentAdapterOptions {
  readonly provider: string;
  /** With the path; `/models/{model}:generateContent` and the like are appended. */
  readonly baseUrl: string;
  /** How the credential is sent. */
  readonly auth: 'x-goog-api-key' | 'bearer';
  /** The host accepts the ids of tool calls with their results. */
  readonly withCallIds: boolean;
  readonly media: MediaLoader;
}

const MEDIA_TYPES: MediaTypes = {
  image: ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif', 'image/gif'],
  audio: ['audio/wav', 'audio/mp3', 'audio/mpeg', 'audio/aiff', 'audio/aac', 'audio/ogg', 'audio/flac'],
  file: ['application/pdf', 'text/plain', 'text/csv', 'text/html', 'text/markdown', 'text/xml', 'application/json'],
};

export function createGenerateContentAdapter({ provider, baseUrl, auth, withCallIds, media }: GenerateContentAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const root = url.pathname.replace(/\/+$/, '');
  const seedOf = (requestId: string): string => requestId.slice(-16);
  const pathOf = ({ providerModelId, stream }: DispatchRequest__Output): string => {
    const model = `${root}/models/${encodeURIComponent(providerModelId.replace(/^models\//, ''))}`;
    // Without alt=sse a stream is one JSON array.
    return stream ? `${model}:streamGenerateContent?alt=sse${url.search.replace(/^\?/, '&')}` : `${model}:generateContent${url.search}`;
  };
  const headersOf = (stream: boolean, secret: Secret | undefined): readonly string[] => [
    ...['content-type', 'application/json', 'accept', stream ? 'text/event-stream' : 'application/json'],
    ...(secret === undefined ? [] : auth === 'bearer' ? ['authorization', `Bearer ${secret.unwrap()}`] : ['x-goog-api-key', secret.unwrap()]),
  ];
  return {
    provider,
    origin: url.origin,
    compose: (request, secret, caller) => media.compose(request, () => draftGenerateContent(request, { withCallIds }), MEDIA_TYPES, (body) => ({ path: pathOf(request), headers: headersOf(request.stream, secret), body }), caller),
    createTransducer: (request) => createGenerateContentTransducer(seedOf(request.requestId), TOOL_NAMES.clientNames(request.fields), choicesAsked(request.fields)),
    readAnswer: (body, request) => readGenerateContentAnswer(body, seedOf(request.requestId), TOOL_NAMES.clientNames(request.fields)),
    classifyRefusal: classifyGoogleRefusal,
  };
}
