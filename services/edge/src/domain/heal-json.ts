/**
 * Extracts the JSON that was asked for from a model's text and repairs it (docs/structured-output.md), piece by piece or at
 * once, with the same result. Prose, fences and a thinking block around the value are dropped. Strict JSON passes as it
 * comes; from the first mistake on the rest is held back until the end, and repaired together with what came before.
 */
import { jsonRootOf } from '@signalbox/kernel/json-root';
import { JsonScanner } from './json-scanner.js';
import { repairJson, type Repaired } from './repair-json.js';

/** The root that is wanted. `any`: the schema does not name its type. */
export type JsonKind = 'object' | 'array' | 'any';

/** What was done: a byte order mark, a fence or prose was dropped, syntax was repaired, or a text that was cut off was closed. */
export type HealStep = 'bom' | 'fence' | 'prose' | 'syntax' | 'closed';

export interface Healed {
  /** Text that `push` has not returned yet. */
  readonly text: string;
  /** In the order of `HealStep`; empty = the text is the model's own. */
  readonly steps: readonly HealStep[];
  /** True = all returned text, joined, is JSON with the wanted root. False = from the point where it could not be repaired it is the model's own text. */
  readonly isJson: boolean;
}

/** Characters of prose that are searched for a value; then the text passes unchanged. */
const PREFIX_CHARS_MAX = 65_536;
/** Longer texts pass unchanged (no model writes them), and so do texts with longer pieces, since a piece is read without a pause. */
const TEXT_CHARS_MAX = 4_194_304;
const PIECE_CHARS_MAX = 1_048_576;
/** Characters repaired for one answer. Repair runs on the event loop, and takes at most a tenth of a second for as many. */
const REPAIR_CHARS_MAX = 262_144;

/** How much may still be repaired of one answer, over all its texts: choices, and arguments of calls. */
export interface RepairBudget {
  charsLeft: number;
}

export const repairBudget = (): RepairBudget => ({ charsLeft: REPAIR_CHARS_MAX });
const STEPS: readonly HealStep[] = ['bom', 'fence', 'prose', 'syntax', 'closed'];

const THINK = '<think>';
const THINK_END = '</think>';
const SPACES = /^[ \t\r\n]*$/;
/** Blank space, and an opening fence if there is one. */
const FENCE_AHEAD = /^[ \t\r\n\uFEFF]*(?:```[\w-]*[ \t\r\n]*)?/;
const WORDS: readonly string[] = ['true', 'false', 'null'];
/** Characters that tell `true`, `false` or `null` from the beginning of a sentence. */
const SCALAR_CHARS = 6;
/** Characters at the end of a lead in which a key is looked for. */
const SHORT_CHARS = 64;
const OPENS = { object: /[{[]/g, array: /\[/g, any: /[{[]/g } as const;
const NO_SPACE = /[^ \t\r\n]/g;
const NAME = /[A-Za-z_$][\w$-]*[ \t]*/y;
/** The last quote of a key whose first quote is missing. */
const LAST_QUOTE = /"[ \t\r\n]*/y;
/** Members of an object whose opening brace is missing: none of their values is the answer. */
const MEMBERS = /^(?:```[\w-]*)?\s*(?:"[^"\n{}[\]]{0,128}"|'[^'\n{}[\]]{0,128}')\s*:/;
const KEY_ENDS = /"[ \t\r\n]*:/g;
/** The end of a key with its colon: the value that follows belongs to a member. */
const KEY_BEFORE = /"[ \t\r\n]*:[ \t\r\n]*$/;
/** Text after a value that shows that it goes on: the end of a string and what may follow it, or one more member. */
const GOES_ON = /^(?:"[ \t\r\n]*[,}\]]|(?:[ \t]*|[ \t\r\n]*,[ \t\r\n]*)"[^"\n]{0,256}"[ \t\r\n]*:|[ \t\r\n]*,[ \t\r\n]*[A-Za-z_$][\w$-]{0,256}[ \t\r\n]*:)/;
/** The parts of a text after a value that show whether it belongs to the value: brackets (except those of smileys), keys, words. */
const SIGNS = /[{[]|(?<![:;=-])[}\]]|["'][ \t\r\n]*:|[\p{L}\d]+/gu;
const LAST_BRACKET = /(?<![:;=-])[}\]]$/;
const LAST_STRING = /"[ \t\r\n}\]]*[}\]]$/;
const LETTERS = /[A-Za-z]+/y;
const LITERAL = /^(?:true|false|null|True|False|None)$/;

/** Whether the bracket at `at` begins a value, and is not part of prose; undefined = more text is needed. */
function opensValue(text: string, at: number): boolean | undefined {
  NO_SPACE.lastIndex = at + 1;
  const next = NO_SPACE.exec(text);
  if (next === null) return undefined;
  const [first] = next;
  if ('"\'“‘'.includes(first)) return true;
  if (first === '/') return text.length > next.index + 1 ? '/*'.includes(text[next.index + 1] ?? '') : undefined;
  if (text[at] === '{') {
    if (first === '}') return true;
    NAME.lastIndex = next.index;
    if (!NAME.test(text)) return false;
    LAST_QUOTE.lastIndex = NAME.lastIndex;
    const behind = LAST_QUOTE.test(text) ? LAST_QUOTE.lastIndex : NAME.lastIndex;
    return behind === text.length ? undefined : text[behind] === ':';
  }
  if ('{[]-0123456789'.includes(first)) return true;
  LETTERS.lastIndex = next.index;
  const found = LETTERS.exec(text);
  if (found === null) return false;
  return LETTERS.lastIndex === text.length ? undefined : LITERAL.test(found[0]);
}

/** Whether `text` begins with a string, number or word of JSON; undefined = more text is needed. */
function beginsScalar(text: string, isEnd: boolean): boolean | undefined {
  if (/^(?:"|-?\d)/.test(text)) return true;
  if (!isEnd && (text === '' || text === '-' || text.startsWith('`') || WORDS.some((word) => word.startsWith(text)))) return undefined;
  return WORDS.some((word) => text.startsWith(word) && !/[A-Za-z]/.test(text.charAt(word.length)));
}

type Found = { readonly kind: 'at'; readonly at: number } | { readonly kind: 'unknown'; readonly from: number } | { readonly kind: 'none' };

/** Whether the text before a value shows that it is part of another one. */
const isWithin = (lead: string): boolean => MEMBERS.test(lead) || (KEY_BEFORE.test(lead.slice(-SHORT_CHARS)) && (lead.match(KEY_ENDS) ?? []).length > 1);

/** Where the value begins, searched from `from`. `unknown`: not before that position; `none`: nowhere, since what begins there is part of a broken value. */
function findValue(text: string, kind: JsonKind, from: number, isEnd: boolean): Found {
  const start = /[^ \t\r\n\uFEFF]/.exec(text);
  if (start === null) return { kind: 'unknown', from: 0 };
  let head = start.index;
  if (text.startsWith(THINK, start.index)) {
    const end = text.indexOf(THINK_END, start.index);
    if (end < 0) return { kind: 'unknown', from: 0 };
    head = end + THINK_END.length;
  } else if (!isEnd && THINK.startsWith(text.slice(start.index))) return { kind: 'unknown', from: 0 };
  // A lead (blank space and a fence) contains no bracket, so the first bracket after it is the value's.
  let leadEnd: number | undefined;
  const leads = (position: number): boolean => position === (leadEnd ??= FENCE_AHEAD.exec(text)?.[0].length);
  // A scalar only counts at the very beginning: a number within prose is not the value, wherever the stream is split.
  if (kind === 'any') {
    const at = head + (FENCE_AHEAD.exec(text.slice(head))?.[0].length ?? 0);
    const scalar = beginsScalar(text.slice(at, at + SCALAR_CHARS), isEnd);
    if (scalar === undefined) return { kind: 'unknown', from };
    if (scalar) return { kind: 'at', at };
  }
  const brackets = new RegExp(OPENS[kind]);
  brackets.lastIndex = Math.max(from, head);
  for (let bracket = brackets.exec(text); bracket !== null; bracket = brackets.exec(text)) {
    const position = bracket.index;
    // The same bound as for a text that comes in many pieces.
    if (position > head + PREFIX_CHARS_MAX) break;
    const opens = opensValue(text, position);
    if (opens === undefined && !isEnd) return { kind: 'unknown', from: position };
    // If an object is wanted, an array within prose is passed over unless it holds objects or arrays.
    const isTaken = opens === undefined ? leads(position) : opens && (kind !== 'object' || bracket[0] === '{' || leads(position) || /^\[[ \t\r\n]*[{[]/.test(text.slice(position, position + 256)));
    if (isTaken) return isWithin(text.slice(head, position)) ? { kind: 'none' } : { kind: 'at', at: position };
    // A broken object at the beginning. Double braces are those of a template in prose.
    if (opens === false && kind === 'object' && leads(position) && /^\{[ \t\r\n]*[^ \t\r\n{]/.test(text.slice(position))) return { kind: 'none' };
  }
  return { kind: 'unknown', from: text.length };
}

/**
 * Whether `rest`, the text after a value, belongs to the value and is not prose. The bracket that seemed to end the value was
 * then one too many, or was part of a string with a missing or surplus quote. Signs of it are one more member, and words
 * followed by an unmatched closing bracket; if a bracket ends the whole text, also a key outside of braces, and an odd
 * number of quotes.
 */
function goesOn(rest: string): boolean {
  if (GOES_ON.test(rest)) return true;
  const looked = rest.slice(0, PREFIX_CHARS_MAX);
  let curly = 0;
  let square = 0;
  let hasWord = false;
  let hasKey = false;
  let hasOuterKey = false;
  for (const [sign] of looked.matchAll(SIGNS)) {
    if (hasWord && ((sign === '}' && curly === 0) || (sign === ']' && square === 0))) return true;
    if (sign === '{') curly += 1;
    else if (sign === '[') square += 1;
    else if (sign === '}') curly = Math.max(0, curly - 1);
    else if (sign === ']') square = Math.max(0, square - 1);
    else if (sign.endsWith(':')) {
      hasKey = true;
      hasOuterKey ||= curly === 0;
    } else hasWord = true;
  }
  const end = withoutFence(looked).trimEnd();
  if (!LAST_BRACKET.test(end)) return false;
  // Escaped quotes are within a string and are not counted.
  return hasOuterKey || ((looked.replace(/\\./gs, '').split('"').length - 1) % 2 !== 0 && (hasKey || LAST_STRING.test(end)));
}

/** Removes the fence at the end. Not by a regular expression, which would take quadratic time on a long run of blanks. */
function withoutFence(text: string): string {
  const bare = text.trimEnd();
  return bare.endsWith('```') ? bare.slice(0, -3).trimEnd() : text;
}

/** True when `text` is JSON with that root, unchanged. */
function isJsonOf(text: string, kind: JsonKind): boolean {
  const root = jsonRootOf(text);
  return root !== undefined && (kind === 'any' || root === kind);
}

/** Heals one text. */
export class JsonHealer {
  private readonly steps = new Set<HealStep>(); // kept: of one text, and dropped with it.
  private phase: 'prefix' | 'value' | 'passing' = 'prefix';
  /** Until the value begins: all text so far. After its end: what follows it. */
  private waiting = '';
  private searchFrom = 0;
  /** What began is not the wanted value, and nothing after it can be. The text is held back like prose, so that another provider may still be asked. */
  private isWrong = false;
  /** The text before the value, which is dropped. */
  private lead = '';
  private readonly scanner = new JsonScanner();
  private hasGiven = false;

  constructor(
    private readonly kind: JsonKind,
    private readonly budget: RepairBudget,
  ) {}

  /** Reads one piece; returns the text that is certain by now. */
  push(text: string): string {
    const given = this.read(text, false);
    this.hasGiven ||= given !== '';
    return given;
  }

  /** `isCut`: the model stopped at its limit, so that what is open may be closed. */
  finish(isCut: boolean): Healed {
    const { scanner } = this;
    let text = this.phase === 'prefix' ? this.read('', true) : '';
    if (this.phase === 'prefix' || this.phase === 'passing') return { text: text + this.waiting, steps: [], isJson: false };
    text += scanner.end();
    if (scanner.isDone && this.waiting === '') this.waiting = scanner.rest();
    if (!scanner.isDone && !scanner.isStuck && isCut) {
      text += scanner.close();
      this.steps.add('closed');
    }
    if (scanner.isDone) return this.whole(text);
    return this.mended(text, isCut);
  }

  private read(text: string, isEnd: boolean): string {
    if (this.phase === 'passing') return text;
    if (this.phase === 'value') return this.readValue(text);
    this.waiting += text;
    if (!this.isWrong) {
      const found = findValue(this.waiting, this.kind, this.searchFrom, isEnd);
      // If an object is wanted, objects are not taken out of an array.
      if (found.kind === 'at' && !(this.kind === 'object' && this.waiting[found.at] === '[')) return this.begin(found.at);
      if (found.kind === 'unknown') this.searchFrom = found.from;
      else this.isWrong = true;
    }
    return isEnd || this.waiting.length <= PREFIX_CHARS_MAX ? '' : this.pass();
  }

  private pass(): string {
    this.phase = 'passing';
    const { waiting } = this;
    this.waiting = '';
    return waiting;
  }

  private begin(at: number): string {
    const before = this.waiting.slice(0, at);
    const value = this.waiting.slice(at);
    this.phase = 'value';
    this.waiting = '';
    this.lead = before;
    if (before.includes('```')) this.steps.add('fence');
    if (/[^\s\uFEFF]/.test(before.replace(/```[\w-]*/g, ''))) this.steps.add('prose');
    if (before.includes('\uFEFF')) this.steps.add('bom');
    // Blank space is passed on, so that the text stays unchanged.
    return (SPACES.test(before) ? before : '') + this.readValue(value);
  }

  private readValue(text: string): string {
    const { scanner } = this;
    if (scanner.isDone) {
      this.waiting += text;
      return '';
    }
    if (text.length > PIECE_CHARS_MAX || scanner.source.length + text.length > TEXT_CHARS_MAX) return this.giveUp(text);
    const given = scanner.push(text);
    if (scanner.isDone) this.waiting = scanner.rest();
    return given;
  }

  /** Returns what was held back, and passes all that follows unchanged. */
  private giveUp(text: string): string {
    const { scanner, lead } = this;
    this.phase = 'passing';
    const raw = scanner.held() + text;
    return this.hasGiven || SPACES.test(lead) ? raw : lead + raw;
  }

  private whole(text: string): Healed {
    const { waiting, scanner } = this;
    if (goesOn(waiting)) return { text: text + scanner.heldEnd() + waiting, steps: [], isJson: false };
    const end = scanner.settle();
    const isBlank = SPACES.test(waiting);
    if (!isBlank) {
      if (waiting.includes('```')) this.steps.add('fence');
      if (/\S/.test(waiting.replace(/```/g, ''))) this.steps.add('prose');
    }
    if (scanner.hasDroppedComma) this.steps.add('syntax');
    const isRight = this.kind === 'any' || scanner.source.startsWith(this.kind === 'array' ? '[' : '{');
    return { text: text + end + (isBlank ? waiting : ''), steps: this.told(), isJson: isRight };
  }

  /** The repaired text, if it continues what was returned so far; else the model's own. */
  private mended(text: string, isCut: boolean): Healed {
    const { scanner, kind, lead } = this;
    const { source, given } = scanner;
    const mended = scanner.isStuck ? this.repaired(isCut ? withoutFence(source) : source, isCut) : undefined;
    const rest = mended === undefined ? '' : source.slice(mended.end);
    if (mended === undefined || !mended.text.startsWith(given) || !isJsonOf(mended.text, kind) || goesOn(rest)) {
      const raw = text + scanner.held();
      return { text: this.hasGiven || SPACES.test(lead) ? raw : lead + raw, steps: [], isJson: false };
    }
    this.steps.add('syntax');
    if (mended.isClosed) this.steps.add('closed');
    if (rest.includes('```')) this.steps.add('fence');
    if (/\S/.test(rest.replace(/```/g, ''))) this.steps.add('prose');
    return { text: text + mended.text.slice(given.length), steps: this.told(), isJson: true };
  }

  private repaired(source: string, isCut: boolean): Repaired | undefined {
    if (source.length > this.budget.charsLeft || !/^[{[]/.test(source)) return undefined;
    this.budget.charsLeft -= source.length;
    return repairJson(source, isCut);
  }

  private told(): readonly HealStep[] {
    return STEPS.filter((step) => this.steps.has(step));
  }
}

export interface HealedText {
  readonly text: string;
  readonly steps: readonly HealStep[];
  readonly isJson: boolean;
}

/** Heals a whole text. One that cannot be healed is returned unchanged. */
export function healJson(text: string, kind: JsonKind, isCut: boolean, budget = repairBudget()): HealedText {
  if (text.length > TEXT_CHARS_MAX) return { text, steps: [], isJson: false };
  if (isJsonOf(text, kind)) return { text, steps: [], isJson: true };
  const healer = new JsonHealer(kind, budget);
  const first = healer.push(text);
  const last = healer.finish(isCut);
  return last.isJson ? { ...last, text: first + last.text } : { text, steps: [], isJson: false };
}
