/** A whole answer of one plain text, given on without its text being decoded: only what stands around it is parsed. */
import { isObject, type FinishReason, type JsonObject } from '../canonical.js';
import { mapFinishReason } from './finish-reason.js';
import { decodedBytes, endOfText } from './json-text.js';

/** Everything before `choices` is a flat field, so the match is at top level. Groups: those fields. */
const LEAD = /^\s*\{((?:\s*"[a-z_]+"\s*:\s*(?:"[^"\\\x00-\x1f\x7f-\xff]*"|\d+|null)\s*,)*)\s*"choices"\s*:\s*\[\s*\{\s*"index"\s*:\s*0\s*,\s*"message"\s*:\s*\{\s*"role"\s*:\s*"assistant"\s*,\s*"content"\s*:\s*"/;
/** From the text's closing quote to the end of `choices`. Groups: annotations, finish reason. */
const TAIL = /^"\s*(?:,\s*"refusal"\s*:\s*null\s*)?(,\s*"annotations"\s*:\s*\[\s*\]\s*)?\}\s*(?:,\s*"logprobs"\s*:\s*null\s*)?,\s*"finish_reason"\s*:\s*"([a-z_]+)"\s*\}\s*\]\s*/;
const LEAD_BYTES_MAX = 1_024;
const TAIL_BYTES_MAX = 4_096;
const CONTENT = Buffer.from('"content"');
/** From `"content"` to the quote that opens the text. */
const OPENING_BYTES_MAX = 16;

export interface PlainAnswer {
  /** JSON array text of the one canonical choice. */
  readonly choices: Buffer;
  /** All top-level fields but `choices`. */
  readonly fields: JsonObject;
  readonly finishReason: FinishReason;
  readonly outputBytes: number;
  readonly thoughtBytes: number;
}

const OPENING = Buffer.from('[{"index":0,"message":{"role":"assistant","content":"');

/** undefined when the body is anything else, or no JSON: it has to be parsed as a whole. */
export function readPlainAnswer(body: Buffer): PlainAnswer | undefined {
  const content = body.indexOf(CONTENT);
  if (content === -1 || content > LEAD_BYTES_MAX) return undefined;
  const lead = LEAD.exec(body.toString('latin1', 0, content + OPENING_BYTES_MAX));
  if (lead === null) return undefined;
  const [matched, flat = ''] = lead;
  const textFrom = matched.length;
  const textTo = endOfText(body, textFrom, body.length);
  if (textTo === -1 || body.length - textTo > TAIL_BYTES_MAX) return undefined;
  const after = body.toString('utf8', textTo);
  const tail = TAIL.exec(after);
  if (tail === null) return undefined;
  const [closing, annotations, reason = ''] = tail;
  const finishReason = mapFinishReason(reason, false);
  const fields = parseFields(flat, after.slice(closing.length));
  if (fields === undefined || finishReason === 'error') return undefined;
  const end = `","refusal":null${annotations === undefined ? '' : ',"annotations":[]'}},"logprobs":null,"finish_reason":"${finishReason}"}]`;
  const choices = Buffer.allocUnsafe(OPENING.length + textTo - textFrom + end.length);
  OPENING.copy(choices);
  body.copy(choices, OPENING.length, textFrom, textTo);
  choices.write(end, OPENING.length + textTo - textFrom, 'latin1');
  return { choices, fields, finishReason, outputBytes: decodedBytes(body, textFrom, textTo), thoughtBytes: 0 };
}

/** The object of the fields before and after `choices`; undefined when it is no JSON, or says `choices` again. */
function parseFields(flat: string, rest: string): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(`{${flat}"choices":0${rest}`);
    return isObject(parsed) && parsed['choices'] === 0 ? parsed : undefined;
  } catch {
    return undefined;
  }
}
