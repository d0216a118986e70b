/** The upstream body, spliced from the fields of the client's body as they were sent. */

export interface ChatRequestField {
  readonly name: string;
  /** JSON text. */
  readonly value: Uint8Array;
}

export interface ChatRequestInput {
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

/** What a host does unlike OpenAI. */
export interface ChatQuirks {
  /** The host has no `developer` role: it becomes `system`. */
  readonly developerAsSystem: boolean;
  /** The host refuses `stream_options`; it tells usage unasked or never. */
  readonly noStreamOptions: boolean;
  /** Fields the host answers 400 to. */
  readonly dropFields: readonly string[];
  readonly renameFields: Readonly<Record<string, string>>;
  /** Mistral's word for `tool_choice: "required"` is `any`. */
  readonly requiredToolChoice: 'required' | 'any';
}

export const NO_QUIRKS: ChatQuirks = { developerAsSystem: false, noStreamOptions: false, dropFields: [], renameFields: {}, requiredToolChoice: 'required' };

/** Set by this module: a field of that name is never copied. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['model', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens']);

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

function withoutDeveloper(value: Uint8Array): Uint8Array {
  // The word is looked for first: messages may be megabytes, and few hold that role.
  if (!Buffer.from(value.buffer, value.byteOffset, value.length).includes('"developer"')) return value;
  const messages: unknown = JSON.parse(textOf(value));
  if (!Array.isArray(messages)) return value;
  const mapped = messages.map((message: unknown) =>
    typeof message === 'object' && message !== null && 'role' in message && message.role === 'developer' ? { ...message, role: 'system' } : message,
  );
  return Buffer.from(JSON.stringify(mapped));
}

function valueOf(field: ChatRequestField, input: ChatRequestInput, quirks: ChatQuirks): Uint8Array {
  if (field.name === 'messages' && quirks.developerAsSystem) return withoutDeveloper(field.value);
  if (field.name === 'temperature' && input.temperatureMax > 0 && Number(textOf(field.value)) > input.temperatureMax) {
    return Buffer.from(String(input.temperatureMax));
  }
  if (field.name === 'tool_choice' && quirks.requiredToolChoice === 'any' && textOf(field.value).trim() === '"required"') return Buffer.from('"any"');
  return field.value;
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

/** The body's bytes. Values are copied once and never re-serialised, the quirks apart. */
export function composeChatBody(input: ChatRequestInput, quirks: ChatQuirks = NO_QUIRKS): Buffer {
  let head = `{"model":${JSON.stringify(input.providerModelId)},"stream":${String(input.stream)}`;
  if (input.stream && !quirks.noStreamOptions) head += ',"stream_options":{"include_usage":true}';
  if (input.maxTokens !== undefined) head += `,${JSON.stringify(input.maxTokensParam || 'max_tokens')}:${String(input.maxTokens)}`;
  const parts: Uint8Array[] = [Buffer.from(head)];
  for (const field of input.fields) {
    if (OWN_FIELDS.has(field.name) || quirks.dropFields.includes(field.name)) continue;
    const name = Object.hasOwn(quirks.renameFields, field.name) ? (quirks.renameFields[field.name] ?? field.name) : field.name;
    parts.push(prefixOf(name), valueOf(field, input, quirks));
  }
  parts.push(CLOSING);
  return Buffer.concat(parts);
}
