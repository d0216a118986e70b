/** Tool calls of one streamed choice: dense indexes from 0, whatever the host numbers them. */
import { isObject, type JsonObject } from '../canonical.js';
import { argumentsText } from './message.js';

interface OpenCall {
  id: string;
  readonly upstreamIndex: number | undefined;
  hasName: boolean;
  hasArguments: boolean;
}

export interface ToolCallNumbering {
  /** Canonical `delta.tool_calls` of a host's; empty when nothing of it is a call. */
  map(raw: unknown): readonly object[];
  count(): number;
}

/** `seed` makes ids for calls that came without one. */
export function createToolCallNumbering(seed: string): ToolCallNumbering {
  const calls: OpenCall[] = [];

  const find = (id: string, upstreamIndex: number | undefined, startsAnew: boolean): number => {
    if (id !== '') {
      const known = calls.findIndex((call) => call.id === id);
      if (known !== -1) return known;
    }
    // Without an id the newest call of that index goes on; hosts that number every call 0 are told apart by ids.
    if (id === '' && !startsAnew) {
      for (let at = calls.length - 1; at >= 0; at -= 1) if (upstreamIndex === undefined || calls[at]?.upstreamIndex === upstreamIndex) return at;
    }
    return -1;
  };

  const mapOne = (raw: JsonObject): object => {
    const fn = isObject(raw['function']) ? raw['function'] : {};
    const id = typeof raw['id'] === 'string' ? raw['id'] : '';
    const upstreamIndex = typeof raw['index'] === 'number' ? raw['index'] : undefined;
    const name = typeof fn['name'] === 'string' ? fn['name'] : '';
    const args = argumentsText(fn['arguments']);
    const extra = raw['extra_content'] === undefined ? {} : { extra_content: raw['extra_content'] };
    const candidate = find(id, upstreamIndex, false);
    const open = calls[candidate];
    const startsAnew = id === '' && name !== '' && open !== undefined && open.hasName && open.hasArguments;
    if (open !== undefined && !startsAnew) {
      open.hasArguments ||= args !== '';
      const isLateName = name !== '' && !open.hasName;
      open.hasName ||= name !== '';
      return { index: candidate, function: { ...(isLateName ? { name } : {}), arguments: args }, ...extra };
    }
    const index = calls.length;
    const ownId = id === '' ? `call_${seed}${String(index)}` : id;
    calls.push({ id: ownId, upstreamIndex, hasName: name !== '', hasArguments: args !== '' });
    return { index, id: ownId, type: 'function', function: { name, arguments: args }, ...extra };
  };

  return {
    map: (raw) => (Array.isArray(raw) ? (raw as readonly unknown[]).filter(isObject).map(mapOne) : []),
    count: () => calls.length,
  };
}
