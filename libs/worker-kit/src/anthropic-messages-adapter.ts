/** Adapter of every host that speaks Anthropic's Messages: Anthropic itself, MiniMax, Claude on Vertex. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import { classifyMessagesRefusal } from '@signalbox/wires/anthropic-messages/errors';
import { TOOL_NAMES } from '@signalbox/wires/anthropic-messages/names';
import { draftMessages, type MessagesDraft, type MessagesQuirks } from '@signalbox/wires/anthropic-messages/request';
import { readMessagesAnswer } from '@signalbox/wires/anthropic-messages/response';
import { createMessagesTransducer } from '@signalbox/wires/anthropic-messages/stream';
import { FETCHED_TYPES } from '@signalbox/wires/anthropic-messages/turns';
import { mayUnwrap } from '@signalbox/wires/json-tool';
import type { MediaLoader } from './media-loader.js';
import type { ProviderAdapter } from './provider.js';

export interface AnthropicMessagesAdapterOptions {
  readonly provider: string;
  /** Path included; `/messages` is appended, or for Vertex the model's own path. */
  readonly baseUrl: string;
  readonly quirks: MessagesQuirks;
  /** How the credential is sent: `x-api-key`, or as a bearer token. */
  readonly auth: 'x-api-key' | 'bearer';
  readonly media: MediaLoader;
}

const API_VERSION = '2023-06-01';

export function createAnthropicMessagesAdapter({ provider, baseUrl, quirks, auth, media }: AnthropicMessagesAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const root = url.pathname.replace(/\/+$/, '');
  const hasModelInPath = quirks.bodyVersion !== '';
  const version = hasModelInPath ? [] : ['anthropic-version', API_VERSION];
  const pathOf = ({ providerModelId, stream }: DispatchRequest__Output): string =>
    hasModelInPath ? `${root}/publishers/anthropic/models/${encodeURIComponent(providerModelId).replaceAll('%40', '@')}:${stream ? 'streamRawPredict' : 'rawPredict'}${url.search}` : `${root}/messages${url.search}`;
  const headersOf = (stream: boolean, betas: readonly string[], secret: Secret | undefined): readonly string[] => [
    ...['content-type', 'application/json', 'accept', stream ? 'text/event-stream' : 'application/json'],
    ...version,
    ...(betas.length === 0 ? [] : ['anthropic-beta', betas.join(',')]),
    ...(secret === undefined ? [] : auth === 'bearer' ? ['authorization', `Bearer ${secret.unwrap()}`] : ['x-api-key', secret.unwrap()]),
  ];
  const seedOf = (requestId: string): string => requestId.slice(-16);
  return {
    provider,
    origin: url.origin,
    compose: (request, secret, caller) => {
      let betas: readonly string[] = [];
      const draft = (): MessagesDraft => {
        const drafted = draftMessages(request, quirks);
        betas = drafted.betas;
        return drafted;
      };
      return media.compose(request, draft, FETCHED_TYPES, (body) => ({ path: pathOf(request), headers: headersOf(request.stream, betas, secret), body }), caller);
    },
    createTransducer: (request) => createMessagesTransducer(seedOf(request.requestId), mayUnwrap(request), quirks.thoughtFormat, quirks.refusesForFree, TOOL_NAMES.clientNames(request.fields)),
    readAnswer: (body, request) => readMessagesAnswer(body, seedOf(request.requestId), mayUnwrap(request), quirks.thoughtFormat, quirks.refusesForFree, TOOL_NAMES.clientNames(request.fields)),
    classifyRefusal: classifyMessagesRefusal,
  };
}
