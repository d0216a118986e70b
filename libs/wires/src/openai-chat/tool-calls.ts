/** Tool calls of one streamed choice: dense indexes from 0, whatever the host numbers them. */
import { CALLS_MAX, Garbage, isObject, type FinishReason, type JsonObject } from '../canonical.js';
import { isObjectText } from '../call-arguments.js';
import { finishWithCalls } from '../choice-parts.js';
import { JsonProgress } from './json-progress.js';
import { argumentsText, type ToldCall } from './message.js';

interface OpenCall {
  /** Position among the calls that were told; -1 while the name is awaited. */
  index: number;
  /** The host's; empty = none. */
  readonly id: string;
  readonly upstreamIndex: number | undefined;
  name: string;
  /** All that came so far. */
  arguments: string;
  readonly progress: JsonProgress;
  extra: unknown;
}

/** One item of a host's `delta.tool_calls`. */
interface Piece {
  readonly id: string;
  readonly upstreamIndex: number | undefined;
  readonly name: string;
  readonly arguments: string;
  readonly extra: unknown;
}

export interface ToolCallNumbering {
  /** Canonical `delta.tool_calls` of a host's; empty when nothing of it can be told yet. Throws Garbage. */
  map(raw: unknown): readonly ToldCall[];
  /** Canonical items for calls that came without arguments: those of a whole call always parse. Where the answer was cut off the last one stays as it is. */
  close(isCut: boolean): readonly object[];
  /** Whether each call that was told has all of its arguments. */
  areWhole(): boolean;
  /** Whether the arguments of one break off: no model ends them so. Behind a last brace it is rather a quote that is wrong. */
  isCutShort(): boolean;
  /** Whether one never got a name. */
  hasUntold(): boolean;
  /** Calls told. One that never gets a name is not: nobody could answer it. */
  count(): number;
}

/** What ends a choice with these calls. vLLM says `tool_calls` of a stream that its limit ended within one. */
export function finishOf(given: FinishReason, calls: ToolCallNumbering | undefined): FinishReason {
  const reason = finishWithCalls(given, calls?.count() ?? 0);
  return reason === 'tool_calls' && calls?.isCutShort() === true ? 'length' : reason;
}

function pieceOf(raw: JsonObject): Piece {
  const fn = isObject(raw['function']) ? raw['function'] : {};
  return {
    id: typeof raw['id'] === 'string' ? raw['id'] : '',
    upstreamIndex: typeof raw['index'] === 'number' ? raw['index'] : undefined,
    name: typeof fn['name'] === 'string' ? fn['name'] : '',
    arguments: argumentsText(fn['arguments']),
    extra: raw['extra_content'],
  };
}

/** `seed` makes ids for calls that came without one. */
export function createToolCallNumbering(seed: string): ToolCallNumbering {
  const calls: OpenCall[] = [];
  const ids = new Set<string>();
  let told = 0;

  /** The call that a piece goes on with. Hosts that number every call 0 are told apart by ids, and where there are none by names. */
  const find = ({ id, upstreamIndex, name }: Piece): OpenCall | undefined => {
    const isPlace = (call: OpenCall): boolean => upstreamIndex === undefined || call.upstreamIndex === undefined || call.upstreamIndex === upstreamIndex;
    if (id !== '') {
      const known = calls.findLast((call) => call.id === id && isPlace(call)) ?? (name === '' ? calls.findLast((call) => call.id === id) : undefined);
      // Some hosts give each piece an id of its own: only the first one has the name.
      return known ?? (name === '' && upstreamIndex !== undefined ? calls.findLast((call) => call.upstreamIndex === upstreamIndex) : undefined);
    }
    const last = calls.findLast((call) => upstreamIndex === undefined || call.upstreamIndex === upstreamIndex);
    if (last === undefined || name === '' || last.name === '') return last;
    if (name !== last.name) return undefined;
    return last.arguments === '' || (upstreamIndex !== undefined && !last.progress.isWhole(last.arguments)) ? last : undefined;
  };

  const tell = (call: OpenCall): ToldCall => {
    call.index = told;
    told += 1;
    const id = call.id === '' || ids.has(call.id) ? `call_${seed}${String(call.index)}` : call.id;
    ids.add(id);
    return { index: call.index, id, type: 'function', function: { name: call.name, arguments: call.arguments }, ...(call.extra === undefined ? {} : { extra_content: call.extra }) };
  };

  const mapOne = (raw: JsonObject): readonly ToldCall[] => {
    const piece = pieceOf(raw);
    const open = find(piece);
    if (open === undefined) {
      if (calls.length >= CALLS_MAX) throw new Garbage('More calls than an answer may hold.');
      const call: OpenCall = { ...piece, index: -1, progress: new JsonProgress() };
      call.progress.push(piece.arguments);
      calls.push(call);
      return call.name === '' ? [] : [tell(call)];
    }
    open.arguments += piece.arguments;
    open.progress.push(piece.arguments);
    if (open.index === -1) {
      open.name = piece.name;
      open.extra ??= piece.extra;
      return open.name === '' ? [] : [tell(open)];
    }
    return [{ index: open.index, function: { arguments: piece.arguments }, ...(piece.extra === undefined ? {} : { extra_content: piece.extra }) }];
  };

  return {
    map: (raw) => (Array.isArray(raw) ? (raw as readonly unknown[]).filter(isObject).flatMap(mapOne) : []),
    close: (isCut) =>
      calls
        .filter((call, at) => call.index !== -1 && call.arguments.trim() === '' && !(isCut && at === calls.length - 1))
        .map((call) => {
          call.arguments = '{}';
          return { index: call.index, function: { arguments: '{}' } };
        }),
    areWhole: () => calls.every((call) => call.index === -1 || isObjectText(call.arguments)),
    isCutShort: () => calls.some((call) => call.index !== -1 && call.progress.isOpen() && !call.arguments.trimEnd().endsWith('}')),
    hasUntold: () => told < calls.length,
    count: () => told,
  };
}
