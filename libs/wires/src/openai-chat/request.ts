/** The upstream body, spliced from the fields of the client's body as they were sent. */
import { adaptFields, FROM_GPT_5_6, NO_QUIRKS, quirksOfModel, type ChatQuirks, type ChatRequestField } from './quirks.js';
import { lacksThoughts } from './thoughts.js';

export type { ChatRequestField };

export interface ChatRequestInput {
  /** The catalog's id, such as `openai/gpt-5.6-sol`. */
  readonly model?: string;
  readonly providerModelId: string;
  readonly stream: boolean;
  readonly maxTokens?: number | undefined;
  /** Name the endpoint reads, such as `max_tokens` or `max_completion_tokens`; empty = `max_tokens`. */
  readonly maxTokensParam: string;
  /** Highest temperature the endpoint takes; 0 = unknown, no clamp. */
  readonly temperatureMax: number;
  /** Allow-listed, without model, stream, stream_options and the token limit. */
  readonly fields: readonly ChatRequestField[];
}

/** OpenAI's own limit of `n`. */
const CHOICES_MAX = 128;

/** Set by this module: a field of that name is never copied. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['model', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens']);

function valueOf(field: ChatRequestField, temperatureMax: number): Uint8Array {
  if (field.name !== 'temperature' || temperatureMax <= 0) return field.value;
  const told = Number(Buffer.from(field.value.buffer, field.value.byteOffset, field.value.length).toString('utf8'));
  return told > temperatureMax ? Buffer.from(String(temperatureMax)) : field.value;
}

/** Choices that the fields ask for, 1 to 128; a host is not asked for what its quirks leave out. */
export function choicesAsked(fields: readonly ChatRequestField[], { dropFields }: ChatQuirks = NO_QUIRKS): number {
  const field = dropFields.includes('n') ? undefined : fields.find(({ name }) => name === 'n');
  const asked = field === undefined ? 1 : Number(Buffer.from(field.value.buffer, field.value.byteOffset, field.value.length).toString('utf8'));
  return Number.isInteger(asked) && asked >= 1 && asked <= CHOICES_MAX ? asked : 1;
}

/** `,"name":` of the fields seen so far: the allow-list is short. */
const prefixes = new Map<string, Buffer>();
const PREFIXES_MAX = 256;

function prefixOf(name: string): Buffer {
  let prefix = prefixes.get(name);
  if (prefix === undefined) {
    prefix = Buffer.from(`,${JSON.stringify(name)}:`);
    if (prefixes.size < PREFIXES_MAX) prefixes.set(name, prefix);
  }
  return prefix;
}

const CLOSING = Buffer.from('}');

const STILL = Buffer.from(',"reasoning_effort":"none"');

function isStilled({ model = '', fields }: ChatRequestInput, { stillsForTools }: ChatQuirks): boolean {
  return stillsForTools && FROM_GPT_5_6.test(model) && fields.some(({ name }) => name === 'tools') && !fields.some(({ name }) => name === 'reasoning_effort');
}

const UNTHINKING = Buffer.from(',"enable_thinking":false');

/** Of an answer in one piece the model must not think, whatever was asked for. */
function isWholeOnly({ providerModelId, stream }: ChatRequestInput, { thinksInStreams }: ChatQuirks): boolean {
  return !stream && thinksInStreams?.test(providerModelId) === true;
}

const THOUGHTLESS = { thinking: Buffer.from(',"thinking":{"type":"disabled"}'), reasoning: Buffer.from(',"reasoning":{"enabled":false}') } as const;

function isForced(choice: ChatRequestField | undefined): boolean {
  const told = choice === undefined ? '' : Buffer.from(choice.value).toString('utf8').trim();
  return told === '"required"' || told.startsWith('{');
}

function isThoughtless({ providerModelId, fields }: ChatRequestInput, { stilled }: ChatQuirks): boolean {
  if (stilled?.models.test(providerModelId) !== true) return false;
  if (stilled.forForcedCalls && isForced(fields.find(({ name }) => name === 'tool_choice'))) return true;
  const messages = fields.find(({ name }) => name === 'messages');
  return messages !== undefined && lacksThoughts(messages.value, stilled.withoutThoughts);
}

/** OpenRouter's words: a prompt that is too long is refused, and not shortened. Its default is the opposite for windows of up to 8,192 tokens (its guide to message transforms). */
const UNSHORTENED = Buffer.from(',"plugins":[{"id":"context-compression","enabled":false}]');

/** The body's bytes. Values are copied once and never re-serialised, the quirks apart. */
export function composeChatBody(input: ChatRequestInput, quirks: ChatQuirks = NO_QUIRKS): Buffer {
  let head = `{"model":${JSON.stringify(input.providerModelId)},"stream":${String(input.stream)}`;
  if (input.stream && !quirks.noStreamOptions) head += ',"stream_options":{"include_usage":true}';
  if (input.maxTokens !== undefined) head += `,${JSON.stringify(input.maxTokensParam || 'max_tokens')}:${String(input.maxTokens)}`;
  const parts: Uint8Array[] = [Buffer.from(head)];
  const isUnthinking = isWholeOnly(input, quirks);
  const hasNoThought = isThoughtless(input, quirks);
  for (const field of adaptFields(isUnthinking || hasNoThought ? input.fields.filter(({ name }) => name !== 'reasoning_effort') : input.fields, quirksOfModel(quirks, input.providerModelId, input.model))) {
    if (!OWN_FIELDS.has(field.name)) parts.push(prefixOf(field.name), valueOf(field, input.temperatureMax));
  }
  if (isStilled(input, quirks)) parts.push(STILL);
  if (isUnthinking) parts.push(UNTHINKING);
  if (hasNoThought) parts.push(THOUGHTLESS[quirks.stilled?.by ?? 'thinking']);
  if (quirks.shortensPrompts) parts.push(UNSHORTENED);
  parts.push(CLOSING);
  return Buffer.concat(parts);
}
