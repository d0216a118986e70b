/** Compares the fields that wires cannot express with what is known about each endpoint: a mismatch would drop a client's field silently. */
import { describe, expect, test } from '@jest/globals';
import { fieldOfParam } from '@signalbox/kernel/param-names';
import type { Endpoint } from '@signalbox/router-core/catalog';
import { ANTHROPIC, draftMessages, MINIMAX, VERTEX } from '@signalbox/wires/anthropic-messages/request';
import { draftConverse } from '@signalbox/wires/bedrock-converse/request';
import { composeCohereChat } from '@signalbox/wires/cohere-v2/request';
import { draftGenerateContent } from '@signalbox/wires/google-generate-content/request';
import { draftOllamaChat } from '@signalbox/wires/ollama/request';
import { createCatalogFiles } from './adapters/catalog/files.js';

type ChatInput = Parameters<typeof composeCohereChat>[0];

const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } });
const PLAIN = { messages: [{ role: 'user', content: 'x' }], tools: [tool('f'), tool('g')] };
const SCHEMA = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object', properties: { b: { type: 'string' } } } } };

/** Fields that change the answer, each with a value and the other fields that it needs. */
const FIELDS: readonly (readonly [string, unknown, object?])[] = [
  ['temperature', 0.5],
  ['top_p', 0.5],
  ['presence_penalty', 0.5],
  ['frequency_penalty', 0.5],
  ['stop', ['a', 'b']],
  ['n', 2],
  ['seed', 5],
  ['logit_bias', { 1: 1 }],
  ['logprobs', true],
  ['top_logprobs', 3, { logprobs: true }],
  ['user', 'u-1'],
  ['metadata', { a: 'b' }],
  ['reasoning_effort', 'high'],
  ['service_tier', 'flex'],
  ['verbosity', 'low'],
  ['modalities', ['text']],
  ['parallel_tool_calls', false],
  ['tool_choice', 'none'],
  ['tool_choice', 'required'],
  ['tool_choice', { type: 'function', function: { name: 'f' } }],
  ['response_format', { type: 'json_object' }],
  ['response_format', SCHEMA],
  ['response_format', SCHEMA, { tools: undefined }],
];

const BOUNDS = { promptTokens: 10, contextWindow: 200_000, maxOutputTokens: 64_000 };
const messagesQuirks = ({ provider }: Endpoint) => (provider === 'minimax' ? MINIMAX : provider === 'google-vertex' ? VERTEX : ANTHROPIC);
const WIRES: Readonly<Record<string, (input: ChatInput, endpoint: Endpoint) => Buffer>> = {
  'anthropic-messages': (input, endpoint) => draftMessages({ ...input, ...BOUNDS }, messagesQuirks(endpoint)).body(new Map()),
  'bedrock-converse': (input) => draftConverse({ ...input, ...BOUNDS }).body(new Map()),
  'cohere-v2': (input) => composeCohereChat(input),
  'google-generate-content': (input, { provider }) => draftGenerateContent(input, { withCallIds: provider !== 'google-vertex' }).body(new Map()),
  ollama: (input) => draftOllamaChat(input, { keepAlive: '', contextTokensMin: 4_096 }).body(new Map()),
};

function bodyOf(endpoint: Endpoint, fields: object): string | undefined {
  const told = Object.entries(fields).filter(([, value]) => value !== undefined).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
  return WIRES[endpoint.wireProtocol]?.({ model: endpoint.model, providerModelId: endpoint.providerModelId, stream: true, maxTokens: 5_000, temperatureMax: 0, fields: told }, endpoint).toString();
}

/** True if requests with the field avoid the endpoint because of its capabilities. */
function isKeptAway(field: string, { capabilities: can }: Endpoint): boolean {
  if (field === 'logprobs' || field === 'top_logprobs') return !can.logprobs;
  if (field === 'n') return !can.choices;
  if (field === 'response_format') return !can.jsonSchema;
  return field === 'tool_choice' && !can.forcedToolChoice;
}

const { loaded } = await createCatalogFiles({ directory: '', withSimulator: false, terms: { managedProviders: new Set(), byokProviders: new Set(), zdrAgreements: new Set(), offeredModels: new Map() } }).read('2026-11-21');
const endpoints = loaded?.catalog.endpoints ?? [];

describe.each(Object.keys(WIRES))('%s', (wire) => {
  test.each(FIELDS.map(([field, value, beside]) => [field, JSON.stringify(value), beside ?? {}] as const))('%s: %s is sent, or said to be left out, or keeps the request away', (field, text, beside) => {
    const own = endpoints.filter((endpoint) => endpoint.wireProtocol === wire && endpoint.isServable);
    expect(own.length).toBeGreaterThan(0);
    const silent = own.filter((endpoint) => {
      const without = { ...PLAIN, ...(endpoint.capabilities.tools ? {} : { tools: undefined }), ...beside };
      const isOfTools = field === 'tool_choice' || field === 'parallel_tool_calls';
      if ((isOfTools && !endpoint.capabilities.tools) || isKeptAway(field, endpoint)) return false;
      if (field === 'reasoning_effort' && endpoint.reasoningEfforts.length > 0 && !endpoint.reasoningEfforts.includes('high')) return false;
      return bodyOf(endpoint, without) === bodyOf(endpoint, { ...without, [field]: JSON.parse(text) as unknown }) && ![...endpoint.unsupportedParams].some((name) => fieldOfParam(name) === field);
    });
    expect(silent.map(({ id }) => id)).toEqual([]);
  });
});
