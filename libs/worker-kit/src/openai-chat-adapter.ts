/** Adapter of every host that speaks the OpenAI chat wire. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import type { Secret } from '@signalbox/runtime/secret';
import { draftChatBody, FETCHED_TYPES } from '@signalbox/wires/openai-chat/draft';
import { classifyRefusal } from '@signalbox/wires/openai-chat/errors';
import { NO_QUIRKS, type ChatQuirks } from '@signalbox/wires/openai-chat/quirks';
import { choicesAsked, composeChatBody } from '@signalbox/wires/openai-chat/request';
import { readChatAnswer } from '@signalbox/wires/openai-chat/response';
import { createChatTransducer } from '@signalbox/wires/openai-chat/stream';
import { composeImagesBody } from '@signalbox/wires/openai-images/request';
import { readImagesAnswer } from '@signalbox/wires/openai-images/response';
import type { MediaLoader } from './media-loader.js';
import type { Caller, Composed, ProviderAdapter, UpstreamRequest } from './provider.js';

export interface OpenAiChatAdapterOptions {
  readonly provider: string;
  /** Path included; `/chat/completions` and `/images/generations` are appended. */
  readonly baseUrl: string;
  readonly quirks?: ChatQuirks;
  /** Fetches images for a host with the quirk `inlinesImages`, which takes no URLs; required for such a host. */
  readonly media?: MediaLoader;
  /** Sent with each request, lower-case names. */
  readonly extraHeaders?: Readonly<Record<string, string>>;
}

export function createOpenAiChatAdapter({ provider, baseUrl, quirks = NO_QUIRKS, media, extraHeaders = {} }: OpenAiChatAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const pathOf = (method: string): string => `${url.pathname.replace(/\/+$/, '')}/${method}${url.search}`;
  const path = pathOf('chat/completions');
  const imagesPath = pathOf('images/generations');
  const headersOf = (accept: string, secret: Secret | undefined): readonly string[] => [
    ...['content-type', 'application/json', 'accept', accept],
    ...Object.entries(extraHeaders).flat(),
    ...(secret === undefined ? [] : ['authorization', `Bearer ${secret.unwrap()}`]),
  ];
  const prepare = (secret: Secret | undefined) => ({ stream: headersOf('text/event-stream', secret), whole: headersOf('application/json', secret) });
  const bare = prepare(undefined);
  // The headers of each credential are built once.
  const prepared = new WeakMap<Secret, ReturnType<typeof prepare>>();
  const preparedFor = (secret: Secret | undefined): ReturnType<typeof prepare> => {
    if (secret === undefined) return bare;
    let headers = prepared.get(secret);
    if (headers === undefined) prepared.set(secret, (headers = prepare(secret)));
    return headers;
  };
  const seedOf = (requestId: string): string => requestId.slice(-16);
  const send = (request: DispatchRequest__Output, secret: Secret | undefined, body: Buffer): UpstreamRequest => ({ path, headers: request.stream ? preparedFor(secret).stream : preparedFor(secret).whole, body });
  const loader = quirks.inlinesImages ? media : undefined;
  assert(!quirks.inlinesImages || loader !== undefined, 'A host that takes no URLs needs a media loader.');
  const composeInline = (loads: MediaLoader, request: DispatchRequest__Output, secret: Secret | undefined, caller: Caller | undefined): Composed | Promise<Composed> =>
    loads.compose(request, () => draftChatBody(request, quirks), FETCHED_TYPES, (body) => send(request, secret, body), caller);
  return {
    provider,
    origin: url.origin,
    compose: (request, secret, caller) => (loader === undefined ? send(request, secret, composeChatBody(request, quirks)) : composeInline(loader, request, secret, caller)),
    createTransducer: (request) => createChatTransducer(seedOf(request.requestId), choicesAsked(request.fields, quirks), quirks.tellsCost),
    readAnswer: (body, request) => readChatAnswer(body, seedOf(request.requestId), quirks.tellsCost),
    keepsLogprobs: true,
    classifyRefusal,
    images: { compose: (request, secret) => ({ path: imagesPath, headers: preparedFor(secret).whole, body: composeImagesBody(request) }), readAnswer: readImagesAnswer },
  };
}
