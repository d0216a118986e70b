/** Adapter of every host that speaks the OpenAI chat wire. */
import { classifyRefusal } from '@signalbox/wires/openai-chat/errors';
import { composeChatBody, NO_QUIRKS, type ChatQuirks } from '@signalbox/wires/openai-chat/request';
import { readChatAnswer } from '@signalbox/wires/openai-chat/response';
import { createChatTransducer } from '@signalbox/wires/openai-chat/stream';
import type { ProviderAdapter } from './provider.js';

export interface OpenAiChatAdapterOptions {
  readonly provider: string;
  /** Path included; `/chat/completions` is appended. */
  readonly baseUrl: string;
  readonly quirks?: ChatQuirks;
  /** Sent with each request, lower-case names. */
  readonly extraHeaders?: Readonly<Record<string, string>>;
}

export function createOpenAiChatAdapter({ provider, baseUrl, quirks = NO_QUIRKS, extraHeaders = {} }: OpenAiChatAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const path = `${url.pathname.replace(/\/+$/, '')}/chat/completions${url.search}`;
  const seedOf = (requestId: string): string => requestId.slice(-16);
  return {
    provider,
    origin: url.origin,
    compose: (request, secret) => ({
      path,
      headers: {
        'content-type': 'application/json',
        accept: request.stream ? 'text/event-stream' : 'application/json',
        ...extraHeaders,
        ...(secret === undefined ? {} : { authorization: `Bearer ${secret.unwrap()}` }),
      },
      body: composeChatBody(request, quirks),
    }),
    createTransducer: (request) => createChatTransducer(seedOf(request.requestId)),
    readAnswer: (body, request) => readChatAnswer(body, seedOf(request.requestId)),
    classifyRefusal,
  };
}
