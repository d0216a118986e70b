/** Tool calls of one streamed choice: dense indexes from 0, whatever the host numbers them. */
import { CALLS_MAX, Garbage, isObject, type CountArguments, type FinishReason, type JsonObject } from '../canonical.js';
import { isBareObject, isObjectText } from '../call-arguments.js';
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
  progress: JsonProgress;
  /** They are an empty object that stood with the call's name, and is not told yet: at some hosts the arguments follow it. */
  isBare: boolean;
  /** Characters of whole arguments that came again, as some hosts repeat them with the finish: not told. */
  repeated: number;
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

/** What of a further piece is told. */
function toldOf(call: OpenCall, piece: string, countArguments: CountArguments): string {
  let text = piece;
  if (call.isBare) {
    if (text.trim() === '') return '';
    call.isBare = false;
    call.arguments = '';
    call.progress = new JsonProgress();
  } else if (text !== '' && call.progress.isWhole(call.arguments) && call.arguments.trimStart().startsWith('{')) {
    const again = call.repeated === 0 ? text.trimStart() : text;
    if (call.arguments.startsWith(again, call.repeated)) {
      call.repeated = (call.repeated + again.length) % call.arguments.length;
      return '';
    }
    text = call.arguments.slice(0, call.repeated) + text;
  }
  countArguments(text.length);
  call.arguments += text;
  call.progress.push(text);
  return text;
}

/** `seed` makes ids for calls that came without one. `countArguments`: of the whole answer. */
export function createToolCallNumbering(seed: string, countArguments: CountArguments): ToolCallNumbering {
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
    // DeepSeek's models at Ollama's cloud begin a call under one number, and go on with it under another.
    if (last === undefined && name === '') return calls.slice(-1).find((call) => call.index !== -1 && (call.isBare || !call.progress.isWhole(call.arguments)));
    if (last === undefined || name === '' || last.name === '') return last;
    if (name !== last.name) return undefined;
    return last.arguments === '' || (upstreamIndex !== undefined && !last.progress.isWhole(last.arguments)) ? last : undefined;
  };

  const tell = (call: OpenCall): ToldCall => {
    call.index = told;
    told += 1;
    const id = call.id === '' || ids.has(call.id) ? `call_${seed}${String(call.index)}` : call.id;
    ids.add(id);
    return { index: call.index, id, type: 'function', function: { name: call.name, arguments: call.isBare ? '' : call.arguments }, ...(call.extra === undefined ? {} : { extra_content: call.extra }) };
  };

  const mapOne = (raw: JsonObject): readonly ToldCall[] => {
    const piece = pieceOf(raw);
    const open = find(piece);
    if (open === undefined) {
      if (calls.length >= CALLS_MAX) throw new Garbage('More calls than an answer may hold.');
      countArguments(piece.arguments.length);
      const call: OpenCall = { ...piece, index: -1, progress: new JsonProgress(), isBare: isBareObject(piece.arguments), repeated: 0 };
      call.progress.push(piece.arguments);
      calls.push(call);
      return call.name === '' ? [] : [tell(call)];
    }
    const text = toldOf(open, piece.arguments, countArguments);
    if (open.index === -1) {
      open.name = piece.name;
      open.extra ??= piece.extra;
      return open.name === '' ? [] : [tell(open)];
    }
    if (text === '' && piece.extra === undefined) return [];
    return [{ index: open.index, function: { arguments: text }, ...(piece.extra === undefined ? {} : { extra_content: piece.extra }) }];
  };

  return {
    map: (raw) => (Array.isArray(raw) ? (raw as readonly unknown[]).filter(isObject).flatMap(mapOne) : []),
    close: (isCut) =>
      calls
        .filter((call, at) => call.index !== -1 && (call.isBare || call.arguments.trim() === '') && !(isCut && at === calls.length - 1))
        .map((call) => {
          call.isBare = false;
          call.arguments = '{}';
          return { index: call.index, function: { arguments: '{}' } };
        }),
    areWhole: () => calls.every((call) => call.index === -1 || (!call.isBare && isObjectText(call.arguments))),
    isCutShort: () => calls.some((call) => call.index !== -1 && call.progress.isOpen() && !call.arguments.trimEnd().endsWith('}')),
    hasUntold: () => told < calls.length,
    count: () => told,
  };
}
