/** One gateway with every provider wire. Behind each wire is a third-party simulator, with a proxy in front that fails on demand. */
import { LLMock } from '@copilotkit/aimock';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { JSON_TOOL } from '@signalbox/wires/json-tool';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { send, type Got, type Sent } from './http.js';
import { GREETING, TIME_CALL, USAGE, WEATHER_CALL } from './upstreams.js';
import { WIRES } from './wires.js';

export const JSON_ANSWER = '{"city":"Oslo","celsius":4}';
export const RESULT_ANSWER = 'It is 4 °C in Oslo.';
export const IMAGE_ANSWER = 'A cat.';
const PIXEL_BASE64 = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const PIXEL = { base64: PIXEL_BASE64, dataUrl: `data:image/png;base64,${PIXEL_BASE64}` } as const;

/** The simulator's usage, in the field names of every wire. */
const COUNTS = { ...USAGE, input_tokens: USAGE.prompt_tokens, output_tokens: USAGE.completion_tokens, promptTokenCount: USAGE.prompt_tokens, candidatesTokenCount: USAGE.completion_tokens, totalTokenCount: USAGE.total_tokens };
/** Keys: as many as the tests of a wire get refused, and one that works. */
const KEYS = 'upstream-1,upstream-2,upstream-3,upstream-4';
const OLLAMA_MODELS = ['gemma3:27b', 'llama3.1:8b', 'llama3.3:70b'];

export interface WiresWorld {
  readonly gateway: Gateway;
  /** Proxy of a provider, by its catalog id. */
  door(provider: string): FakeProvider;
  /** POST /v1/chat/completions. */
  chat(body: object, sent?: Sent): Promise<Got>;
  stop(): Promise<void>;
}

async function startSimulator(): Promise<LLMock> {
  const simulator = new LLMock({ port: 0 });
  simulator.on({ toolName: JSON_TOOL }, { toolCalls: [{ id: 'call_json', name: JSON_TOOL, arguments: JSON_ANSWER }], usage: COUNTS });
  simulator.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [WEATHER_CALL, TIME_CALL], usage: COUNTS });
  simulator.on({ toolName: 'get_weather', hasToolResult: false }, { toolCalls: [WEATHER_CALL], usage: COUNTS });
  simulator.on({ hasToolResult: true }, { content: RESULT_ANSWER, usage: COUNTS });
  simulator.onMessage('as json', { content: JSON_ANSWER, usage: COUNTS });
  simulator.onMessage('picture', { content: IMAGE_ANSWER, usage: COUNTS });
  simulator.onMessage(/./s, { content: GREETING, usage: COUNTS });
  await simulator.start();
  return simulator;
}

/** Throws if the gateway does not start, and leaves nothing running then. */
export async function startWiresWorld(): Promise<WiresWorld> {
  const simulator = await startSimulator();
  const doors = new Map(await Promise.all(WIRES.map(async ({ provider }) => [provider, await startFakeProvider({ forwardTo: simulator.url })] as const)));
  const door = (provider: string): FakeProvider => {
    const found = doors.get(provider);
    if (found === undefined) throw new Error(`No door of ${provider}.`);
    return found;
  };
  const at = (provider: string): string => door(provider).origin;
  const stopUpstreams = async (): Promise<void> => {
    await Promise.all([...doors.values()].map((each) => each.stop()));
    await simulator.stop();
  };
  door('ollama').enqueue({ body: { models: OLLAMA_MODELS.map((name) => ({ name, model: name, digest: 'sha256:1', details: {} })) } });
  let gateway: Gateway;
  try {
    gateway = await startGateway({
      mode: 'standalone',
      environment: {
        OPENAI_API_KEY: KEYS,
        OPENAI_BASE_URL: `${at('openai')}/v1`,
        ANTHROPIC_API_KEY: KEYS,
        ANTHROPIC_BASE_URL: `${at('anthropic')}/v1`,
        GEMINI_API_KEY: KEYS,
        GEMINI_BASE_URL: `${at('google-ai-studio')}/v1beta`,
        COHERE_API_KEY: KEYS,
        COHERE_BASE_URL: `${at('cohere')}/v2`,
        AWS_BEARER_TOKEN_BEDROCK: KEYS,
        BEDROCK_BASE_URL: at('amazon-bedrock'),
        AZURE_API_KEY: KEYS,
        AZURE_BASE_URL: `${at('azure-openai')}/openai`,
        OLLAMA_BASE_URL: at('ollama'),
        GROQ_API_KEY: KEYS,
        GROQ_BASE_URL: `${at('groq')}/v1`,
        SIMULATOR: 'on',
        CONTRACT_VARIANT: 'A',
      },
    });
  } catch (error) {
    await stopUpstreams();
    throw error;
  }
  const { baseUrl, key } = gateway;
  return {
    gateway,
    door,
    chat: (body, sent = {}) => send(baseUrl, { key, ...sent, body }),
    stop: async () => {
      await gateway.stop();
      await stopUpstreams();
    },
  };
}
