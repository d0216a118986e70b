/** The older form of calls, `function_call` and the role `function`, for hosts that take no field of a message but theirs. */
import { isObject } from '../canonical.js';
import { argumentsText } from './message.js';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** As tool calls, each result as that of the last call before it. Messages without any, and a result that nothing called for, stay as they came. */
export function withToolCalls(messages: readonly unknown[]): readonly unknown[] {
  let lastId = '';
  return messages.map((message, at) => {
    if (!isObject(message)) return message;
    if (message['role'] === 'function' && lastId !== '') return { ...message, role: 'tool', content: message['content'] ?? '', tool_call_id: lastId };
    if (message['role'] !== 'assistant') return message;
    const { function_call: older, ...rest } = message;
    const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [];
    if (!isObject(older)) {
      const last = calls.at(-1);
      lastId = (isObject(last) ? textOf(last['id']) : '') || lastId;
      return message;
    }
    lastId = `call_fn_${String(at)}`;
    return { ...rest, tool_calls: [...calls, { id: lastId, type: 'function', function: { name: textOf(older['name']), arguments: argumentsText(older['arguments']) } }] };
  });
}
