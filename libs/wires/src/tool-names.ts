/** Names of functions: one that a provider refuses is sent under another, and told to the client by its own. */
import { createHash } from 'node:crypto';
import { isObject } from './canonical.js';
import type { Chat } from './chat-request.js';
import type { Turn } from './chat-turns.js';
import type { ChatRequestField } from './openai-chat/request.js';

/** Which names a provider takes. */
export interface NameRule {
  /** The characters that one may hold, as in a class of a pattern. */
  readonly chars: string;
  /** Those that it may begin with. */
  readonly firstChars: string;
  readonly charsMax: number;
}

export interface ToolNames {
  /** A request with the names that are sent. */
  sent(chat: Chat): Chat;
  /** The client's own names by those that were sent for them, of the tools that are sent under another. */
  clientNames(fields: readonly ChatRequestField[]): ReadonlyMap<string, string>;
}

const NONE: ReadonlyMap<string, string> = new Map();
/** Hexadecimal digits: two of a request's names that are cut meet once in 10^7 requests of a hundred such tools each. */
const HASH_CHARS = 8;

function namesIn(tools: unknown): readonly string[] {
  return (Array.isArray(tools) ? (tools as readonly unknown[]) : []).flatMap((tool) => {
    const called = isObject(tool) ? tool['function'] : undefined;
    return isObject(called) && typeof called['name'] === 'string' ? [called['name']] : [];
  });
}

export function createToolNames({ chars, firstChars, charsMax }: NameRule): ToolNames {
  const taken = `[${firstChars}][${chars}]{0,${String(charsMax - 1)}}`;
  const whole = new RegExp(`^${taken}$`);
  const first = new RegExp(`^[${firstChars}]`);
  const other = new RegExp(`[^${chars}]`, 'g');
  /** Nearly no request has such a tool: the others are not parsed for it. */
  const oddName = new RegExp(`"name"\\s*:\\s*"(?!${taken}")`);

  const fits = (name: string): boolean => whole.test(name);
  /** The same for a name wherever it stands, and in each turn of a conversation. */
  const nameFor = (name: string): string => {
    if (fits(name)) return name;
    const fit = name.slice(0, charsMax).replace(other, '_');
    const begun = first.test(fit) ? fit : `_${fit}`;
    // Nothing of it is lost.
    if (begun.length <= charsMax && begun.endsWith(name)) return begun;
    return `${begun.slice(0, charsMax - HASH_CHARS - 1)}_${createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARS)}`;
  };
  const allFit = ({ tools, toolChoice, turns }: Chat): boolean =>
    tools.every(({ name }) => fits(name)) &&
    (toolChoice.kind !== 'named' || fits(toolChoice.name)) &&
    turns.every((turn) => (turn.role === 'assistant' ? turn.calls.every(({ name }) => fits(name)) : turn.role !== 'tool' || fits(turn.name)));
  const turnFor = (turn: Turn): Turn => {
    if (turn.role === 'assistant') return { ...turn, calls: turn.calls.map((call) => ({ ...call, name: nameFor(call.name) })) };
    return turn.role === 'tool' ? { ...turn, name: nameFor(turn.name) } : turn;
  };

  return {
    sent: (chat) => {
      if (allFit(chat)) return chat;
      const { tools, toolChoice, turns } = chat;
      return {
        ...chat,
        tools: tools.map((tool) => ({ ...tool, name: nameFor(tool.name) })),
        toolChoice: toolChoice.kind === 'named' ? { kind: 'named', name: nameFor(toolChoice.name) } : toolChoice,
        turns: turns.map(turnFor),
      };
    },
    clientNames: (fields) => {
      const value = fields.find(({ name }) => name === 'tools')?.value;
      const text = value === undefined ? '' : Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8');
      if (!oddName.test(text)) return NONE;
      const names = namesIn(JSON.parse(text));
      const own = new Set(names);
      // A tool that has that name by itself is meant by it.
      return new Map(names.flatMap((name) => (fits(name) || own.has(nameFor(name)) ? [] : [[nameFor(name), name] as const])));
    },
  };
}
