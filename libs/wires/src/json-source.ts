/** Text of a value inside JSON text, byte for byte: what passes through keeps every digit that a double would lose. */

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const SPACE = 32;
const OPEN_ARRAY = 91;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const isClosing = (code: number): boolean => code === CLOSE_ARRAY || code === CLOSE_OBJECT;
/** Of text that passed JSON.parse: what stands behind a number or word. */
const endsScalar = (code: number): boolean => code === COMMA || code <= SPACE || isClosing(code);

/** Index behind the string that opens at `at`. */
function endOfString(text: string, at: number): number {
  let index = at + 1;
  while (text.charCodeAt(index) !== QUOTE) index += text.charCodeAt(index) === BACKSLASH ? 2 : 1;
  return index + 1;
}

function skipSpace(text: string, at: number): number {
  let index = at;
  while (text.charCodeAt(index) <= SPACE) index += 1;
  return index;
}

/** Index behind the value that begins at `at`. */
function endOfValue(text: string, at: number): number {
  const first = text.charAt(at);
  if (first === '"') return endOfString(text, at);
  if (first !== '{' && first !== '[') {
    let index = at;
    while (index < text.length && !endsScalar(text.charCodeAt(index))) index += 1;
    return index;
  }
  let depth = 0;
  let index = at;
  for (;;) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(text, index);
      continue;
    }
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth += 1;
    else if (isClosing(code) && (depth -= 1) === 0) return index + 1;
    index += 1;
  }
}

/** Whether the key whose quotes stand at `from` and before `to` is `name`. One is parsed only where it has escapes: there may be thousands. */
function isKey(text: string, from: number, to: number, name: string): boolean {
  const key = text.slice(from + 1, to - 1);
  return key.includes('\\') ? JSON.parse(`"${key}"`) === name : key === name;
}

/** Range of the member or element `step` of the value at `at`; the last of members with one name, as JSON.parse has it. */
function childOf(text: string, at: number, step: string | number): readonly [number, number] | undefined {
  const isObject = text.charAt(at) === '{';
  if (isObject !== (typeof step === 'string') || (!isObject && text.charAt(at) !== '[')) return undefined;
  let found: readonly [number, number] | undefined;
  let position = 0;
  let index = skipSpace(text, at + 1);
  while (!isClosing(text.charCodeAt(index))) {
    let isWanted = position === step;
    if (isObject) {
      const keyEnd = endOfString(text, index);
      isWanted = isKey(text, index, keyEnd, String(step));
      index = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    const end = endOfValue(text, index);
    if (isWanted) found = [index, end];
    position += 1;
    index = skipSpace(text, end);
    if (text.charCodeAt(index) === COMMA) index = skipSpace(text, index + 1);
  }
  return found;
}

/** Texts of the elements of the list at `path`, found in one pass; none when there is no list. `text` must have passed JSON.parse. */
export function elementsOf(text: string, path: readonly (string | number)[]): readonly string[] {
  const list = sourceOf(text, path);
  if (list?.charAt(0) !== '[') return [];
  const elements: string[] = [];
  let index = skipSpace(list, 1);
  while (list.charAt(index) !== ']') {
    const end = endOfValue(list, index);
    elements.push(list.slice(index, end));
    index = skipSpace(list, end);
    if (list.charCodeAt(index) === COMMA) index = skipSpace(list, index + 1);
  }
  return elements;
}

/** `text` must have passed JSON.parse; undefined when nothing is at `path`. */
export function sourceOf(text: string, path: readonly (string | number)[]): string | undefined {
  let start = skipSpace(text, 0);
  let end = text.length;
  for (const step of path) {
    const child = childOf(text, start, step);
    if (child === undefined) return undefined;
    [start, end] = child;
  }
  return path.length === 0 ? text.trim() : text.slice(start, end);
}
