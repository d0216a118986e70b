/**
 * Chunks of plain text, recognised without being parsed: a host puts the same bytes around each piece of a stream's
 * text. The first one is recognised by a pattern, and what stood around its text is compared from then on.
 */
import { endOfText } from './json-text.js';

/**
 * A chunk that is canonical as it stands: one choice with text, no finish, no usage, no error. Everything before
 * `choices` is a flat field and none is an error, so the match is at top level. Groups: the choices array, index, role, text, what follows the array.
 */
const ORDINARY =
  /^\{(?:"(?!error":[^n])[a-z_]+":(?:"[^"\\]*"|[0-9.]+|null),)*"choices":(\[\{"index":(0|[1-9]\d?),"delta":\{("role":"assistant",)?"content":"([^"\\\x00-\x1f]*(?:\\["\\/bfnrtu][^"\\\x00-\x1f]*)*)"(?:,"refusal":null)?\},(?:"logprobs":null,)?"finish_reason":null\}\])((?:,"(?:usage|error)":null|,"(?:obfuscation|p|system_fingerprint|service_tier|id|object|model)":"[^"\\]*"|,"service_tier":null|,"created":\d+)*\})$/;
/** What may follow the choices array; changes from chunk to chunk at hosts that pad (OpenAI with `obfuscation`, Mistral with `p`). */
const REST = /^(?:,"(?:usage|error)":null|,"(?:obfuscation|p|system_fingerprint|service_tier|id|object|model)":"[^"\\]*"|,"service_tier":null|,"created":\d+)*\}$/;
/** Longer chunks are parsed: a pattern over megabytes would hold the loop. */
const ORDINARY_BYTES_MAX = 8_192;

export interface Ordinary {
  readonly index: number;
  readonly hasRole: boolean;
  /** Where the choices array and the text in it stand, in the bytes that were looked at. */
  readonly choicesFrom: number;
  readonly choicesTo: number;
  readonly textFrom: number;
  readonly textTo: number;
  readonly systemFingerprint: string;
  readonly serviceTier: string;
}

/** Compared byte by byte: for what is as short as a tail the call into native code costs more. */
function isAt(bytes: Buffer, at: number, expected: Buffer, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

/** By the pattern; undefined when the chunk has to be parsed. */
export function recognise(bytes: Buffer, from: number, to: number): Ordinary | undefined {
  if (to - from > ORDINARY_BYTES_MAX) return undefined;
  const chunk = bytes.toString('latin1', from, to);
  const match = ORDINARY.exec(chunk);
  if (match === null) return undefined;
  const [, choices = '', index = '0', role, text = '', rest = ''] = match;
  const choicesTo = to - rest.length;
  const choicesFrom = choicesTo - choices.length;
  const textFrom = choicesFrom + choices.indexOf('"content":"') + 11;
  const textTo = textFrom + text.length;
  // The pattern reads bytes: escapes and UTF-8 are looked at here.
  if (endOfText(bytes, textFrom, to) !== textTo) return undefined;
  return {
    index: Number(index), hasRole: role !== undefined, choicesFrom, choicesTo, textFrom, textTo,
    systemFingerprint: /"system_fingerprint":"([^"\\]*)"/.exec(chunk)?.[1] ?? '',
    serviceTier: /"service_tier":"([^"\\]*)"/.exec(chunk)?.[1] ?? '',
  };
}

/** What a host put around the text of a chunk that was recognised by the pattern. */
export class Envelope {
  readonly index: number;
  private readonly lead: Buffer;
  private readonly tail: Buffer;
  private readonly choicesAt: number;
  /** Bytes of the tail that belong to the choices array. */
  private readonly choicesTail: number;

  constructor(bytes: Buffer, from: number, to: number, ordinary: Ordinary) {
    this.index = ordinary.index;
    this.lead = Buffer.from(bytes.subarray(from, ordinary.textFrom));
    this.tail = Buffer.from(bytes.subarray(ordinary.textTo, to));
    this.choicesAt = ordinary.choicesFrom - from;
    this.choicesTail = ordinary.choicesTo - ordinary.textTo;
  }

  /** Where the text begins in a chunk of this envelope. */
  textFrom(from: number): number {
    return from + this.lead.length;
  }

  /** Where the text ends in the chunk from `from` up to `to`; -1 when the chunk has not this envelope. */
  textTo(bytes: Buffer, from: number, to: number): number {
    const { lead, tail, choicesTail } = this;
    const textFrom = from + lead.length;
    if (textFrom >= to || bytes.compare(lead, 0, lead.length, from, textFrom) !== 0) return -1;
    const textTo = endOfText(bytes, textFrom, to);
    if (textTo === -1) return -1;
    if (to - textTo === tail.length && isAt(bytes, textTo, tail, tail.length)) return textTo;
    const rest = textTo + choicesTail;
    if (rest >= to || to - rest > ORDINARY_BYTES_MAX || !isAt(bytes, textTo, tail, choicesTail)) return -1;
    return REST.test(bytes.toString('latin1', rest, to)) ? textTo : -1;
  }

  /** The choices array around texts that stand in chunks of this envelope one after the other: one text. */
  choices(texts: readonly TextPiece[]): Buffer {
    const { lead, tail, choicesAt, choicesTail } = this;
    const [first] = texts;
    const choicesLead = lead.length - choicesAt;
    if (texts.length === 1 && first !== undefined) return first.bytes.subarray(first.from - choicesLead, first.to + choicesTail);
    let length = choicesLead + choicesTail;
    for (const { from, to } of texts) length += to - from;
    const joined = Buffer.allocUnsafe(length);
    let at = lead.copy(joined, 0, choicesAt);
    for (const { bytes, from, to } of texts) at += bytes.copy(joined, at, from, to);
    tail.copy(joined, at, 0, choicesTail);
    return joined;
  }
}

/** The text of one chunk, as it stands in its bytes. */
export interface TextPiece {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}
