/** A client's request as wires other than OpenAI's read it: turns, tools and settings. Edge has checked every field. */
import { isObject, type JsonObject } from './canonical.js';
import { hasCacheControl, markedAtEnd, readTurns, type Turn } from './chat-turns.js';
import { LongStrings } from './long-strings.js';
import type { ChatRequestField } from './openai-chat/request.js';

/** What a dispatch says beside the client's fields. */
export interface ChatInput {
  /** The catalog's id, such as `anthropic/claude-opus-4.8`. */
  readonly model?: string;
  readonly providerModelId: string;
  readonly stream: boolean;
  readonly maxTokens?: number | undefined;
  /** Highest temperature the endpoint takes; 0 = unknown, no clamp. */
  readonly temperatureMax: number;
  /** Allow-listed, without model, stream, stream_options and the token limit. */
  readonly fields: readonly ChatRequestField[];
}

export interface Tool {
  readonly name: string;
  /** Empty = none. */
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: JsonObject | undefined;
  readonly strict: boolean;
  /** The client wants the prompt cached up to here (`cache_control`, beside the function or in it). */
  readonly isCacheEnd: boolean;
}

export type ToolChoice = { readonly kind: 'auto' | 'none' | 'required' } | { readonly kind: 'named'; readonly name: string };

export type ResponseFormat = { readonly kind: 'text' } | { readonly kind: 'json_object' } | { readonly kind: 'json_schema'; readonly name: string; readonly description: string; readonly schema: JsonObject };

export interface Chat {
  /** Of what their texts hold the middle may be set apart. */
  readonly turns: readonly Turn[];
  /** Writes the body with what is set apart of them in its places. */
  readonly strings: LongStrings;
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** undefined = not told. */
  readonly parallelToolCalls: boolean | undefined;
  readonly format: ResponseFormat;
  /** Clamped to what the endpoint takes. */
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly presencePenalty: number | undefined;
  readonly frequencyPenalty: number | undefined;
  readonly stop: readonly string[];
  /** Of 64 bits: as a number it would be another beyond 2^53. */
  readonly seed: bigint | undefined;
  readonly choices: number | undefined;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or a word of the client's; empty = not told. */
  readonly reasoningEffort: string;
  readonly user: string;
}

const HOLD_SCHEMAS: ReadonlySet<string> = new Set(['tools', 'response_format']);
const NOTHING = Buffer.from('null');

/** From the bytes: what JSON.parse makes of a large one is another. */
function seedOf(fields: readonly ChatRequestField[]): bigint | undefined {
  const field = fields.find(({ name }) => name === 'seed');
  if (field === undefined) return undefined;
  const text = Buffer.from(field.value.buffer, field.value.byteOffset, field.value.length).toString('latin1');
  if (/^-?\d+$/.test(text)) return BigInt(text);
  // Such as 1e3.
  const value = Number(text);
  return Number.isInteger(value) ? BigInt(value) : undefined;
}

function toolsOf(value: unknown): readonly Tool[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly unknown[]).flatMap((tool): Tool[] => {
    const fn = isObject(tool) ? tool['function'] : undefined;
    if (!isObject(tool) || !isObject(fn) || typeof fn['name'] !== 'string') return [];
    return [
      {
        name: fn['name'],
        description: typeof fn['description'] === 'string' ? fn['description'] : '',
        parameters: isObject(fn['parameters']) ? fn['parameters'] : undefined,
        strict: fn['strict'] === true,
        isCacheEnd: hasCacheControl(tool) || hasCacheControl(fn),
      },
    ];
  });
}

function toolChoiceOf(value: unknown): ToolChoice {
  if (value === 'none' || value === 'required') return { kind: value };
  const fn = isObject(value) ? value['function'] : undefined;
  return isObject(fn) && typeof fn['name'] === 'string' ? { kind: 'named', name: fn['name'] } : { kind: 'auto' };
}

function formatOf(value: unknown): ResponseFormat {
  if (!isObject(value)) return { kind: 'text' };
  if (value['type'] === 'json_object') return { kind: 'json_object' };
  const told = value['json_schema'];
  if (value['type'] !== 'json_schema' || !isObject(told)) return { kind: 'text' };
  return {
    kind: 'json_schema',
    name: typeof told['name'] === 'string' ? told['name'] : 'answer',
    description: typeof told['description'] === 'string' ? told['description'] : '',
    schema: isObject(told['schema']) ? told['schema'] : {},
  };
}

/** Throws Unsendable on media that are not what they say. */
export function readChat({ fields, temperatureMax }: Pick<ChatInput, 'fields' | 'temperatureMax'>): Chat {
  const messages = fields.find(({ name }) => name === 'messages');
  const others = fields.filter((field) => field !== messages);
  const strings = new LongStrings(messages?.value ?? NOTHING, others.map(({ value }) => value));
  // Those that hold schemas: of a number beside them a number is wanted.
  const values = new Map(others.map(({ name, value }): [string, unknown] => [name, HOLD_SCHEMAS.has(name) ? strings.parseBeside(value) : JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8'))]));
  const number = (name: string): number | undefined => {
    const value = values.get(name);
    return typeof value === 'number' ? value : undefined;
  };
  const text = (name: string): string => {
    const value = values.get(name);
    return typeof value === 'string' ? value : '';
  };
  const stop = values.get('stop');
  const temperature = number('temperature');
  const parallel = values.get('parallel_tool_calls');
  const topLogprobs = number('top_logprobs') ?? 0;
  return {
    turns: readTurns(isObject(values.get('cache_control')) ? markedAtEnd(strings.parse()) : strings.parse()),
    strings,
    tools: toolsOf(values.get('tools')),
    toolChoice: toolChoiceOf(values.get('tool_choice')),
    parallelToolCalls: typeof parallel === 'boolean' ? parallel : undefined,
    format: formatOf(values.get('response_format')),
    temperature: temperature !== undefined && temperatureMax > 0 ? Math.min(temperature, temperatureMax) : temperature,
    topP: number('top_p'),
    presencePenalty: number('presence_penalty'),
    frequencyPenalty: number('frequency_penalty'),
    stop: typeof stop === 'string' ? [stop] : Array.isArray(stop) ? (stop as readonly unknown[]).filter((item) => typeof item === 'string') : [],
    seed: seedOf(fields),
    choices: number('n'),
    logprobs: values.get('logprobs') === true || topLogprobs > 0,
    topLogprobs,
    reasoningEffort: text('reasoning_effort'),
    user: text('user'),
  };
}

/** Asks in words for what a wire has no setting for; empty for text. */
export function jsonInstruction(format: ResponseFormat): string {
  if (format.kind === 'text') return '';
  const plain = 'Answer with one JSON object and nothing else: no prose, no code fence.';
  return format.kind === 'json_object' ? plain : `${plain} It conforms to this JSON Schema:\n${JSON.stringify(format.schema)}`;
}
