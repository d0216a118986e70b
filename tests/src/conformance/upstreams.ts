/** The providers behind the gateway under test: a third-party simulator, and our own fake that fails on demand. */
import { LLMock } from '@copilotkit/aimock';
import { startFakeProvider, sse, type FakeProvider, type ScriptedAnswer } from '@signalbox/testkit/fake-provider';

export interface Upstreams {
  /** Provider `openai`. */
  readonly openai: LLMock;
  /** Providers `groq` and `cerebras`: models that both serve fail over from one to the other, in either order. */
  readonly pair: FakeProvider;
  /** Provider `mistral`: its models have no other provider here. */
  readonly single: FakeProvider;
  /** Provider `deepseek`, whose credential is refused. */
  readonly refusing: FakeProvider;
  /** Provider `together`, where the operator has no credential. */
  readonly own: FakeProvider;
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Usage that the simulator reports for each fixture. */
export const USAGE = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };
export const GREETING = 'Hi there, this text comes in several pieces: “äöü – 日本語”.';
export const WEATHER_CALL = { id: 'call_a1', name: 'get_weather', arguments: '{"city":"Oslo"}' };
export const TIME_CALL = { id: 'call_a2', name: 'get_time', arguments: '{"zone":"CET"}' };

export async function startUpstreams(): Promise<Upstreams> {
  const openai = new LLMock({ port: 0 });
  openai.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [WEATHER_CALL, TIME_CALL], usage: USAGE });
  openai.on({ toolName: 'get_weather', hasToolResult: false }, { toolCalls: [WEATHER_CALL], usage: USAGE });
  openai.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.', usage: USAGE });
  openai.onMessage('as json', { content: '{"city":"Oslo","celsius":4}', usage: USAGE });
  openai.onMessage('cut short', { content: 'Once upon a', finishReason: 'length', usage: USAGE });
  openai.onMessage('picture', { content: 'A cat.', usage: USAGE });
  openai.onMessage('context please', { error: { message: "This model's maximum context length is 128000 tokens.", type: 'invalid_request_error', code: 'context_length_exceeded', param: 'messages' }, status: 400 });
  openai.onMessage('bad value please', { error: { message: 'Invalid schema for response_format.', type: 'invalid_request_error', code: 'invalid_value', param: 'response_format' }, status: 400 });
  openai.onMessage(/./s, { content: GREETING, usage: USAGE });
  await openai.start();
  const [pair, single, refusing, own] = await Promise.all([startFakeProvider(), startFakeProvider(), startFakeProvider(), startFakeProvider()]);
  return {
    openai,
    pair,
    single,
    refusing,
    own,
    environment: {
      OPENAI_API_KEY: 'sk-upstream',
      OPENAI_BASE_URL: `${openai.url}/v1`,
      GROQ_API_KEY: 'upstream',
      GROQ_BASE_URL: pair.baseUrl,
      CEREBRAS_API_KEY: 'upstream',
      CEREBRAS_BASE_URL: pair.baseUrl,
      MISTRAL_API_KEY: 'upstream',
      MISTRAL_BASE_URL: single.baseUrl,
      DEEPSEEK_API_KEY: 'upstream',
      DEEPSEEK_BASE_URL: refusing.baseUrl,
      TOGETHER_BASE_URL: own.baseUrl,
      // Also permits this address for accounts' own credentials.
      FETCH_ALLOW: new URL(own.baseUrl).host,
      SIMULATOR: 'on',
      PLUGIN_FEES: 'web-search=0.000000123,code-exec=0.000000457',
    },
    stop: async () => {
      await Promise.all([openai.stop(), pair.stop(), single.stop(), refusing.stop(), own.stop()]);
    },
  };
}

/** A complete answer of a provider with the common wire. */
export function completion(content: string): ScriptedAnswer {
  return {
    body: { id: 'chatcmpl-up', object: 'chat.completion', created: 1_795_200_000, model: 'up', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
  };
}

const chunk = (choices: readonly object[], more: object = {}): string => sse({ id: 'chatcmpl-up', object: 'chat.completion.chunk', created: 1_795_200_000, model: 'up', choices, ...more });

/** One content delta of a provider's stream. */
export const delta = (content: string): string => chunk([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }]);

/** A complete stream of a provider. */
export function streamed(...pieces: readonly string[]): ScriptedAnswer {
  return {
    chunks: [...pieces.map(delta), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }), sse('[DONE]')],
  };
}
