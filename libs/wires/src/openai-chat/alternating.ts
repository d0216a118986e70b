/** A conversation for hosts that know no tools and want user and assistant to take turns, the user first and last (Perplexity). */
import { isObject, type JsonObject } from '../canonical.js';
import { plainText, readTurns, type Turn } from '../chat-turns.js';
import { answeredInWords, calledInWords } from '../in-words.js';
import { namedContent } from '../speakers.js';

type Content = string | readonly unknown[];

interface Said {
  readonly role: 'user' | 'assistant';
  content: Content;
  /** The content, where it is parts that more may be added to: copied with each message, those of thousands would take the square of their number. */
  own?: unknown[];
}

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);
const GAP = '\n\n';

const partsOf = (content: Content): readonly unknown[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : content);

function join(said: Said, content: Content): void {
  if (typeof said.content === 'string' && typeof content === 'string') {
    said.content += `${GAP}${content}`;
    return;
  }
  said.content = said.own ??= [...partsOf(said.content)];
  for (const part of partsOf(content)) said.own.push(part);
}

const isSaid = (text: string): boolean => text.trim() !== '';

/** What a user's message says, as it came, and who says it; undefined = nothing. */
function userContent(message: JsonObject): Content | undefined {
  const content = namedContent(message['content'], message['name']);
  if (typeof content === 'string') return isSaid(content) ? content : undefined;
  if (!Array.isArray(content)) return undefined;
  const parts = content as readonly unknown[];
  return parts.some((part) => isObject(part) && part['type'] !== 'text') || isSaid(plainText(parts)) ? parts : undefined;
}

function contentOf(turn: Turn, message: JsonObject): Content | undefined {
  switch (turn.role) {
    case 'user':
      return userContent(message);
    case 'tool':
      return answeredInWords(turn.name, turn.text);
    case 'assistant': {
      const texts = [turn.text, ...turn.calls.map((call) => calledInWords(call.name, call.arguments))].filter(isSaid);
      return texts.length === 0 ? undefined : texts.join(GAP);
    }
    case 'system':
      return undefined;
  }
}

/** Neighbours of one role become one message, and words of the system come first, or alone become the user's. As it came where nobody says anything. */
export function takeTurns(messages: readonly unknown[]): readonly unknown[] {
  const known = messages.filter(isObject).filter(({ role }) => ROLES.has(role));
  // A user's content stays as it came, so none of it is read.
  const turns = readTurns(known.map((message) => (message['role'] === 'user' ? { role: 'user', content: '' } : message)));
  const system = turns.flatMap((turn) => (turn.role === 'system' && isSaid(turn.text) ? [turn.text] : []));
  const said: Said[] = [];
  turns.forEach((turn, at) => {
    const content = contentOf(turn, known[at] ?? {});
    if (content === undefined) return;
    const role = turn.role === 'assistant' ? 'assistant' : 'user';
    const last = said.at(-1);
    if (last?.role === role) join(last, content);
    else said.push({ role, content });
  });
  const alone = said.length === 0 ? system.pop() : undefined;
  if (alone !== undefined) said.push({ role: 'user', content: alone });
  if (said.length === 0) return messages;
  if (said[0]?.role === 'assistant') said.unshift({ role: 'user', content: 'Continue.' });
  if (said.at(-1)?.role === 'assistant') said.push({ role: 'user', content: 'Continue.' });
  return [...(system.length === 0 ? [] : [{ role: 'system', content: system.join(GAP) }]), ...said.map(({ role, content }) => ({ role, content }))];
}
