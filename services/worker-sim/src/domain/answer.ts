/** The simulator's answers: deterministic, and honest about being simulated. */
import { isObject, type JsonObject as Json } from '@signalbox/kernel/json-object';
import { readDirectives, withoutDirectives, type Directives } from './directives.js';
import { alternativesAsked } from './logprobs.js';
import { quoteOf } from './quote.js';
import { valueForSchema } from './schema-value.js';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface SimulatedChoice {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
}

export interface Simulated {
  readonly directives: Directives;
  readonly choices: readonly SimulatedChoice[];
  readonly usage: Json;
  /** Number of alternatives to return with each token; undefined = no log probabilities were requested. */
  readonly alternatives: number | undefined;
}

const BYTES_PER_TOKEN = 4;
/** For an image, a file or audio of any size: about what providers count for a small one. */
const TOKENS_PER_MEDIA_PART = 1_000;
const ECHO_CHARS_MAX = 120;
const QUOTE_CHARS_MAX = 500;
/** As in the public API. */
const CHOICES_MAX = 128;
const PROMPT_CHARS_MAX = 1_000;

const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

/** Parts that are no text, by type, with their names for one and for several. */
const MEDIA = new Map<unknown, readonly [one: string, several: string]>([['image_url', ['image', 'images']], ['file', ['file', 'files']], ['input_audio', ['recording', 'recordings']]]);
const isMedia = (part: unknown): boolean => isObject(part) && MEDIA.has(part['type']);

/** Such as `1 image and 2 files`; empty = no media. */
function mediaInWords(messages: readonly Json[]): string {
  const parts = messages.flatMap((message) => (Array.isArray(message['content']) ? (message['content'] as readonly unknown[]) : [])).filter(isObject);
  const counted = [...MEDIA].map(([type, [one, several]]) => [parts.filter((part) => part['type'] === type).length, one, several] as const).filter(([count]) => count > 0);
  return counted.map(([count, one, several]) => `${String(count)} ${count === 1 ? one : several}`).join(' and ');
}

/** Names of the functions called since the user last spoke. */
function calledNames(messages: readonly Json[]): ReadonlySet<unknown> {
  const latest = messages.slice(messages.findLastIndex((message) => message['role'] === 'user') + 1);
  const calls = latest.flatMap((message) => (Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [])).filter(isObject);
  return new Set(calls.map((call) => (isObject(call['function']) ? call['function']['name'] : undefined)));
}

/** Tokens of the conversation, the tools and the response schema. */
function promptTokensOf(request: Json, messages: readonly Json[]): number {
  let media = 0;
  const texts = messages.map((message) => {
    const { content } = message;
    if (!Array.isArray(content) || !content.some(isMedia)) return message;
    const rest = content.filter((part) => !isMedia(part));
    media += content.length - rest.length;
    return { ...message, content: rest };
  });
  const format = request['response_format'];
  const schema = isObject(format) && isObject(format['json_schema']) ? tokensOf(JSON.stringify(format['json_schema'])) : 0;
  return tokensOf(JSON.stringify(texts)) + tokensOf(JSON.stringify(request['tools'] ?? '')) + schema + media * TOKENS_PER_MEDIA_PART;
}

/** After results only functions that must be called and were not yet: who forces a call in each round would never get an answer. */
function toolCalls(request: Json, messages: readonly Json[], asked: string, directives: Directives): readonly ToolCall[] {
  const tools = Array.isArray(request['tools']) ? (request['tools'] as readonly unknown[]).filter(isObject) : [];
  const choice = request['tool_choice'];
  if (tools.length === 0 || choice === 'none') return [];
  const forced = isObject(choice) && isObject(choice['function']) ? choice['function']['name'] : undefined;
  const functions = tools.map((tool) => tool['function']).filter(isObject);
  const allowed = forced === undefined ? functions : functions.filter((fn) => fn['name'] === forced);
  const hasResults = messages.at(-1)?.['role'] === 'tool';
  const called = hasResults ? calledNames(messages) : undefined;
  const candidates = called === undefined ? allowed : allowed.filter((fn) => !called.has(fn['name']));
  if (hasResults && (candidates.length === 0 || (choice !== 'required' && forced === undefined))) return [];
  const count = request['parallel_tool_calls'] === false ? 1 : directives.calls;
  return Array.from({ length: count }, (_, at) => {
    const fn = candidates[at % Math.max(1, candidates.length)];
    return { id: `call_sim${String(at)}`, name: typeof fn?.['name'] === 'string' ? fn['name'] : 'unknown', arguments: argumentsFor(fn?.['parameters'], asked) };
  });
}

const PROGRAM = /```(?:js|javascript)?\n([\s\S]*?)```/;

/** Arguments for a function: the user's text if it takes a `prompt`, a program from a code fence if it takes `code`, else a value that fits its schema. */
function argumentsFor(parameters: unknown, asked: string): string {
  const program = PROGRAM.exec(asked)?.[1];
  const properties = isObject(parameters) && isObject(parameters['properties']) ? parameters['properties'] : {};
  if ('prompt' in properties) return JSON.stringify({ prompt: asked.slice(0, PROMPT_CHARS_MAX) });
  const made = program !== undefined && 'code' in properties ? { code: program } : valueForSchema(parameters);
  // Arguments must be an object, even for a function without a schema.
  return JSON.stringify(isObject(made) ? made : {});
}

function plainText(request: Json, messages: readonly Json[], said: string, directives: Directives): string {
  const format = isObject(request['response_format']) ? request['response_format'] : {};
  if (format['type'] === 'json_object') return JSON.stringify({ simulated: true, echo: said.slice(0, ECHO_CHARS_MAX) });
  if (format['type'] === 'json_schema' && isObject(format['json_schema'])) return JSON.stringify(valueForSchema(format['json_schema']['schema']));
  const media = mediaInWords(messages);
  const seen = media === '' ? '' : ` I was given ${media}, which a simulator does not look at.`;
  const last = messages.at(-1);
  const result = PROGRAM.test(said) ? ` It says: ${textOf(last?.['content']).slice(0, ECHO_CHARS_MAX)}` : '';
  const tool = last?.['role'] === 'tool' ? ` I have read the tool result.${result}` : '';
  const quote = directives.quote ? quoteOf(messages) : '';
  const quoted = quote === '' ? '' : ` I was given: ${quote.slice(0, QUOTE_CHARS_MAX)}`;
  const text = `This is Signalbox's simulator, not a language model.${tool}${quoted}${seen} You said: ${said.slice(0, ECHO_CHARS_MAX)}`;
  if (directives.tokens === 0) return text;
  const bytes = directives.tokens * BYTES_PER_TOKEN;
  return 'This is simulated text. '.repeat(Math.ceil(bytes / 24)).slice(0, bytes);
}

function applyStops(text: string, stop: unknown): string {
  const words = (Array.isArray(stop) ? stop : [stop]).filter((word): word is string => typeof word === 'string' && word !== '');
  const at = words.map((word) => text.indexOf(word)).filter((position) => position >= 0);
  return at.length === 0 ? text : text.slice(0, Math.min(...at));
}

/** Truncates to `tokens`, at the end of a character. */
function limit(text: string, tokens: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= tokens * BYTES_PER_TOKEN) return text;
  let end = tokens * BYTES_PER_TOKEN;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString('utf8');
}

/** Throws TypeError if there are no messages. */
export function simulate(request: Json): Simulated {
  const messages = Array.isArray(request['messages']) ? (request['messages'] as readonly unknown[]).filter(isObject) : [];
  if (messages.length === 0) throw new TypeError('messages must hold at least one message');
  const asked = textOf(messages.findLast((message) => message['role'] === 'user')?.['content']);
  const directives = readDirectives(asked);
  const calls = toolCalls(request, messages, asked, directives);
  const maximum = [request['max_tokens'], request['max_completion_tokens']].find((value): value is number => typeof value === 'number') ?? Infinity;
  const full = calls.length > 0 ? '' : applyStops(plainText(request, messages, withoutDirectives(asked), directives), request['stop']);
  const content = Number.isFinite(maximum) ? limit(full, Math.max(0, maximum - directives.reasoning)) : full;
  const finishReason = calls.length > 0 ? 'tool_calls' : content.length < full.length ? 'length' : 'stop';
  const count = typeof request['n'] === 'number' ? Math.min(CHOICES_MAX, Math.max(1, request['n'])) : 1;
  const choices = Array.from({ length: count }, (): SimulatedChoice => ({ content, toolCalls: calls, finishReason }));
  const prompt = promptTokensOf(request, messages);
  const each = calls.length > 0 ? calls.reduce((sum, call) => sum + tokensOf(call.name + call.arguments), 0) : tokensOf(content);
  const reasoning = Math.min(directives.reasoning, maximum);
  const completion = each * count + reasoning;
  const cached = Math.min(directives.cached, prompt);
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, prompt_tokens_details: { cached_tokens: cached }, completion_tokens_details: { reasoning_tokens: reasoning } };
  return { directives, choices, usage, alternatives: alternativesAsked(request) };
}
