/** A request with plugins' tools: the tools that the model is offered, and the messages of each round. JSON texts are concatenated, not parsed and written again. */
import type { ChatRequest, ForwardedField } from './chat-request.js';

/** Most functions offered to a model, those of plugins included. */
export const TOOLS_MAX = 128;
/** Rough size of a token of prompt. */
const BYTES_PER_TOKEN = 4;

/** The text of a JSON array with `added` (JSON texts) appended. */
function appended(array: Buffer | undefined, added: readonly string[]): Buffer {
  const inner = (array?.toString('utf8') ?? '[]').trim().slice(1, -1).trim();
  return Buffer.from(`[${[...(inner === '' ? [] : [inner]), ...added].join(',')}]`);
}

function withField(fields: readonly ForwardedField[], name: string, value: Buffer): readonly ForwardedField[] {
  return fields.some((field) => field.name === name) ? fields.map((field) => (field.name === name ? { name, value } : field)) : [...fields, { name, value }];
}

const fieldOf = ({ fields }: Pick<ChatRequest, 'fields'>, name: string): Buffer | undefined => fields.find((field) => field.name === name)?.value;

function grown(request: ChatRequest, fields: readonly ForwardedField[], bytes: number): ChatRequest {
  return { ...request, fields, promptBytes: request.promptBytes + bytes, promptTokens: request.promptTokens + Math.ceil(bytes / BYTES_PER_TOKEN) };
}

/** Names of the client's own tools, in order; '' for one without a name. */
export function clientToolNames(request: Pick<ChatRequest, 'fields'>): readonly string[] {
  const tools = fieldOf(request, 'tools');
  if (tools === undefined) return [];
  return (JSON.parse(tools.toString('utf8')) as readonly { readonly function?: { readonly name?: unknown } }[]).map((tool) => (typeof tool.function?.name === 'string' ? tool.function.name : ''));
}

/** The request with further tools after the client's own; `definitions` are JSON texts. */
export function withTools(request: ChatRequest, definitions: readonly string[]): ChatRequest {
  const before = fieldOf(request, 'tools');
  const tools = appended(before, definitions);
  const { waitingToolFields = [], needs } = request;
  const choice = toolChoiceOf(request);
  const fields = [...withField(request.fields, 'tools', tools), ...waitingToolFields];
  const added = grown(request, fields, tools.length - (before?.length ?? 0));
  const params = [...(needs.params ?? []), ...waitingToolFields.map(({ name }) => name)];
  return { ...added, waitingToolFields: [], needs: { ...needs, tools: true, params, forcedToolChoice: needs.forcedToolChoice === true || choice?.isForced === true, parallelToolCalls: params.includes('parallel_tool_calls') } };
}

/** The `tool_choice` of a request, with or without tools of its own; undefined = none. */
export function toolChoiceOf({ fields, waitingToolFields = [] }: Pick<ChatRequest, 'fields' | 'waitingToolFields'>): { readonly isForced: boolean; /** Empty = any. */ readonly name: string } | undefined {
  const field = fieldOf({ fields: waitingToolFields }, 'tool_choice') ?? fieldOf({ fields }, 'tool_choice');
  if (field === undefined) return undefined;
  const told = JSON.parse(field.toString('utf8')) as string | { readonly function: { readonly name: string } };
  return typeof told === 'string' ? { isForced: told === 'required', name: '' } : { isForced: true, name: told.function.name };
}

/**
 * The request of the next round: `added` are messages as JSON texts. A tool that the client forced has been called, so the
 * choice is `auto`, or `none` if the model must answer now.
 */
export function continuedRequest(request: ChatRequest, added: readonly string[], choice: 'auto' | 'none'): ChatRequest {
  const bytes = added.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
  const messages = withField(request.fields, 'messages', appended(fieldOf(request, 'messages'), added));
  const fields = choice === 'none' ? withField(messages, 'tool_choice', Buffer.from('"none"')) : messages.filter(({ name }) => name !== 'tool_choice');
  return { ...grown(request, fields, bytes), messageCount: request.messageCount + added.length };
}
