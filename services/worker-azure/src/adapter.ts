/** Adapter of Azure: the OpenAI wire at deployments, and Anthropic's Messages for the Claude models of the same resource. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import { ANTHROPIC } from '@signalbox/wires/anthropic-messages/request';
import { classifyRefusal } from '@signalbox/wires/openai-chat/errors';
import { NO_QUIRKS, OPENAI_WITHOUT_BREAKPOINTS, type ChatQuirks } from '@signalbox/wires/openai-chat/quirks';
import { choicesAsked, composeChatBody } from '@signalbox/wires/openai-chat/request';
import { readChatAnswer } from '@signalbox/wires/openai-chat/response';
import { createChatTransducer } from '@signalbox/wires/openai-chat/stream';
import { createAnthropicMessagesAdapter } from '@signalbox/worker-kit/anthropic-messages-adapter';
import type { MediaLoader } from '@signalbox/worker-kit/media-loader';
import type { Composed, ProviderAdapter } from '@signalbox/worker-kit/provider';

export interface AzureAdapterOptions {
  /** With the path. If it ends in `/v1`, `/chat/completions` is appended, else `/deployments/<name>/chat/completions`. */
  readonly baseUrl: string;
  /** undefined = the default, or none if the address ends in `/v1`. */
  readonly apiVersion: string | undefined;
  /** Deployment names by the provider's model id; other deployments are named like their model. */
  readonly deployments: ReadonlyMap<string, string>;
  readonly media: MediaLoader;
}

/** The first version with reasoning effort, and the last one with a date; it was followed by the undated v1. */
const API_VERSION = '2025-04-01-preview';
/** Models of other makers do not know the role `developer`, nor texts in parts. */
const OTHER_MAKERS: ChatQuirks = { ...NO_QUIRKS, developerAsSystem: true, joinsTexts: true };
/** Its cache finds a prompt again only with the thoughts in it. */
const DEEPSEEK: ChatQuirks = { ...OTHER_MAKERS, thoughtFields: ['reasoning_content'], thoughtName: 'reasoning_content' };
const PROVIDER = 'azure-openai';

function quirksOf(model: string): ChatQuirks {
  if (model.startsWith('openai/')) return OPENAI_WITHOUT_BREAKPOINTS;
  return model.startsWith('deepseek/') ? DEEPSEEK : OTHER_MAKERS;
}

/** An Entra token is a JWT, which keys cannot look like since they contain no dots. */
function authHeaders(secret: Secret | undefined): readonly string[] {
  if (secret === undefined) return [];
  const text = secret.unwrap();
  return /^ey[\w-]+\.[\w-]+\.[\w-]+$/.test(text) ? ['authorization', `Bearer ${text}`] : ['api-key', text];
}

/** The resource's address for Claude: on its Foundry host, beside the OpenAI path. */
function claudeBaseUrl(url: URL): string {
  const host = url.host.replace(/\.openai\.azure\.com$/, '.services.ai.azure.com');
  return `${url.protocol}//${host}${url.pathname.replace(/\/+$/, '').replace(/\/openai(?:\/v1)?$/, '')}/anthropic/v1`;
}

export function createAzureAdapter({ baseUrl, apiVersion, deployments, media }: AzureAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const root = url.pathname.replace(/\/+$/, '');
  const isUndated = root.endsWith('/v1');
  const version = apiVersion ?? (isUndated || url.searchParams.has('api-version') ? undefined : API_VERSION);
  if (version !== undefined) url.searchParams.set('api-version', version);
  const seedOf = (requestId: string): string => requestId.slice(-16);
  const claude = createAnthropicMessagesAdapter({ provider: PROVIDER, baseUrl: claudeBaseUrl(url), quirks: ANTHROPIC, auth: 'x-api-key', media });
  const isClaude = (request: DispatchRequest__Output): boolean => request.wireProtocol === 'anthropic-messages';

  const atClaude = (composed: Composed): Composed => ('class' in composed ? composed : { ...composed, origin: claude.origin });
  const deployed = (request: DispatchRequest__Output): DispatchRequest__Output => {
    const providerModelId = deployments.get(request.providerModelId);
    return providerModelId === undefined ? request : { ...request, providerModelId };
  };

  return {
    provider: PROVIDER,
    origin: url.origin,
    compose: (asked, secret, caller) => {
      const request = deployed(asked);
      if (isClaude(request)) {
        const composed = claude.compose(request, secret, caller);
        return composed instanceof Promise ? composed.then(atClaude) : atClaude(composed);
      }
      const place = isUndated ? '' : `/deployments/${encodeURIComponent(request.providerModelId)}`;
      return {
        path: `${root}${place}/chat/completions${url.search}`,
        headers: ['content-type', 'application/json', 'accept', request.stream ? 'text/event-stream' : 'application/json', ...authHeaders(secret)],
        body: composeChatBody(request, quirksOf(asked.model)),
      };
    },
    createTransducer: (request) => (isClaude(request) ? claude.createTransducer(request) : createChatTransducer(seedOf(request.requestId), choicesAsked(request.fields))),
    keepsLogprobs: true,
    readAnswer: (body, request) => (isClaude(request) ? claude.readAnswer(body, request) : readChatAnswer(body, seedOf(request.requestId))),
    classifyRefusal,
  };
}
