/** The body of Cohere's v2 chat. */
import { readChat, jsonInstruction, type Chat, type ChatInput } from '../chat-request.js';
import type { Turn, UserPart } from '../chat-turns.js';
import { notTakenHere } from '../unsendable.js';

/** Bounds of `p`; ours are 0 and 1. */
const TOP_P_MIN = 0.01;
const TOP_P_MAX = 0.99;
/** Tokens of thinking; `high` and above think as long as they like. */
const THINKING_BUDGETS: Readonly<Record<string, number>> = { minimal: 512, low: 1_024, medium: 8_192 };

function userPart(part: UserPart): object {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.kind !== 'image') throw notTakenHere(part.param, part.kind === 'audio' ? 'This model takes no sound.' : 'This model takes no files.');
  const url = part.source.kind === 'url' ? part.source.url : `data:${part.source.mediaType};base64,${part.source.base64}`;
  return { type: 'image_url', image_url: { url, ...(part.detail === '' ? {} : { detail: part.detail }) } };
}

function message(turn: Turn): object {
  switch (turn.role) {
    case 'system':
      return { role: 'system', content: turn.text };
    case 'user': {
      const isText = turn.parts.every((part) => part.type === 'text');
      return { role: 'user', content: isText ? turn.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : turn.parts.map(userPart) };
    }
    case 'assistant': {
      if (turn.calls.length === 0) return { role: 'assistant', content: turn.text };
      const calls = turn.calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments || '{}' } }));
      // Content beside calls is refused there: what was said before them is their plan.
      return { role: 'assistant', ...(turn.text.trim() === '' ? {} : { tool_plan: turn.text }), tool_calls: calls };
    }
    case 'tool':
      return { role: 'tool', tool_call_id: turn.callId, content: turn.text };
  }
}

const isSaid = (turn: Turn): boolean => (turn.role === 'assistant' ? turn.text.trim() !== '' || turn.calls.length > 0 : turn.role !== 'user' || turn.parts.some((part) => part.type !== 'text' || part.text.trim() !== ''));

/** Turns of users and assistants that say nothing are refused there; as they came where there are no others. */
function saidTurns(turns: readonly Turn[]): readonly Turn[] {
  const said = turns.filter(isSaid);
  return said.length === 0 ? turns : said;
}

function toolSettings({ tools, toolChoice }: Chat): object {
  if (tools.length === 0) return {};
  // There is no word for one tool: it is the only one that is offered, and required.
  const offered = toolChoice.kind === 'named' ? tools.filter((tool) => tool.name === toolChoice.name) : tools;
  const choice = toolChoice.kind === 'auto' ? {} : { tool_choice: toolChoice.kind === 'none' ? 'NONE' : 'REQUIRED' };
  return {
    tools: offered.map((tool) => ({
      type: 'function',
      function: { name: tool.name, ...(tool.description === '' ? {} : { description: tool.description }), parameters: tool.parameters ?? { type: 'object', properties: {} } },
    })),
    ...choice,
    ...(offered.length > 0 && offered.every((tool) => tool.strict) ? { strict_tools: true } : {}),
  };
}

function thinking(effort: string, maxTokens: number | undefined): object {
  if (effort === 'none') return { thinking: { type: 'disabled' } };
  const budget = Object.hasOwn(THINKING_BUDGETS, effort) ? THINKING_BUDGETS[effort] : undefined;
  if (budget !== undefined) {
    // Thinking counts inside the limit: half of it stays for the answer.
    return { thinking: { type: 'enabled', token_budget: maxTokens === undefined ? budget : Math.max(1, Math.min(budget, Math.floor(maxTokens / 2))) } };
  }
  return effort === 'high' || effort === 'xhigh' || effort === 'max' ? { thinking: { type: 'enabled' } } : {};
}

const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value));

function settings(chat: Chat, { maxTokens }: ChatInput): object {
  const { temperature, topP, presencePenalty, frequencyPenalty, stop, logprobs, format } = chat;
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { p: clamp(topP, TOP_P_MIN, TOP_P_MAX) }),
    // Only penalties, no rewards.
    ...(presencePenalty === undefined ? {} : { presence_penalty: clamp(presencePenalty, 0, 1) }),
    ...(frequencyPenalty === undefined ? {} : { frequency_penalty: clamp(frequencyPenalty, 0, 1) }),
    ...(stop.length === 0 ? {} : { stop_sequences: stop }),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(logprobs ? { logprobs: true } : {}),
    ...(hasJsonMode(chat) ? { response_format: { type: 'json_object', ...(format.kind === 'json_schema' ? { json_schema: format.schema } : {}) } } : {}),
    ...thinking(chat.reasoningEffort, maxTokens),
  };
}

/** JSON mode beside tools is refused. */
function hasJsonMode({ format, tools }: Chat): boolean {
  return format.kind !== 'text' && tools.length === 0;
}

/** What must be said in words: the whole instruction beside tools, and that JSON is wanted in object mode, which may run on for ever else. */
function spokenFormat(chat: Chat): string {
  return hasJsonMode(chat) && chat.format.kind === 'json_schema' ? '' : jsonInstruction(chat.format);
}

/** Throws Unsendable on media that are not what they say and on parts this wire has no words for. */
export function composeCohereChat(input: ChatInput): Buffer {
  const chat = readChat(input);
  const instruction = spokenFormat(chat);
  const messages = saidTurns(chat.turns).map(message);
  const body = JSON.stringify({
    model: input.providerModelId,
    stream: input.stream,
    messages: instruction === '' ? messages : [{ role: 'system', content: instruction }, ...messages],
    ...toolSettings(chat),
    ...settings(chat, input),
  });
  const { seed } = chat;
  // With every digit, which JSON.stringify has no way to write.
  return chat.strings.write(seed === undefined ? body : `${body.slice(0, -1)},"seed":${(seed < 0n ? -seed : seed).toString()}}`);
}
