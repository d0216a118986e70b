/** Each provider wire: its models here, and how its provider refuses, begins an answer, and fails. */
import { sse, type ScriptedAnswer } from '@signalbox/testkit/fake-provider';
import { exceptionEvent, jsonEvent } from '@signalbox/wires/testing/event-stream';

/** Part of every error of a provider; clients must never see it. */
export const UPSTREAM_WORDS = 'SECRET UPSTREAM TEXT';

export interface Wire {
  readonly name: string;
  /** Catalog id of the provider with this wire here. */
  readonly provider: string;
  /** Several, since an endpoint that fails often is not asked for a while. The first one calls tools and answers JSON. */
  readonly models: readonly [string, string, string];
  /** A model with vision, if the first one has none. */
  readonly seeing?: string;
  /** Prefixes of the paths that are requested. */
  readonly path: string;
  /** Its models reason unless told not to, and have twice the time. */
  readonly thinksUnasked?: boolean;
  /** The simulator reports no token counts on this wire. */
  readonly isUncounted?: boolean;
  /** The provider takes URLs of images; otherwise the gateway fetches them. */
  readonly takesUrls: boolean;
  /** The body of a refusal with this status. */
  refusal(status: number): ScriptedAnswer;
  readonly streamType: string;
  /** The beginning of a stream, before any content. */
  readonly opening: readonly (string | Buffer)[];
  text(text: string): string | Buffer;
  /** An error within a 200. */
  readonly error: string | Buffer;
  readonly garbage: string | Buffer;
}

const SSE_TYPE = 'text/event-stream';
const SSE_GARBAGE = 'data: ~~~\n\n';
const named = (frame: { readonly type: string }): string => `event: ${frame.type}\n${sse(frame)}`;

const chunk = (delta: object): string => sse({ id: 'chatcmpl-up', object: 'chat.completion.chunk', created: 1_795_200_000, model: 'up', choices: [{ index: 0, delta, finish_reason: null }] });
const COMMON: Omit<Wire, 'name' | 'provider' | 'models' | 'path' | 'takesUrls'> = {
  refusal: (status) => ({ status, body: { error: { message: UPSTREAM_WORDS, type: status === 429 ? 'rate_limit_error' : 'server_error', code: status === 401 ? 'invalid_api_key' : null, param: null } } }),
  streamType: SSE_TYPE,
  opening: [chunk({ role: 'assistant', content: '' })],
  text: (content) => chunk({ content }),
  error: sse({ error: { message: UPSTREAM_WORDS, type: 'server_error', code: 503 } }),
  garbage: SSE_GARBAGE,
};

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = { 401: 'authentication_error', 429: 'rate_limit_error', 529: 'overloaded_error' };
const GOOGLE_STATUSES: Readonly<Record<number, string>> = { 401: 'UNAUTHENTICATED', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL' };
const BEDROCK_TYPES: Readonly<Record<number, string>> = { 401: 'UnrecognizedClientException', 429: 'ThrottlingException', 500: 'InternalServerException' };

export const WIRES: readonly Wire[] = [
  { ...COMMON, name: 'openai', provider: 'openai', models: ['openai/gpt-4o-mini', 'openai/gpt-4.1-mini', 'openai/gpt-4.1'], path: '/v1/chat/completions', takesUrls: true },
  {
    name: 'anthropic',
    provider: 'anthropic',
    models: ['anthropic/claude-haiku-4.5', 'anthropic/claude-sonnet-4.5', 'anthropic/claude-opus-4.5'],
    path: '/v1/messages',
    takesUrls: true,
    refusal: (status) => ({ status, body: { type: 'error', error: { type: ANTHROPIC_TYPES[status] ?? 'api_error', message: UPSTREAM_WORDS } } }),
    streamType: SSE_TYPE,
    opening: [
      named({ type: 'message_start', message: { id: 'msg_up', type: 'message', role: 'assistant', content: [], model: 'up', stop_reason: null, usage: { input_tokens: 12, output_tokens: 1 } } } as { type: string }),
      named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as { type: string }),
    ],
    text: (text) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as { type: string }),
    error: named({ type: 'error', error: { type: 'overloaded_error', message: UPSTREAM_WORDS } } as { type: string }),
    garbage: SSE_GARBAGE,
  },
  {
    name: 'google',
    provider: 'google-ai-studio',
    thinksUnasked: true,
    models: ['google/gemini-3.5-flash-lite', 'google/gemini-2.5-flash-lite', 'google/gemini-3-flash-preview'],
    path: '/v1beta/models/gemini',
    takesUrls: false,
    refusal: (status) => ({ status, body: { error: { code: status, message: UPSTREAM_WORDS, status: GOOGLE_STATUSES[status] ?? 'UNAVAILABLE' } } }),
    streamType: SSE_TYPE,
    opening: [],
    text: (text) => sse({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
    error: sse({ error: { code: 503, message: UPSTREAM_WORDS, status: 'UNAVAILABLE' } }),
    garbage: SSE_GARBAGE,
  },
  {
    name: 'cohere',
    provider: 'cohere',
    models: ['cohere/command-r-08-2024', 'cohere/command-a', 'cohere/command-r-plus-08-2024'],
    seeing: 'cohere/command-a-vision-07-2025',
    path: '/v2/chat',
    takesUrls: true,
    refusal: (status) => ({ status, body: { message: UPSTREAM_WORDS } }),
    streamType: SSE_TYPE,
    opening: [
      named({ type: 'message-start', delta: { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] } } } as { type: string }),
      named({ type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } } as { type: string }),
    ],
    text: (text) => named({ type: 'content-delta', index: 0, delta: { message: { content: { text } } } } as { type: string }),
    error: sse({ message: UPSTREAM_WORDS }),
    garbage: SSE_GARBAGE,
  },
  {
    name: 'bedrock',
    provider: 'amazon-bedrock',
    models: ['amazon/nova-lite-v1', 'amazon/nova-pro-v1', 'anthropic/claude-haiku-4.5'],
    path: '/model/',
    takesUrls: false,
    refusal: (status) => ({ status, headers: { 'x-amzn-errortype': BEDROCK_TYPES[status] ?? 'ServiceUnavailableException' }, body: { message: UPSTREAM_WORDS } }),
    streamType: 'application/vnd.amazon.eventstream',
    opening: [jsonEvent('messageStart', { role: 'assistant' })],
    text: (text) => jsonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
    error: exceptionEvent('serviceUnavailableException', UPSTREAM_WORDS),
    garbage: 'neither lengths nor checksums',
  },
  { ...COMMON, name: 'azure', provider: 'azure-openai', models: ['openai/gpt-4o-mini', 'openai/gpt-4.1-mini', 'openai/gpt-4.1'], path: '/openai/deployments/', takesUrls: true },
  {
    name: 'ollama',
    provider: 'ollama',
    models: ['google/gemma-3-27b-it', 'meta-llama/llama-3.1-8b-instruct', 'meta-llama/llama-3.3-70b-instruct'],
    path: '/api/chat',
    isUncounted: true,
    takesUrls: false,
    refusal: (status) => ({ status, body: { error: UPSTREAM_WORDS } }),
    streamType: 'application/x-ndjson',
    opening: [],
    text: (content) => `${JSON.stringify({ model: 'up', created_at: '2026-11-21T00:00:00Z', message: { role: 'assistant', content }, done: false })}\n`,
    error: `${JSON.stringify({ error: UPSTREAM_WORDS })}\n`,
    garbage: '~~~\n',
  },
  { ...COMMON, name: 'openai-compatible', provider: 'groq', models: ['openai/gpt-oss-120b', 'meta-llama/llama-3.1-8b-instruct', 'meta-llama/llama-3.3-70b-instruct'], seeing: 'meta-llama/llama-4-maverick', path: '/v1/chat/completions', takesUrls: true },
];
