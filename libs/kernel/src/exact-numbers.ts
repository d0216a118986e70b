/**
 * Numbers in JSON that would lose digits when parsed, such as ids above 2^53: each is replaced by a marked string before
 * JSON.parse, and restored in what JSON.stringify wrote. Node 20 has no other way to keep them.
 */

/** A control character that nobody sends; its only other spelling is `SIGN_ESCAPE`. */
const SIGN = '\u0091';
const SIGN_ESCAPE = '\\u0091';
/** Numbers with fewer digits in a row keep them. */
const LONG_NUMBER = /\d{16}/;
/** In JSON text, also in JSON text inside a string. Marks of others that have this sign (LongStrings of the wires) hold shorter numbers. */
const MARKED = new RegExp(`(\\\\?)"${SIGN}([-+.0-9eE]{16,})${SIGN}\\1"`, 'g');
const NUMBER = /[-+.0-9eE]+/y;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;

const isNumberStart = (code: number): boolean => code === MINUS || (code >= 0x30 && code <= 0x39);

/** Index behind the string that opens at `at`. */
function endOfString(json: string, at: number): number {
  let index = at + 1;
  while (index < json.length && json.charCodeAt(index) !== QUOTE) index += json.charCodeAt(index) === BACKSLASH ? 2 : 1;
  return index + 1;
}

/** `json`, which must be valid, with such numbers as marked strings; unchanged if it has none, or has the mark itself. */
export function markExactNumbers(json: string): string {
  if (!LONG_NUMBER.test(json) || json.includes(SIGN) || json.includes(SIGN_ESCAPE)) return json;
  let marked = '';
  let copied = 0;
  let index = 0;
  while (index < json.length) {
    const code = json.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(json, index);
      continue;
    }
    if (!isNumberStart(code)) {
      index += 1;
      continue;
    }
    NUMBER.lastIndex = index;
    const [number = ''] = NUMBER.exec(json) ?? [];
    if (LONG_NUMBER.test(number) && String(Number(number)) !== number) {
      marked += `${json.slice(copied, index)}"${SIGN}${number}${SIGN}"`;
      copied = index + number.length;
    }
    index += number.length;
  }
  return copied === 0 ? json : marked + json.slice(copied);
}

/** JSON text written from what `markExactNumbers` marked, with the numbers as they were. */
export function restoreExactNumbers(json: string): string {
  return json.replace(MARKED, '$2');
}

/** `json` parsed, changed and written again, with every digit of the numbers in it. Undefined if `change` returns that. */
export function rewriteJson(json: string, change: (value: unknown) => unknown): string | undefined {
  const marked = markExactNumbers(json);
  const written = JSON.stringify(change(JSON.parse(marked))) as string | undefined;
  return written === undefined || marked === json ? written : restoreExactNumbers(written);
}
