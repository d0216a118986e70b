/** Adapter of Vertex: three wires at one address, with the same kind of access token. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import { VERTEX } from '@signalbox/wires/anthropic-messages/request';
import { failure } from '@signalbox/wires/canonical';
import { classifyGoogleRefusal } from '@signalbox/wires/google-generate-content/errors';
import { NO_QUIRKS } from '@signalbox/wires/openai-chat/quirks';
import { createAnthropicMessagesAdapter } from '@signalbox/worker-kit/anthropic-messages-adapter';
import type { MediaLoader } from '@signalbox/worker-kit/media-loader';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import type { Caller, Composed, ProviderAdapter } from '@signalbox/worker-kit/provider';
import type { AccessTokens } from './access-tokens.js';
import { createGenerateContentAdapter } from './generate-content-adapter.js';

const PROVIDER = 'google-vertex';

export interface VertexAdapterOptions {
  /** Up to project and location; the publisher's path is appended. */
  readonly baseUrl: string;
  readonly tokens: AccessTokens;
  readonly media: MediaLoader;
}

export function createVertexAdapter({ baseUrl, tokens, media }: VertexAdapterOptions): ProviderAdapter {
  const base = new URL(baseUrl);
  const under = (path: string): string => {
    const url = new URL(base);
    url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`;
    return url.href;
  };
  const gemini = createGenerateContentAdapter({ provider: PROVIDER, baseUrl: under('/publishers/google'), auth: 'bearer', withCallIds: false, media });
  const claude = createAnthropicMessagesAdapter({ provider: PROVIDER, baseUrl, quirks: VERTEX, auth: 'bearer', media });
  // Open models that Vertex hosts.
  const hosted = createOpenAiChatAdapter({ provider: PROVIDER, baseUrl: under('/endpoints/openapi'), quirks: { ...NO_QUIRKS, developerAsSystem: true, thoughtFields: ['reasoning_content'], joinsTexts: true } });
  const wireOf = ({ wireProtocol }: DispatchRequest__Output): ProviderAdapter => (wireProtocol === 'anthropic-messages' ? claude : wireProtocol === 'openai-chat' ? hosted : gemini);

  const compose = (request: DispatchRequest__Output, token: Secret | undefined, caller: Caller | undefined): Composed | Promise<Composed> => (token === undefined ? failure('NO_CREDENTIAL') : wireOf(request).compose(request, token, caller));

  return {
    provider: PROVIDER,
    origin: base.origin,
    compose: (request, secret, caller) => {
      const token = secret === undefined ? undefined : tokens.take(secret, request.byok ? 'account' : 'operator');
      return token instanceof Promise ? token.then((taken) => compose(request, taken, caller)) : compose(request, token, caller);
    },
    createTransducer: (request) => wireOf(request).createTransducer(request),
    readAnswer: (body, request) => wireOf(request).readAnswer(body, request),
    // The platform's errors have Google's form, and those of each wire are similar enough.
    classifyRefusal: classifyGoogleRefusal,
    onCredentialRefused: (secret) => tokens.forget(secret),
  };
}
