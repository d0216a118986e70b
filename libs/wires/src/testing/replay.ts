/** Replays a provider's stream through a transducer and checks what every wire promises. */
import type { StreamEvent, StreamSummary, StreamTransducer } from '../canonical.js';

interface CanonicalCall {
  readonly index: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly extra_content?: unknown;
}

export interface CanonicalDelta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly CanonicalCall[];
  readonly extra_content?: unknown;
}

export interface CanonicalChoice {
  readonly index: number;
  readonly delta: CanonicalDelta;
  readonly logprobs: unknown;
  readonly finish_reason: string | null;
}

export type ReplayedEvent = (Omit<StreamEvent & { readonly type: 'chunk' }, 'choices'> & { readonly choices: readonly CanonicalChoice[] }) | Exclude<StreamEvent, { readonly type: 'chunk' }>;

export interface Replayed {
  readonly events: readonly ReplayedEvent[];
  readonly summary: StreamSummary;
}

export function replay(create: () => StreamTransducer, parts: readonly Uint8Array[]): Replayed {
  const transducer = create();
  const events = [...parts.flatMap((part) => transducer.push(part)), ...transducer.close()];
  return {
    events: events.map((event) => (event.type === 'chunk' ? { ...event, choices: JSON.parse(Buffer.from(event.choices).toString('utf8')) as CanonicalChoice[] } : event)),
    summary: transducer.summary(),
  };
}

/** The stream cut in two at every byte, and into single bytes. */
export function everySplit(bytes: Uint8Array): readonly (readonly Uint8Array[])[] {
  const halves = Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)]);
  return [...halves, Array.from(bytes, (byte) => Uint8Array.of(byte))];
}

export interface GatheredCall {
  id: string;
  name: string;
  arguments: string;
  extra: unknown;
}

export interface GatheredChoice {
  content: string;
  reasoning: string;
  calls: GatheredCall[];
  reasons: string[];
}

/** What a client puts together of the chunks, by choice. */
export function gather(events: readonly ReplayedEvent[]): ReadonlyMap<number, GatheredChoice> {
  const choices = new Map<number, GatheredChoice>();
  for (const event of events) {
    if (event.type !== 'chunk') continue;
    for (const { index, delta, finish_reason: reason } of event.choices) {
      const choice = choices.get(index) ?? { content: '', reasoning: '', calls: [], reasons: [] };
      choices.set(index, choice);
      choice.content += delta.content ?? '';
      choice.reasoning += delta.reasoning_content ?? '';
      for (const call of delta.tool_calls ?? []) {
        const known = (choice.calls[call.index] ??= { id: '', name: '', arguments: '', extra: undefined });
        known.id ||= call.id ?? '';
        known.name ||= call.function?.name ?? '';
        known.arguments += call.function?.arguments ?? '';
        known.extra ??= call.extra_content;
      }
      if (reason !== null) choice.reasons.push(reason);
    }
  }
  return choices;
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** What a stream that is cut off at any of its bytes does wrong, in words; empty = nothing. All but its very end makes a failure of it. */
export function brokenCuts(create: () => StreamTransducer, bytes: Uint8Array): readonly string[] {
  const whole = gather(replay(create, [bytes]).events);
  return Array.from({ length: bytes.length }, (_, length) => length).flatMap((length) => {
    const cut = replay(create, [bytes.subarray(0, length)]);
    const said = gather(cut.events);
    const isInvented = [...said].some(([index, choice]) => whole.get(index)?.content.startsWith(choice.content) !== true);
    const isLost = cut.events.at(-1)?.type === 'done' && JSON.stringify([...said]) !== JSON.stringify([...whole]);
    return [...brokenInvariants(cut), ...(isInvented ? ['something was said that was not'] : []), ...(isLost ? ['it ended well, and something is missing'] : [])].map((wrong) => `cut at ${String(length)}: ${wrong}`);
  });
}

/** What is wrong with the events of a stream, in words; empty = nothing. Holds for every wire and every input. */
export function brokenInvariants({ events, summary }: Replayed): readonly string[] {
  const wrong: string[] = [];
  const last = events.at(-1);
  const ends = events.filter((event) => event.type !== 'chunk');
  if (ends.length !== 1 || last?.type === 'chunk') wrong.push('exactly one end, and it comes last');
  const roles = new Set<number>();
  for (const event of events) {
    if (event.type !== 'chunk') continue;
    if (event.choices.length === 0) wrong.push('no chunk is empty');
    for (const { index, delta } of event.choices) {
      if ((delta.role !== undefined) === roles.has(index)) wrong.push('the role stands in the first delta of a choice and there alone');
      roles.add(index);
    }
  }
  for (const choice of gather(events).values()) {
    if ([...choice.calls.keys()].some((position) => choice.calls[position] === undefined)) wrong.push('calls are dense from 0');
    if (choice.calls.some((call) => call.id === '' || call.name === '')) wrong.push('each call has an id and a name');
    if (new Set(choice.calls.map((call) => call.id)).size !== choice.calls.length) wrong.push('ids of calls differ');
    if (choice.reasons.length > 1 || (last?.type === 'done' && choice.reasons.length === 0)) wrong.push('exactly one finish a choice');
    const [reason] = choice.reasons;
    if (reason === 'tool_calls' && choice.calls.length === 0) wrong.push('tool_calls without a call');
    if (reason === 'stop' && choice.calls.length > 0) wrong.push('stop beside calls');
    if (reason === 'tool_calls' && !choice.calls.every((call) => isJson(call.arguments))) wrong.push('arguments are JSON');
  }
  const { usage } = summary;
  if (usage !== undefined && Object.values(usage.tokens).some((count) => !Number.isInteger(count) || count < 0)) wrong.push('token counts are integers from 0');
  return wrong;
}
